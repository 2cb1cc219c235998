"""The findings of a tool call: its passages, its value and a short extract of both."""

import json
import re
from collections.abc import Iterable, Sequence

from offing.sdk import Evidence, SourceSpan, ToolResult, ToolStatus, shorten_line
from offing_graphs.extractive.quotes import find_telling_sentence
from offing_graphs.shared.schemas import RetrievedPassage

MAX_EXTRACT_CHARS = 240
"""Maximum number of characters of one passage in a finding."""
MAX_EXTRACTS = 4
"""Maximum number of passages in a finding."""
MAX_FINDING_CHARS = 1_600
"""Maximum number of characters of a finding."""

_ID = re.compile(r"\bE\d+\b")


def passages_from_evidence(evidence: Iterable[Evidence]) -> tuple[RetrievedPassage, ...]:
    """Return evidence as the roles see it."""
    return tuple(
        RetrievedPassage(
            id=e.id,
            source=str(e.source_id),
            text_id=str(e.span.text_id),
            start=e.span.start,
            end=e.span.end,
            title=e.title,
            heading=e.heading,
            name=e.name,
            text=e.text,
            source_label=e.source_label,
            published=e.published,
        )
        for e in evidence
    )


def list_returned_evidence(result: ToolResult, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence that a call returned, in its order."""
    by_span = {_span_key(e.span): e for e in evidence}
    return tuple(by_span[span_key] for span_key in map(_span_key, result.spans) if span_key in by_span)


def extract_evidence_ids(text: str) -> tuple[str, ...]:
    """Return the evidence ids that a text names, such as E3, each once and in order."""
    return tuple(dict.fromkeys(_ID.findall(text)))


def build_finding(goal: str, result: ToolResult, evidence: Sequence[Evidence]) -> str:
    """Return a short extract of a result for a goal, or the reason why there is none.

    The text is untrusted.
    """
    if result.status is not ToolStatus.OK:
        return shorten_line(result.message or str(result.status), MAX_EXTRACT_CHARS)
    if evidence:
        return "\n".join(_render_extract(e, goal) for e in evidence[:MAX_EXTRACTS])[:MAX_FINDING_CHARS]
    if result.spans:
        return "Nothing that was not known."
    return render_value(result) or "Nothing was found."


def render_value(result: ToolResult) -> str:
    """Render a result that is not a passage on one line: a calculation, or content as JSON.

    Returns an empty string if there is no such result. An empty list is no result, unless the
    content says that the list is complete.
    """
    content = result.content
    nothing = any(v == [] for v in content.values()) and content.get("closed") is not True
    if result.status is not ToolStatus.OK or result.spans or not content or nothing:
        return ""
    if "expression" in content and "text" in content:
        return shorten_line(f"{content['expression']} = {content['text']}", MAX_EXTRACT_CHARS)
    return shorten_line(json.dumps(content, ensure_ascii=False, sort_keys=True), MAX_FINDING_CHARS)


def _render_extract(evidence: Evidence, goal: str) -> str:
    location = f"{evidence.id} {shorten_line(evidence.title, 60)}"
    where = f"{location} \u203a {shorten_line(evidence.heading, 60)}" if evidence.heading else location
    return f"{where} [{evidence.span.start}-{evidence.span.end}]: " + shorten_line(
        find_telling_sentence(evidence.text, goal), MAX_EXTRACT_CHARS
    )


def _span_key(span: SourceSpan) -> tuple[str, int, int]:
    return str(span.text_id), span.start, span.end

"""What a tool call brought back, as a flow passes it on: passages, values and a short extract of both."""

import json
import re
from collections.abc import Iterable, Sequence

from offing.sdk import Evidence, Span, ToolResult, ToolStatus, shortened
from offing_graphs.extractive.quotes import telling_sentence
from offing_graphs.parts.shapes import Piece

EXTRACT = 240
"""Code points of one passage in a finding."""
EXTRACTS = 4
"""Passages quoted in a finding."""
FINDING = 1_600
"""Code points of a finding."""

_ID = re.compile(r"\bE\d+\b")


def pieces(evidence: Iterable[Evidence]) -> tuple[Piece, ...]:
    """Retrieved passages as the roles see them."""
    return tuple(
        Piece(
            id=e.id,
            source=str(e.source),
            artefact=str(e.span.artefact),
            start=e.span.start,
            end=e.span.end,
            title=e.title,
            heading=e.heading,
            name=e.name,
            text=e.text,
        )
        for e in evidence
    )


def brought_back(result: ToolResult, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The passages that a call returned, in the order in which it returned them."""
    by_place = {_place(e.span): e for e in evidence}
    return tuple(by_place[place] for place in map(_place, result.spans) if place in by_place)


def ids_in(text: str) -> tuple[str, ...]:
    """Ids of passages that a text names, such as E3: each once, in order."""
    return tuple(dict.fromkeys(_ID.findall(text)))


def finding(goal: str, result: ToolResult, back: Sequence[Evidence]) -> str:
    """A short extract of what came back with a goal in mind, or why nothing did. Untrusted text."""
    if result.status is not ToolStatus.OK:
        return shortened(result.message or str(result.status), EXTRACT)
    if back:
        return "\n".join(_extract(e, goal) for e in back[:EXTRACTS])[:FINDING]
    if result.spans:
        return "Nothing that was not known."
    return value_of(result) or "Nothing was found."


def value_of(result: ToolResult) -> str:
    """A result that is no passage, on one line: a sum, or content as JSON. Empty: there is none.

    A list that is empty is no result, unless the content says that it is all there is.
    """
    content = result.content
    nothing = any(v == [] for v in content.values()) and content.get("closed") is not True
    if result.status is not ToolStatus.OK or result.spans or not content or nothing:
        return ""
    if "expression" in content and "text" in content:
        return shortened(f"{content['expression']} = {content['text']}", EXTRACT)
    return shortened(json.dumps(content, ensure_ascii=False, sort_keys=True), FINDING)


def _extract(evidence: Evidence, goal: str) -> str:
    place = f"{evidence.id} {shortened(evidence.title, 60)}"
    where = f"{place} \u203a {shortened(evidence.heading, 60)}" if evidence.heading else place
    return f"{where} [{evidence.span.start}-{evidence.span.end}]: " + shortened(
        telling_sentence(evidence.text, goal), EXTRACT
    )


def _place(span: Span) -> tuple[str, int, int]:
    return str(span.artefact), span.start, span.end

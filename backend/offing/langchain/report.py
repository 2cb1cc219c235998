"""Conversion of a graph's last message to a report draft. The functions are pure.

A sentence is cited if it names a passage of evidence, as in [E3], or if it quotes one literally.
The quotes are verified later. All other text is kept as the model wrote it, without support.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from offing.core.report import DraftCitation, DraftSection, DraftSentence, Evidence, ReportDraft
from offing.core.step import shorten_line

MAX_SHORT_ANSWER_CHARS = 400
"""Maximum number of code points of an answer that becomes the short answer as a whole."""

MIN_QUOTE_CHARS = 12
"""Minimum number of code points of a quote that is searched for; a shorter one occurs in any text."""

CITED_LIMITS = "Sentences with a source name the source or quote it literally. The other sentences were not checked."
UNCITED_LIMITS = "This is the model's answer. The run retrieved no source that it could cite."

_QUOTED = re.compile(r"[\u201c\"\u00ab]([^\u201c\u201d\"\u00ab\u00bb]+)[\u201d\"\u00bb]")
_END = re.compile(r"(?<=[.!?\u2026])(?<!\b[A-Za-z]\.)\s+(?=[A-Z0-9\u201c\"(\[*-])")


def find_last_answer(messages: Sequence[BaseMessage]) -> str:
    """Return the last text of the assistant. Empty means that there is none."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and str(message.text).strip():
            return str(message.text).strip()
    return ""


def draft_report(question: str, answer: str, evidence: Sequence[Evidence]) -> ReportDraft | None:
    """Build a report draft from a text. `None` means that the text is empty."""
    if not answer.strip():
        return None
    title, limits = shorten_line(question, 200), CITED_LIMITS if evidence else UNCITED_LIMITS
    head, rest = _split_answer(answer.strip())
    sections = tuple(DraftSection(heading=h, sentences=_draft_sentences(body, evidence)) for h, body in rest)
    return ReportDraft(title=title, answer=_add_markers(head, evidence), sections=sections, limits=limits)


def _split_answer(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Split a text into the short answer and the sections after it. A short text has no sections."""
    if len(text) <= MAX_SHORT_ANSWER_CHARS:
        return text, []
    first, _, rest = text.partition("\n\n")
    if len(first) > MAX_SHORT_ANSWER_CHARS or not rest.strip():
        first, *more = _END.split(text, maxsplit=1)
        rest = more[0] if more else ""
    return (first, _split_by_heading(rest)) if len(first) <= MAX_SHORT_ANSWER_CHARS else ("", _split_by_heading(text))


def _split_by_heading(text: str) -> list[tuple[str, str]]:
    """Split a text at its Markdown headings into pairs of heading and text."""
    sections: list[tuple[str, list[str]]] = [("Answer", [])]
    for line in text.splitlines():
        if line.startswith("#"):
            sections.append((line.lstrip("# ").strip() or "Answer", []))
        else:
            sections[-1][1].append(line)
    return [(heading, "\n".join(lines)) for heading, lines in sections if "\n".join(lines).strip()]


def _draft_sentences(text: str, evidence: Sequence[Evidence]) -> tuple[DraftSentence, ...]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(
        DraftSentence(text=s, citations=_find_citations(s, evidence)) for line in lines for s in _END.split(line)
    )


def _find_citations(sentence: str, evidence: Sequence[Evidence]) -> tuple[DraftCitation, ...]:
    """Return, for each quote in a sentence, a citation of the first passage that contains it."""
    citations: dict[str, DraftCitation] = {}
    for quote in (quote.strip() for quote in _QUOTED.findall(sentence)):
        if len(quote) >= MIN_QUOTE_CHARS and (
            id := next((e.id for e in evidence if _contains_quote(quote, e.text)), None)
        ):
            citations.setdefault(id, DraftCitation(evidence=id, quote=quote))
    return tuple(citations.values())


def _add_markers(sentence: str, evidence: Sequence[Evidence]) -> str:
    """Add a marker to the short answer for each passage that it quotes.

    The short answer has no separate citations.
    """
    new = [c.evidence for c in _find_citations(sentence, evidence) if not re.search(rf"\b{c.evidence}\b", sentence)]
    return f"{sentence} [{', '.join(new)}]" if new else sentence


def _contains_quote(quote: str, text: str) -> bool:
    return " ".join(quote.split()) in " ".join(text.split())


def list_messages(values: Mapping[str, Any], key: str) -> list[BaseMessage]:
    """Return the messages under a key of a graph's state. Empty means that there are none."""
    messages: Any = values.get(key)
    return [m for m in messages if isinstance(m, BaseMessage)] if isinstance(messages, list) else []  # pyright: ignore[reportUnknownVariableType]

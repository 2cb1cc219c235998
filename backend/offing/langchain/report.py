"""From a graph's last message to the report of its run: the only home of that step. Pure.

A sentence is cited where it names a piece of evidence, as in [E3], or where it quotes one word by word; whether the
words are there is checked later, by whoever takes the draft. Anything else stands as the model wrote it, unsupported.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from offing.core.report import DraftCitation, DraftSection, DraftSentence, Evidence, ReportDraft
from offing.core.step import shortened

SHORT = 400
"""Code points of an answer that is the report's short answer as a whole."""

LEAST_QUOTE = 12
"""Code points of quoted words that can be looked for; fewer stand in any text."""

CITED = "Sentences with a source name it themselves, or quote it word by word; nobody has checked the others."
PLAIN = "The answer as the model gave it; the run retrieved no source that it could cite."

_QUOTED = re.compile(r"[\u201c\"\u00ab]([^\u201c\u201d\"\u00ab\u00bb]+)[\u201d\"\u00bb]")
_END = re.compile(r"(?<=[.!?\u2026])(?<!\b[A-Za-z]\.)\s+(?=[A-Z0-9\u201c\"(\[*-])")


def last_words(messages: Sequence[BaseMessage]) -> str:
    """What the assistant said last in words. Empty: nothing."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and str(message.text).strip():
            return str(message.text).strip()
    return ""


def draft(question: str, answer: str, evidence: Sequence[Evidence]) -> ReportDraft | None:
    """A text as a report. None: it says nothing."""
    if not answer.strip():
        return None
    title, limits = shortened(question, 200), CITED if evidence else PLAIN
    head, rest = _divided(answer.strip())
    sections = tuple(DraftSection(heading=h, sentences=_sentences(body, evidence)) for h, body in rest)
    return ReportDraft(title=title, answer=_marked(head, evidence), sections=sections, limits=limits)


def _divided(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The short answer, and what follows it by its headings; a short text has nothing after it."""
    if len(text) <= SHORT:
        return text, []
    first, _, rest = text.partition("\n\n")
    if len(first) > SHORT or not rest.strip():
        first, *more = _END.split(text, maxsplit=1)
        rest = more[0] if more else ""
    return (first, _by_heading(rest)) if len(first) <= SHORT else ("", _by_heading(text))


def _by_heading(text: str) -> list[tuple[str, str]]:
    """Stretches of a text under Markdown headings, each with what stands above it."""
    found: list[tuple[str, list[str]]] = [("Answer", [])]
    for line in text.splitlines():
        if line.startswith("#"):
            found.append((line.lstrip("# ").strip() or "Answer", []))
        else:
            found[-1][1].append(line)
    return [(heading, "\n".join(lines)) for heading, lines in found if "\n".join(lines).strip()]


def _sentences(text: str, evidence: Sequence[Evidence]) -> tuple[DraftSentence, ...]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(DraftSentence(text=s, citations=_quoted(s, evidence)) for line in lines for s in _END.split(line))


def _quoted(sentence: str, evidence: Sequence[Evidence]) -> tuple[DraftCitation, ...]:
    """The first piece of evidence that holds each quote of a sentence."""
    found: dict[str, DraftCitation] = {}
    for quote in (quote.strip() for quote in _QUOTED.findall(sentence)):
        if len(quote) >= LEAST_QUOTE and (id := next((e.id for e in evidence if _in(quote, e.text)), None)):
            found.setdefault(id, DraftCitation(evidence=id, quote=quote))
    return tuple(found.values())


def _marked(sentence: str, evidence: Sequence[Evidence]) -> str:
    """The short answer, which carries no quotes apart, with a mark for each piece of evidence that it quotes."""
    new = [c.evidence for c in _quoted(sentence, evidence) if not re.search(rf"\b{c.evidence}\b", sentence)]
    return f"{sentence} [{', '.join(new)}]" if new else sentence


def _in(quote: str, text: str) -> bool:
    return " ".join(quote.split()) in " ".join(text.split())


def messages_in(values: Mapping[str, Any], key: str) -> list[BaseMessage]:
    """The messages under a key of a graph's state. Empty: there are none."""
    found: Any = values.get(key)
    return [m for m in found if isinstance(m, BaseMessage)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]

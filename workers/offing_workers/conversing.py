"""A run's look back at its thread: earlier reports searched by words, and notes. Each look-up is a step.

The only home of how the sentences of earlier reports are ranked.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from offing.core import provenance
from offing.core.evidence import EvidenceBook
from offing.core.provenance import Label, Origin, Trust
from offing.core.report import Citation, Report
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import Span, ToolStatus
from offing.library.terms import terms
from offing.sdk.conversation import CONVERSATION, LONGEST_NOTE, NOTES, Note, Recalled
from offing.storage import conversation, reports
from offing.storage.pool import Database
from offing_workers.recorder import Recorder
from offing_workers.toolbelt import Toolbelt

MOST_RUNS = 20
"""Earlier runs that are searched, the latest."""
MOST_NOTES = 50

LABEL = Label(Origin(provenance.Kind.MEMORY), Trust.UNTRUSTED)


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of an earlier report with what it quotes."""

    run: UUID
    question: str
    text: str
    citations: tuple[Citation, ...]


class Conversing:
    """One claim's."""

    def __init__(self, database: Database, recorder: Recorder, toolbelt: Toolbelt, thread: UUID) -> None:
        self._database, self._recorder, self._toolbelt, self._thread = database, recorder, toolbelt, thread

    async def recalled(self, words: str, most: int, turn: int, book: EvidenceBook) -> tuple[Recalled, ...]:
        """The sentences of earlier reports that share most with these words."""
        args = {"words": words, "most": most}
        key = self._recorder.next_key(CONVERSATION, args)
        step = self._recorder.recorded(key, frozenset({StepKind.TOOL}))
        if step is None:
            found = ranked(words, await self._said(), most)
            payload = _payload(CONVERSATION, args, _content(found))
            detail = f"{len(found)} sentences of earlier reports"
            draft = StepDraft(StepKind.TOOL, words, payload, "recall", detail, turn=turn, key=key)
            self._toolbelt.expect(CONVERSATION, payload, LABEL)
            (step,) = await self._recorder.append(draft)
        return recalled_in(step, book)

    async def notes(self) -> tuple[Note, ...]:
        """What earlier runs of the thread left."""
        key = self._recorder.next_key(NOTES)
        step = self._recorder.recorded(key, frozenset({StepKind.TOOL}))
        if step is None:
            async with self._database.transaction(self._recorder.fence.tenant) as connection:
                left = await conversation.notes(connection, self._thread, self._recorder.fence.run, MOST_NOTES)
            content = {"notes": [{"key": k, "text": text, "run": str(run)} for k, text, run in left]}
            payload = _payload(NOTES, {}, content)
            draft = StepDraft(StepKind.TOOL, "Notes of this thread", payload, "recall", f"{len(left)} notes", key=key)
            self._toolbelt.expect(NOTES, payload, LABEL)
            (step,) = await self._recorder.append(draft)
        return notes_in(step)

    async def _said(self) -> list[Said]:
        """Every sentence of the thread's earlier reports, newest report first."""
        said: list[Said] = []
        async with self._database.transaction(self._recorder.fence.tenant) as connection:
            for run, question in await conversation.earlier(
                connection, self._thread, self._recorder.fence.run, MOST_RUNS
            ):
                if report := await reports.latest(connection, run):
                    said += _sentences(run, question, report)
        return said


def note_draft(key: str, text: str) -> StepDraft:
    """The step that leaves a note."""
    kept = text[:LONGEST_NOTE]
    return StepDraft(StepKind.NOTE, f"{key}: {kept}", {"remember": key, "text": kept} | LABEL.as_json(), "remember")


def ranked(words: str, said: Sequence[Said], most: int) -> list[Said]:
    """The sentences that hold most of the words, rare ones counting more, the newer first. None of the words: out."""
    asked = set(terms(words))
    held = [asked & set(terms(f"{one.text} {one.question}")) for one in said]
    counts = Counter(word for words_held in held for word in words_held)
    scores = [sum(1 / counts[word] for word in sorted(words_held)) for words_held in held]
    order = sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: (-len(held[n]), -scores[n], n))
    return [said[n] for n in order[:most]]


def recalled_in(step: Step, book: EvidenceBook) -> tuple[Recalled, ...]:
    """A recorded look-up as the graph reads it; ids are those of the run's own book."""
    ids = {piece.span: piece.id for piece in book.all().values()}
    found: list[dict[str, Any]] = step.payload["content"]["sentences"]
    return tuple(_recalled(one, step.payload["content"]["passages"], ids) for one in found)


def notes_in(step: Step) -> tuple[Note, ...]:
    return tuple(Note(n["key"], n["text"], UUID(n["run"])) for n in step.payload["content"]["notes"])


def _sentences(run: UUID, question: str, report: Report) -> list[Said]:
    by_number = {c.number: c for c in report.citations if c.span.artefact != UUID(int=0)}
    return [
        Said(run, question, s.text, tuple(by_number[n] for n in s.citations if n in by_number))
        for s in report.sentences()
    ]


def _content(found: Sequence[Said]) -> dict[str, Any]:
    citations = list(dict.fromkeys(c for one in found for c in one.citations))
    sentences = [
        {
            "run": str(one.run),
            "question": one.question,
            "text": one.text,
            "passages": [citations.index(c) for c in one.citations],
        }
        for one in found
    ]
    return {"passages": list(map(_passage, citations)), "sentences": sentences}


def _passage(citation: Citation) -> dict[str, Any]:
    span = asdict(citation.span) | {"artefact": str(citation.span.artefact)}
    return span | {"source": str(citation.source), "text": citation.quote, "title": citation.title}


def _recalled(one: dict[str, Any], passages: Sequence[dict[str, Any]], ids: dict[Span, str]) -> Recalled:
    numbers: list[int] = one["passages"]
    places = [passages[n] for n in numbers]
    spans = [Span(UUID(p["artefact"]), p["start"], p["end"]) for p in places]
    found = tuple(dict.fromkeys(ids[span] for span in spans if span in ids))
    return Recalled(UUID(one["run"]), one["question"], one["text"], found)


def _payload(tool: str, args: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"rule": "", "message": "", "spans": [], "used": {}, "received": {}}
    return {"tool": tool, "args": args, "status": ToolStatus.OK, "content": content} | empty | LABEL.as_json()

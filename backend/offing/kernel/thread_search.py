"""Search the earlier reports of the run's thread, and read its notes. Each look-up is a step."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from offing.core import provenance
from offing.core.evidence import EvidenceBook
from offing.core.provenance import Label, Origin, Trust
from offing.core.report import Citation
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import Span, ToolStatus
from offing.kernel.call_key import CallKeys
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import OBSERVATIONS
from offing.kernel.step_cache import StepCache
from offing.kernel.store import Entry, ThreadReport, ThreadSentence, ThreadStore
from offing.kernel.tool_executor import ToolExecutor
from offing.library.terms import terms
from offing.sdk.conversation import CONVERSATION, LONGEST_NOTE, NOTES, Note, Recalled

MOST_RUNS = 20
"""Earlier runs that are searched, the latest."""
MOST_NOTES = 50

LABEL = Label(Origin(provenance.Kind.MEMORY), Trust.UNTRUSTED)


class ThreadSearch:
    """One claim's."""

    def __init__(
        self, keys: CallKeys, journal: Journal, executor: ToolExecutor, cache: StepCache, store: ThreadStore
    ) -> None:
        self._keys, self._journal, self._executor = keys, journal, executor
        self._cache, self._store = cache, store

    async def recalled(self, words: str, most: int, turn: int) -> tuple[Recalled, ...]:
        """Return the sentences of earlier reports that share most with these words."""
        args = {"words": words, "most": most}
        call = self._keys.next(CONVERSATION, args)
        step = self._journal.take(call, OBSERVATIONS)
        if step is None:
            self._journal.check_new(call)
            reports = await self._store.thread_reports(MOST_RUNS)
            found = ranked(words, [sentence for one in reports for sentence in _sentences(one)], most)
            payload = _payload(CONVERSATION, args, _content(found))
            detail = f"{len(found)} sentences of earlier reports"
            draft = StepDraft(StepKind.TOOL, words, payload, "recall", detail, turn=turn, key=call.key)
            step = await self._append(CONVERSATION, draft, payload)
        return recalled_in(step, await self._cache.evidence())

    async def notes(self) -> tuple[Note, ...]:
        """Return the notes that earlier runs of the thread left."""
        call = self._keys.next(NOTES)
        step = self._journal.take(call, OBSERVATIONS)
        if step is None:
            self._journal.check_new(call)
            left = await self._store.thread_notes(MOST_NOTES)
            content = {"notes": [{"key": k, "text": text, "run": str(run)} for k, text, run in left]}
            payload = _payload(NOTES, {}, content)
            draft = StepDraft(
                StepKind.TOOL, "Notes of this thread", payload, "recall", f"{len(left)} notes", key=call.key
            )
            step = await self._append(NOTES, draft, payload)
        return notes_in(step)

    async def _append(self, name: str, draft: StepDraft, payload: dict[str, Any]) -> Step:
        self._executor.expect(name, payload, LABEL)
        (step,) = await self._journal.append(Entry(draft))
        return step


def note_draft(key: str, text: str) -> StepDraft:
    """The step that leaves a note."""
    kept = text[:LONGEST_NOTE]
    return StepDraft(StepKind.NOTE, f"{key}: {kept}", {"remember": key, "text": kept} | LABEL.as_json(), "remember")


def ranked(words: str, said: Sequence[ThreadSentence], most: int) -> list[ThreadSentence]:
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


def _sentences(earlier: ThreadReport) -> list[ThreadSentence]:
    by_number = {c.number: c for c in earlier.report.citations if c.span.artefact != UUID(int=0)}
    return [
        ThreadSentence(
            earlier.run, earlier.question, s.text, tuple(by_number[n] for n in s.citations if n in by_number)
        )
        for s in earlier.report.sentences()
    ]


def _content(found: Sequence[ThreadSentence]) -> dict[str, Any]:
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

"""Search the earlier reports of the run's thread, and read its notes. Each lookup is a step."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from offing.core import provenance
from offing.core.evidence import EvidenceIndex
from offing.core.provenance import Origin, ProvenanceLabel, TrustLevel
from offing.core.report import Citation
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import SourceSpan, ToolStatus
from offing.kernel.call_key import CallKeys
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import TOOL_RESULT_KINDS
from offing.kernel.run_store import JournalEntry, ThreadReport, ThreadSentence, ThreadStore
from offing.kernel.step_cache import StepCache
from offing.kernel.tool_executor import ToolExecutor
from offing.library.terms import extract_terms
from offing.sdk.thread_memory import MAX_NOTE_CHARS, THREAD_NOTES, THREAD_SEARCH, ThreadFinding, ThreadNote

MAX_RUNS = 20
"""Maximum number of earlier runs to search. The latest are searched."""
MAX_NOTES = 50

PROVENANCE = ProvenanceLabel(Origin(provenance.OriginKind.MEMORY), TrustLevel.UNTRUSTED)


class ThreadSearch:
    """The thread searches of one claim."""

    def __init__(
        self, keys: CallKeys, journal: Journal, executor: ToolExecutor, cache: StepCache, store: ThreadStore
    ) -> None:
        self._keys, self._journal, self._executor = keys, journal, executor
        self._cache, self._store = cache, store

    async def search_reports(self, query: str, limit: int, turn: int) -> tuple[ThreadFinding, ...]:
        """Return the sentences of earlier reports that best match the query."""
        args = {"words": query, "most": limit}
        call = self._keys.next_call(THREAD_SEARCH, args)
        step = self._journal.take_recorded(call, TOOL_RESULT_KINDS)
        if step is None:
            self._journal.check_new(call)
            reports = await self._store.list_thread_reports(MAX_RUNS)
            ranked = rank_sentences(query, [sentence for one in reports for sentence in _list_sentences(one)], limit)
            payload = _build_payload(THREAD_SEARCH, args, _build_content(ranked))
            detail = f"{len(ranked)} sentences of earlier reports"
            draft = StepDraft(StepKind.TOOL_RESULT, query, payload, "recall", detail, turn=turn, call_key=call.key)
            step = await self._append(THREAD_SEARCH, draft, payload)
        return findings_from_step(step, await self._cache.get_evidence())

    async def load_notes(self) -> tuple[ThreadNote, ...]:
        """Return the notes of earlier runs of the thread."""
        call = self._keys.next_call(THREAD_NOTES)
        step = self._journal.take_recorded(call, TOOL_RESULT_KINDS)
        if step is None:
            self._journal.check_new(call)
            remaining = await self._store.list_thread_notes(MAX_NOTES)
            content = {"notes": [{"key": k, "text": text, "run": str(run)} for k, text, run in remaining]}
            payload = _build_payload(THREAD_NOTES, {}, content)
            draft = StepDraft(
                StepKind.TOOL_RESULT,
                "Notes of this thread",
                payload,
                "recall",
                f"{len(remaining)} notes",
                call_key=call.key,
            )
            step = await self._append(THREAD_NOTES, draft, payload)
        return notes_from_step(step)

    async def _append(self, name: str, draft: StepDraft, payload: dict[str, Any]) -> Step:
        self._executor.add_external_result(name, payload, PROVENANCE)
        (step,) = await self._journal.append(JournalEntry(draft))
        return step


def draft_note(key: str, text: str) -> StepDraft:
    """Return the step that saves a note."""
    excerpt = text[:MAX_NOTE_CHARS]
    return StepDraft(
        StepKind.NOTE, f"{key}: {excerpt}", {"remember": key, "text": excerpt} | PROVENANCE.to_json(), "remember"
    )


def rank_sentences(query: str, sentences: Sequence[ThreadSentence], limit: int) -> list[ThreadSentence]:
    """Return the sentences that contain most of the query's words, best first.

    Rare words count more, and newer sentences come before older ones. Sentences without any of the
    words are left out.
    """
    query_terms = set(extract_terms(query))
    matching_terms = [query_terms & set(extract_terms(f"{one.text} {one.question}")) for one in sentences]
    counts = Counter(word for terms in matching_terms for word in terms)
    scores = [sum(1 / counts[word] for word in sorted(words_held)) for words_held in matching_terms]
    order = sorted(
        (n for n, score in enumerate(scores) if score > 0), key=lambda n: (-len(matching_terms[n]), -scores[n], n)
    )
    return [sentences[n] for n in order[:limit]]


def findings_from_step(step: Step, evidence: EvidenceIndex) -> tuple[ThreadFinding, ...]:
    """Return the findings of a recorded search. Evidence ids are those of this run."""
    ids = {item.span: item.id for item in evidence.as_dict().values()}
    sentences: list[dict[str, Any]] = step.payload["content"]["sentences"]
    return tuple(_finding_from_json(one, step.payload["content"]["passages"], ids) for one in sentences)


def notes_from_step(step: Step) -> tuple[ThreadNote, ...]:
    return tuple(ThreadNote(n["key"], n["text"], UUID(n["run"])) for n in step.payload["content"]["notes"])


def _list_sentences(earlier: ThreadReport) -> list[ThreadSentence]:
    by_number = {c.number: c for c in earlier.report.citations if c.span.text_id != UUID(int=0)}
    return [
        ThreadSentence(
            earlier.run_id, earlier.question, s.text, tuple(by_number[n] for n in s.citations if n in by_number)
        )
        for s in earlier.report.sentences()
    ]


def _build_content(earlier_sentences: Sequence[ThreadSentence]) -> dict[str, Any]:
    citations = list(dict.fromkeys(c for one in earlier_sentences for c in one.citations))
    sentences = [
        {
            "run": str(one.run_id),
            "question": one.question,
            "text": one.text,
            "passages": [citations.index(c) for c in one.citations],
        }
        for one in earlier_sentences
    ]
    return {"passages": list(map(_passage_to_json, citations)), "sentences": sentences}


def _passage_to_json(citation: Citation) -> dict[str, Any]:
    span = {"text_id": str(citation.span.text_id), "start": citation.span.start, "end": citation.span.end}
    return span | {"source": str(citation.source_id), "text": citation.quote, "title": citation.title}


def _finding_from_json(
    sentence: dict[str, Any], passages: Sequence[dict[str, Any]], ids: dict[SourceSpan, str]
) -> ThreadFinding:
    numbers: list[int] = sentence["passages"]
    cited_passages = [passages[n] for n in numbers]
    spans = [SourceSpan(UUID(p["text_id"]), p["start"], p["end"]) for p in cited_passages]
    evidence_ids = tuple(dict.fromkeys(ids[span] for span in spans if span in ids))
    return ThreadFinding(UUID(sentence["run"]), sentence["question"], sentence["text"], evidence_ids)


def _build_payload(tool: str, args: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"rule": "", "message": "", "spans": [], "used": {}, "received": {}}
    return {"tool": tool, "args": args, "status": ToolStatus.OK, "content": content} | empty | PROVENANCE.to_json()

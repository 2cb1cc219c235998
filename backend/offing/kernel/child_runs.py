"""Child runs as nodes ask for them: created once, waited for without a worker, consumed and charged once.

The end of the last child run queues the parent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from offing.core import provenance
from offing.core.evidence import EvidenceBook
from offing.core.provenance import Label, Origin, Trust, label_in
from offing.core.report import Evidence, Report, Sentence
from offing.core.run import RunStatus, Spent, StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.tool import Span, ToolStatus
from offing.kernel.call_key import Call, CallKeys
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import OBSERVATIONS
from offing.kernel.step_cache import StepCache
from offing.kernel.store import ChildRecord, ChildRun, ChildRunStore, ChildRunsUnavailable, Entry, ParentUsage
from offing.kernel.store import ChildResult as StoredResult
from offing.kernel.tool_executor import ToolExecutor
from offing.kernel.wait_conditions import ForRuns, wait
from offing.sdk.children import CHILD_RUN, ChildRequest, ChildResult, Finding, NoChildren

PASSAGES = 24
"""Passages that a child brings at most; those that its report cites come first."""

LABEL = Label(Origin(provenance.Kind.TOOL, CHILD_RUN), Trust.UNTRUSTED)
"""Of what a child wrote: it was made from documents."""


class ChildRunClient:
    """The child runs of one claim's run."""

    def __init__(
        self, keys: CallKeys, journal: Journal, executor: ToolExecutor, cache: StepCache, store: ChildRunStore
    ) -> None:
        self._keys, self._journal, self._executor = keys, journal, executor
        self._cache, self._store = cache, store

    async def results(self, requests: Sequence[ChildRequest], turn: int) -> tuple[ChildResult, ...] | NoChildren:
        """Return the results of these child runs. Leaves the node by an interrupt while one of them has not ended."""
        if not requests:
            return ()
        calls = [self._keys.next(CHILD_RUN, asdict(request)) for request in requests]
        asked = [(call.key, request) for call, request in zip(calls, requests, strict=True)]
        recorded = {call.key: self._journal.take(call, OBSERVATIONS) for call in calls}
        known = {key: step for key, step in recorded.items() if step is not None}
        if reason := next((step.payload["refused"] for step in known.values() if "refused" in step.payload), ""):
            return NoChildren(reason)
        if missing := [one for one in asked if one[0] not in known]:
            await self._check_new(calls, known)
            made = await self._created(missing)
            if isinstance(made, ChildRunsUnavailable):
                return await self._refused(missing[0], made.reason, turn)
            if unended := tuple(child.id for child in made if not child.has_ended):
                wait(ForRuns(unended))
            for (key, request), child in zip(missing, made, strict=True):
                known[key] = await self._consume(key, request, child, turn)
        book = await self._cache.evidence()
        return tuple(child_result(known[key], book) for key, _ in asked)

    async def _check_new(self, calls: Sequence[Call], known: Mapping[CallKey, Step]) -> None:
        """A child run that is on record, and was not asked for again, must not get another beside it."""
        for call in (call for call in calls if call.key not in known):
            self._journal.check_new(call)
            await self._journal.check_child(call)

    async def _created(
        self, wanted: Sequence[tuple[CallKey, ChildRequest]]
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        await self._journal.flush()
        usage = ParentUsage(self._journal.usage.spent, self._executor.used, self._executor.received)
        return await self._store.create_children(wanted, usage)

    async def _refused(self, asked: tuple[CallKey, ChildRequest], reason: str, turn: int) -> NoChildren:
        """On record, so that a node that runs again is refused again."""
        key, request = asked
        payload = _payload(request, ToolStatus.DENIED, reason) | {"refused": reason} | provenance.PLATFORM.as_json()
        title = f"No child runs: {reason}"
        draft = StepDraft(StepKind.TOOL, title, payload, "child", detail=reason, ok=False, turn=turn, key=key)
        await self._journal.append(Entry(draft))
        return NoChildren(reason)

    async def _consume(self, key: CallKey, request: ChildRequest, child: ChildRun, turn: int) -> Step:
        """Record what an ended child run brought, and charge what it used, once."""
        brought = _brought(request, child, await self._store.child_result(child.id))
        count = len(brought["spans"])
        ending = f"{(child.stop_reason or child.status).replace('_', ' ')} · {count} passages"
        ok = child.status is RunStatus.DONE
        draft = StepDraft(StepKind.TOOL, request.question, brought, "child", ending, ok=ok, turn=turn, key=key)
        self._journal.usage.add_child(key, child.spent)
        self._executor.expect(CHILD_RUN, brought, LABEL)
        (step,) = await self._journal.append(Entry(draft, ChildRecord(child.id)))
        self._executor.add_child(brought)
        return step


def _brought(request: ChildRequest, child: ChildRun, left: StoredResult) -> dict[str, Any]:
    """The payload of the step that records a child run: what it found, how it ended and what it used."""
    report, book = left.report, EvidenceBook()
    for step in left.observations:
        book.add(step.payload["content"], label_in(step.payload))
    passages = _chosen(report, tuple(book.all().values()))
    content = {
        "passages": [_passage(p) for p in passages],
        "answer": report.answer.text if report and report.answer else "",
        "findings": [_finding(s, report, passages) for s in report.sentences()] if report else [],
        "limits": report.limits if report else "",
    }
    done = child.status is RunStatus.DONE
    message = "" if done else child.error or f"It was {child.status}."
    ending = {
        "run": str(child.id),
        "ended": child.status,
        "stop_reason": child.stop_reason or StopReason.CANCELLED,
        "spent": asdict(child.spent) | {"usd": str(child.spent.usd)},
        "used": left.used,
        "received": left.received,
    }
    spans = [{"artefact": str(p.span.artefact), "start": p.span.start, "end": p.span.end} for p in passages]
    said = _payload(request, ToolStatus.OK if done else ToolStatus.FAILED, message)
    return said | {"content": content, "spans": spans} | ending | LABEL.as_json()


def _payload(request: ChildRequest, status: ToolStatus, message: str) -> dict[str, Any]:
    return {
        "tool": CHILD_RUN,
        "args": {"question": request.question, "graph": request.graph},
        "status": status,
        "rule": "",
        "content": {},
        "message": message,
        "spans": [],
    }


def _chosen(report: Report | None, retrieved: Sequence[Evidence]) -> list[Evidence]:
    """The passages that a report cites, and then others in the order in which they were found."""
    cited = [c.span for c in report.citations] if report else []
    first = [p for p in retrieved if any(p.span.holds(span) for span in cited)]
    return [*first, *(p for p in retrieved if p not in first)][:PASSAGES]


def _passage(piece: Evidence) -> dict[str, Any]:
    return {
        "artefact": str(piece.span.artefact),
        "source": str(piece.source),
        "start": piece.span.start,
        "end": piece.span.end,
        "text": piece.text,
        "title": piece.title,
        "heading": piece.heading,
        "name": piece.name,
    }


def _finding(sentence: Sentence, report: Report | None, passages: Sequence[Evidence]) -> dict[str, Any]:
    """A sentence with the places of its passages among those that are brought."""
    numbers = set(sentence.citations)
    spans = [c.span for c in report.citations if c.number in numbers] if report else []
    stands_on = [n for n, p in enumerate(passages) if any(p.span.holds(span) for span in spans)]
    return {"text": sentence.text, "passages": stands_on}


def child_result(step: Step, book: EvidenceBook) -> ChildResult:
    """A recorded child as its parent reads it. Ids are those of the parent's own book."""
    p, by_span = step.payload, {piece.span: piece for piece in book.all().values()}
    spans = [Span(UUID(s["artefact"]), s["start"], s["end"]) for s in p["spans"]]
    brought = [by_span[span] for span in spans if span in by_span]
    ids: list[str] = [by_span[span].id if span in by_span else "" for span in spans]
    findings = tuple(_read(f["text"], f["passages"], ids) for f in p["content"]["findings"])
    return ChildResult(
        seq=step.seq,
        run=UUID(p["run"]),
        question=p["args"]["question"],
        status=RunStatus(p["ended"]),
        stop=StopReason(p["stop_reason"]),
        spent=replace(Spent(**p["spent"]), usd=Decimal(p["spent"]["usd"])),
        answer=p["content"]["answer"],
        limits=p["content"]["limits"],
        evidence=tuple(brought),
        findings=findings,
    )


def _read(text: str, stands_on: Sequence[int], ids: Sequence[str]) -> Finding:
    return Finding(text, tuple(ids[n] for n in stands_on if ids[n]))

"""Child runs of a node: created once, awaited without a worker, consumed and charged once.

The end of the last child run queues the parent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from offing.core import provenance
from offing.core.evidence import EvidenceIndex
from offing.core.provenance import Origin, ProvenanceLabel, TrustLevel, parse_label
from offing.core.report import Evidence, Report, Sentence
from offing.core.run import RunStatus, RunUsage, StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.tool import SourceSpan, ToolStatus
from offing.kernel.call_key import CallKeys, NodeCall
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import TOOL_RESULT_KINDS
from offing.kernel.run_store import ChildRun, ChildRunAttachment, ChildRunStore, JournalEntry, ParentUsage
from offing.kernel.run_store import StoredChildResult as StoredResult
from offing.kernel.step_cache import StepCache
from offing.kernel.tool_executor import ToolExecutor
from offing.kernel.wait_conditions import ChildRunsWait, suspend_node
from offing.sdk.child_runs import CHILD_RUN, ChildFinding, ChildRequest, ChildResult, ChildRunsUnavailable

MAX_PASSAGES = 24
"""Maximum number of passages of a child run. Passages that its report cites come first."""

PROVENANCE = ProvenanceLabel(Origin(provenance.OriginKind.TOOL, CHILD_RUN), TrustLevel.UNTRUSTED)
"""Provenance of the text of a child run, which is derived from documents."""


class ChildRunClient:
    """The child runs of one claimed run."""

    def __init__(
        self, keys: CallKeys, journal: Journal, executor: ToolExecutor, cache: StepCache, store: ChildRunStore
    ) -> None:
        self._keys, self._journal, self._executor = keys, journal, executor
        self._cache, self._store = cache, store

    async def get_results(
        self, requests: Sequence[ChildRequest], turn: int
    ) -> tuple[ChildResult, ...] | ChildRunsUnavailable:
        """Return the results of child runs.

        Suspends the node by an interrupt while one of the child runs has not ended.
        """
        if not requests:
            return ()
        calls = [self._keys.next_call(CHILD_RUN, asdict(request)) for request in requests]
        keyed_requests = [(call.key, request) for call, request in zip(calls, requests, strict=True)]
        recorded = {call.key: self._journal.take_recorded(call, TOOL_RESULT_KINDS) for call in calls}
        existing = {key: step for key, step in recorded.items() if step is not None}
        if reason := next((step.payload["rejected"] for step in existing.values() if "rejected" in step.payload), ""):
            return ChildRunsUnavailable(reason)
        if missing := [one for one in keyed_requests if one[0] not in existing]:
            await self._check_new(calls, existing)
            created = await self._create_children(missing)
            if isinstance(created, ChildRunsUnavailable):
                return await self._record_refusal(missing[0], created.reason, turn)
            if unended := tuple(child.id for child in created if not child.has_ended):
                suspend_node(ChildRunsWait(unended))
            for (key, request), child in zip(missing, created, strict=True):
                existing[key] = await self._consume_result(key, request, child, turn)
        book = await self._cache.get_evidence()
        return tuple(child_result_from_step(existing[key], book) for key, _ in keyed_requests)

    async def _check_new(self, calls: Sequence[NodeCall], existing: Mapping[CallKey, Step]) -> None:
        """Check that no recorded child run would be duplicated because its node did not request it again."""
        for call in (call for call in calls if call.key not in existing):
            self._journal.check_new(call)
            await self._journal.check_child_run(call)

    async def _create_children(
        self, requests: Sequence[tuple[CallKey, ChildRequest]]
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        await self._journal.flush()
        usage = ParentUsage(self._journal.usage_ledger.total, self._executor.call_counts, self._executor.received_bytes)
        return await self._store.create_children(requests, usage)

    async def _record_refusal(
        self, keyed_request: tuple[CallKey, ChildRequest], reason: str, turn: int
    ) -> ChildRunsUnavailable:
        """Record a rejection, so that a node that runs again gets the same rejection."""
        key, request = keyed_request
        payload = (
            _build_base_payload(request, ToolStatus.DENIED, reason)
            | {"rejected": reason}
            | provenance.PLATFORM_LABEL.to_json()
        )
        title = f"No child runs: {reason}"
        draft = StepDraft(
            StepKind.TOOL_RESULT, title, payload, "child", detail=reason, ok=False, turn=turn, call_key=key
        )
        await self._journal.append(JournalEntry(draft))
        return ChildRunsUnavailable(reason)

    async def _consume_result(self, key: CallKey, request: ChildRequest, child: ChildRun, turn: int) -> Step:
        """Record the result of an ended child run, and charge its usage once."""
        brought = _build_result_payload(request, child, await self._store.get_child_result(child.id))
        count = len(brought["spans"])
        ending = f"{(child.stop_reason or child.status).replace('_', ' ')} · {count} passages"
        ok = child.status is RunStatus.DONE
        draft = StepDraft(
            StepKind.TOOL_RESULT, request.question, brought, "child", ending, ok=ok, turn=turn, call_key=key
        )
        self._journal.usage_ledger.add_child_usage(key, child.usage)
        self._executor.add_external_result(CHILD_RUN, brought, PROVENANCE)
        (step,) = await self._journal.append(JournalEntry(draft, ChildRunAttachment(child.id)))
        self._executor.add_child_usage(brought)
        return step


def _build_result_payload(request: ChildRequest, child: ChildRun, result: StoredResult) -> dict[str, Any]:
    """Build the payload of the step that records a child run: its findings, its ending and its usage."""
    report, book = result.report, EvidenceIndex()
    for step in result.tool_results:
        book.add(step.payload["content"], parse_label(step.payload))
    passages = _select_passages(report, tuple(book.as_dict().values()))
    content = {
        "passages": [_passage_to_json(p) for p in passages],
        "answer": report.answer.text if report and report.answer else "",
        "findings": [_finding_to_json(s, report, passages) for s in report.sentences()] if report else [],
        "limits": report.limits if report else "",
    }
    is_done = child.status is RunStatus.DONE
    message = "" if is_done else child.error or f"It was {child.status}."
    ending = {
        "run": str(child.id),
        "ended": child.status,
        "stop_reason": child.stop_reason or StopReason.CANCELLED,
        "child_usage": asdict(child.usage) | {"cost_usd": str(child.usage.cost_usd)},
        "used": result.call_counts,
        "received": result.received_bytes,
    }
    spans = [{"text_id": str(p.span.text_id), "start": p.span.start, "end": p.span.end} for p in passages]
    payload = _build_base_payload(request, ToolStatus.OK if is_done else ToolStatus.FAILED, message)
    return payload | {"content": content, "spans": spans} | ending | PROVENANCE.to_json()


def _build_base_payload(request: ChildRequest, status: ToolStatus, message: str) -> dict[str, Any]:
    return {
        "tool": CHILD_RUN,
        "args": {"question": request.question, "graph": request.graph},
        "status": status,
        "rule": "",
        "content": {},
        "message": message,
        "spans": [],
    }


def _select_passages(report: Report | None, retrieved: Sequence[Evidence]) -> list[Evidence]:
    """Return the passages that a report cites, followed by others in the order of retrieval."""
    cited = [c.span for c in report.cited()] if report else []
    first = [p for p in retrieved if any(p.span.overlaps(span) for span in cited)]
    return [*first, *(p for p in retrieved if p not in first)][:MAX_PASSAGES]


def _passage_to_json(evidence: Evidence) -> dict[str, Any]:
    return {
        "text_id": str(evidence.span.text_id),
        "source": str(evidence.source_id),
        "start": evidence.span.start,
        "end": evidence.span.end,
        "text": evidence.text,
        "title": evidence.title,
        "heading": evidence.heading,
        "name": evidence.name,
    }


def _finding_to_json(sentence: Sentence, report: Report | None, passages: Sequence[Evidence]) -> dict[str, Any]:
    """Return a sentence as JSON, with the indices of its passages in `passages`."""
    numbers = {*sentence.citations, *sentence.passages}
    spans = [c.span for c in report.citations if c.number in numbers] if report else []
    stands_on = [n for n, p in enumerate(passages) if any(p.span.overlaps(span) for span in spans)]
    return {"text": sentence.text, "passages": stands_on}


def child_result_from_step(step: Step, evidence: EvidenceIndex) -> ChildResult:
    """Return a recorded child result for the parent. Evidence ids are those of the parent."""
    p, by_span = step.payload, {item.span: item for item in evidence.as_dict().values()}
    spans = [SourceSpan(UUID(s["text_id"]), s["start"], s["end"]) for s in p["spans"]]
    brought = [by_span[span] for span in spans if span in by_span]
    ids: list[str] = [by_span[span].id if span in by_span else "" for span in spans]
    findings = tuple(_build_finding(f["text"], f["passages"], ids) for f in p["content"]["findings"])
    return ChildResult(
        seq=step.seq,
        run_id=UUID(p["run"]),
        question=p["args"]["question"],
        status=RunStatus(p["ended"]),
        stop=StopReason(p["stop_reason"]),
        usage=replace(RunUsage(**p["child_usage"]), cost_usd=Decimal(p["child_usage"]["cost_usd"])),
        answer=p["content"]["answer"],
        limits=p["content"]["limits"],
        evidence=tuple(brought),
        findings=findings,
    )


def _build_finding(text: str, passage_indices: Sequence[int], ids: Sequence[str]) -> ChildFinding:
    return ChildFinding(text, tuple(ids[n] for n in passage_indices if ids[n]))

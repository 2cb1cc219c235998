"""A run's children as its nodes ask for them: made once, waited for without a worker, taken up and paid for once.

The only home of how a child's ending becomes a step of its parent. Knows no queue: the ending of the last child
queues the parent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from offing.core import provenance
from offing.core.evidence import EvidenceBook
from offing.core.provenance import Label, Origin, Trust, label_in
from offing.core.report import Evidence, Report, Sentence
from offing.core.run import RunStatus, Spent, StopReason
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.tool import Span, ToolStatus
from offing.sdk import Graph
from offing.sdk.children import CHILD_RUN, ChildRequest, ChildResult, Finding, NoChildren
from offing.services import child_runs as services
from offing.services.child_runs import Had, Refused
from offing.storage import child_runs, reports, steps
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing_workers.recorder import Recorder
from offing_workers.toolbelt import Toolbelt
from offing_workers.waiting import ForRuns, wait

PASSAGES = 24
"""Passages that a child brings at most; those that its report cites come first."""

LABEL = Label(Origin(provenance.Kind.TOOL, CHILD_RUN), Trust.UNTRUSTED)
"""Of what a child wrote: it was made from documents."""


class Wakes(Protocol):
    async def wake(self, run: UUID) -> None: ...


class Children:
    """The children of one claim's run."""

    def __init__(
        self,
        database: Database,
        recorder: Recorder,
        toolbelt: Toolbelt,
        wakes: Wakes,
        row: RunRow,
        graphs: Mapping[str, Graph],
    ) -> None:
        self._database, self._recorder, self._toolbelt, self._wakes = database, recorder, toolbelt, wakes
        self._row, self._graphs = row, graphs

    async def results(
        self, requests: Sequence[ChildRequest], turn: int, book: EvidenceBook
    ) -> tuple[ChildResult, ...] | NoChildren:
        """What these children came to. Leaves the node by an interrupt while one of them has not ended."""
        if not requests:
            return ()
        asked = [(self._recorder.next_key(CHILD_RUN, asdict(request)), request) for request in requests]
        recorded = {key: self._recorder.recorded(key, frozenset({StepKind.TOOL})) for key, _ in asked}
        known = {key: step for key, step in recorded.items() if step is not None}
        if reason := next((step.payload["refused"] for step in known.values() if "refused" in step.payload), ""):
            return NoChildren(reason)
        if missing := [one for one in asked if one[0] not in known]:
            made = await self._made(missing)
            if isinstance(made, Refused):
                return await self._refused(missing[0], made.reason, turn)
            if unended := tuple(child.id for child in made if not child.terminal):
                wait(ForRuns(unended))
            for (key, request), child in zip(missing, made, strict=True):
                known[key] = await self._taken_up(key, request, child, turn)
        return tuple(child_result(known[key], book) for key, _ in asked)

    async def _made(self, wanted: Sequence[tuple[CallKey, ChildRequest]]) -> list[RunRow] | Refused:
        if self._row.kind == "rollout":
            return Refused("A rollout works alone: what others did would not be its policy's.")
        if self._row.durability == "exit":
            return Refused("A run that writes nothing before its end cannot wait for others.")
        await self._recorder.settle()
        fence, had = self._recorder.fence, self._had()
        async with self._database.transaction(fence.tenant) as connection:
            made = await services.make(connection, fence, self._row, wanted, self._graphs, had)
        if not isinstance(made, Refused):
            for child in made:
                if child.status is RunStatus.QUEUED and child.fence == 0:
                    await self._wakes.wake(child.id)
        return made

    def _had(self) -> Had:
        return Had(self._recorder.spent, self._toolbelt.used, self._toolbelt.received)

    async def _refused(self, asked: tuple[CallKey, ChildRequest], reason: str, turn: int) -> NoChildren:
        """On record, so that a node that runs again is refused again."""
        key, request = asked
        payload = _payload(request, ToolStatus.DENIED, reason) | {"refused": reason} | provenance.PLATFORM.as_json()
        title = f"No child runs: {reason}"
        draft = StepDraft(StepKind.TOOL, title, payload, "child", detail=reason, ok=False, turn=turn, key=key)
        await self._recorder.append(draft)
        return NoChildren(reason)

    async def _taken_up(self, key: CallKey, request: ChildRequest, child: RunRow, turn: int) -> Step:
        """Record what an ended child brought, and book what it used, once."""
        async with self._database.transaction(self._recorder.fence.tenant) as connection:
            brought = await _brought(connection, request, child)

        async def collected(connection: Connection, _: list[Step]) -> None:
            await child_runs.collect(connection, self._row.id, child.id)

        count = len(brought["spans"])
        ending = f"{(child.stop_reason or child.status).replace('_', ' ')} · {count} passages"
        ok = child.status is RunStatus.DONE
        draft = StepDraft(StepKind.TOOL, request.question, brought, "child", ending, ok=ok, turn=turn, key=key)
        self._recorder.adopt(key, child.spent)
        self._toolbelt.expect(CHILD_RUN, brought, LABEL)
        (step,) = await self._recorder.append(draft, also=collected)
        self._toolbelt.adopt(brought)
        return step


async def _brought(connection: Connection, request: ChildRequest, child: RunRow) -> dict[str, Any]:
    """The payload of the step that records a child: what it found, how it ended and what it used."""
    report = await reports.latest(connection, child.id)
    book = EvidenceBook()
    for step in await steps.last_of_kind(connection, child.id, StepKind.TOOL, 10_000):
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
        "used": await child_runs.tools(connection, child.id, "used"),
        "received": await child_runs.tools(connection, child.id, "received"),
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

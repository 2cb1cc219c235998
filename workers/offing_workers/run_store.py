"""One run in Postgres, as the kernel reads and writes it for an epoch of a claim."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from offing.core.model import Answer
from offing.core.question import Answerer, Question
from offing.core.report import Report
from offing.core.run import Fence, RunStatus
from offing.core.step import CallKey, Step, StepKind
from offing.core.store_item import ItemPut
from offing.core.tool import Effect, Span
from offing.core.trajectory import Tail
from offing.core.usage import UsageDelta
from offing.kernel.store import (
    ChildRecord,
    ChildResult,
    ChildRun,
    ChildRunsUnavailable,
    Entry,
    Hook,
    InputRequestRecord,
    InterruptRequest,
    ItemsRecord,
    ParentUsage,
    Record,
    ReportRecord,
    ResponseRecord,
    RoleCallRecord,
    ThreadReport,
    ToolPolicyRecord,
)
from offing.sdk import Graph
from offing.sdk.children import ChildRequest
from offing.services import child_runs as child_services
from offing.services.library import texts_of
from offing.storage import (
    child_runs,
    conversation,
    intents,
    questions,
    reports,
    runs,
    segments,
    spend,
    steps,
    store_items,
    tool_policies,
    turn_rows,
    turns,
)
from offing.storage.pool import Connection, Database
from offing.storage.questions import NewQuestion
from offing.storage.runs import RunRow
from offing.storage.turn_rows import TurnRow

MAX_OBSERVATIONS = 10_000
"""Tool calls of a child run that are read."""


class Checkpoints(Protocol):
    """Where the graph stands: checkpoints that may be written together with the next append."""

    async def save(self, connection: Connection) -> Any:
        """Write what is due, in the caller's transaction, and return what that was. Raises Fenced."""
        ...

    def saved(self, due: Any) -> None:
        """That transaction was committed."""
        ...


class Wakes(Protocol):
    async def wake(self, run: UUID) -> None: ...


class PostgresRunStore:
    """The `RunStore` of one epoch. `lease_seconds`: each append renews the lease for as long."""

    def __init__(
        self,
        database: Database,
        row: RunRow,
        fence: Fence,
        lease_seconds: float,
        checkpoints: Checkpoints,
        graphs: Mapping[str, Graph],
        wakes: Wakes,
    ) -> None:
        self._database, self._row, self._fence, self._lease_seconds = database, row, fence, lease_seconds
        self._checkpoints, self._graphs, self._wakes = checkpoints, graphs, wakes
        self._saving: Any = ()
        """Checkpoints that the latest try took along."""

    # Journal ----------------------------------------------------------------------------------------------------------

    async def write(self, entries: Sequence[Entry], usage: UsageDelta, hook: Hook | None = None) -> list[Step]:
        drafts = [entry.draft for entry in entries]
        async with self._transaction() as connection:
            new = await steps.append(connection, self._fence, self._lease_seconds, drafts, usage)
            self._saving = await self._checkpoints.save(connection)
            await self._store_records(connection, entries, new)
            if untrained := [d.untrains for d in drafts if d.untrains]:
                await turns.untrain(connection, self._fence.run, untrained)
            if hook is not None:
                await hook(connection, new)
            if usage.usd or usage.released:  # last, because all runs of the tenant share that row
                await spend.settle(connection, self._fence, usage.released, usage.usd, usage.day)
        self._checkpoints.saved(self._saving)
        return new

    async def find(self, entries: Sequence[Entry], after: int) -> list[Step] | None:
        found = await self._found([entry.draft for entry in entries], after)
        if found is not None:
            self._checkpoints.saved(self._saving)
        return found

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], effect: Effect) -> bool:
        async with self._transaction() as connection:
            return await intents.declare(connection, self._fence, key, tool, dict(args), effect)

    # Steps, reports and segments --------------------------------------------------------------------------------------

    async def steps_by_seq(self, seqs: Sequence[int]) -> Sequence[Step]:
        async with self._transaction() as connection:
            return await steps.by_seq(connection, self._fence.run, seqs)

    async def last_steps(self, kind: StepKind, limit: int) -> Sequence[Step]:
        async with self._transaction() as connection:
            return await steps.last_of_kind(connection, self._fence.run, kind, limit)

    async def user_messages(self) -> Sequence[Step]:
        async with self._transaction() as connection:
            return await steps.messages(connection, self._fence.run, 0)

    async def latest_report(self) -> Report | None:
        async with self._transaction() as connection:
            return await reports.latest(connection, self._fence.run)

    async def texts(self, spans: Sequence[Span]) -> Sequence[str | None]:
        return await texts_of(self._database, self._fence.tenant, spans)

    async def segment_tails(self) -> tuple[int, Mapping[str, Tail]]:
        async with self._transaction() as connection:
            return await segments.tails_of(connection, self._fence.run)

    # Money and people -------------------------------------------------------------------------------------------------

    async def reserve(self, usd: Decimal) -> date | None:
        async with self._transaction() as connection:
            return await spend.reserve(connection, self._fence, usd)

    async def input_request(self, number: int, *, take_default: bool) -> Question | None:
        run = self._fence.run
        async with self._transaction() as connection:
            found = await questions.find(connection, run, number)
            if found is None or found.answer or found.asking.default is None:
                return found
            if take_default or await questions.overdue(connection, run, number):
                await questions.answer(connection, run, found, found.asking.default, Answerer.DEFAULT)
            return await questions.find(connection, run, number)

    async def interrupt_requests(self, ids: Sequence[str]) -> Mapping[str, InterruptRequest]:
        async with self._transaction() as connection:
            known = await questions.of_interrupts(connection, self._fence.run, ids)
            fresh = await questions.untaken(connection, self._fence.run, ids)
        return {id_: InterruptRequest(one, one.number not in fresh) for id_, one in known.items()}

    # The thread and child runs ----------------------------------------------------------------------------------------

    async def thread_reports(self, limit: int) -> Sequence[ThreadReport]:
        found: list[ThreadReport] = []
        async with self._transaction() as connection:
            for run, question in await conversation.earlier(connection, self._row.thread, self._fence.run, limit):
                if report := await reports.latest(connection, run):
                    found.append(ThreadReport(run, question, report))
        return found

    async def thread_notes(self, limit: int) -> Sequence[tuple[str, str, UUID]]:
        async with self._transaction() as connection:
            return await conversation.notes(connection, self._row.thread, self._fence.run, limit)

    async def create_children(
        self, wanted: Sequence[tuple[CallKey, ChildRequest]], usage: ParentUsage
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        if self._row.kind == "rollout":
            return ChildRunsUnavailable("A rollout works alone: what others did would not be its policy's.")
        if self._row.durability == "exit":
            return ChildRunsUnavailable("A run that writes nothing before its end cannot wait for others.")
        async with self._transaction() as connection:
            made = await child_services.make(connection, self._fence, self._row, wanted, self._graphs, usage)
        if isinstance(made, ChildRunsUnavailable):
            return made
        for child in made:
            if child.status is RunStatus.QUEUED and child.fence == 0:
                await self._wakes.wake(child.id)
        return [_child_run(row) for row in made]

    async def child_result(self, run: UUID) -> ChildResult:
        async with self._transaction() as connection:
            report = await reports.latest(connection, run)
            calls = await steps.last_of_kind(connection, run, StepKind.TOOL, MAX_OBSERVATIONS)
            used = await child_runs.tools(connection, run, "used")
            received = await child_runs.tools(connection, run, "received")
        return ChildResult(report, tuple(calls), used, received)

    def _transaction(self):
        return self._database.transaction(self._fence.tenant)

    async def _store_records(self, connection: Connection, entries: Sequence[Entry], new: Sequence[Step]) -> None:
        """Store what belongs to the steps of one append."""
        pairs = [(e.record, step.seq) for e, step in zip(entries, new, strict=True) if e.record is not None]
        async with connection.pipeline() if len(pairs) > 1 else nullcontext():  # one round trip for all of them
            await self._store_pairs(connection, pairs)

    async def _store_pairs(self, connection: Connection, pairs: Sequence[tuple[Record, int]]) -> None:
        if rows := [_turn_row(record, seq) for record, seq in pairs if isinstance(record, RoleCallRecord)]:
            await turn_rows.insert(connection, self._fence, rows)
        if puts := [put for record, _ in pairs if isinstance(record, ItemsRecord) for put in record.puts]:
            await self._put_items(connection, puts)
        for record, seq in pairs:
            await self._store_record(connection, record, seq)

    async def _store_record(self, connection: Connection, record: Record, seq: int) -> None:
        run = self._fence.run
        match record:
            case ReportRecord(report, last_calls):
                await reports.insert(connection, self._fence, seq, report)
                if last_calls:
                    await turns.mark_done(connection, run, last_calls)
            case InputRequestRecord(asking, interrupt_id):
                await questions.insert(connection, self._fence, NewQuestion(seq, asking, interrupt_id))
            case ResponseRecord(number):
                await questions.take(connection, run, number, seq)
            case ChildRecord(child):
                await child_runs.collect(connection, run, child)
            case ToolPolicyRecord(policy):
                await tool_policies.narrow(connection, run, policy)
            case _:
                pass

    async def _put_items(self, connection: Connection, puts: Sequence[ItemPut]) -> None:
        """A rollout's are on its record alone, of which its own store is made."""
        if not self._row.keeps_own_items:
            await store_items.put(connection, self._fence.tenant, puts, self._fence.run)

    async def _found(self, drafts: Sequence[Any], after: int) -> list[Step] | None:
        async with self._transaction() as connection:
            if not drafts:
                return [] if await runs.handed_back(connection, self._fence) else None
            known = await self._later(connection, drafts, after)
        ours = {(s.key, s.kind): s for s in known if s.fence == self._fence.number}
        if any((d.key, d.kind) not in ours for d in drafts):
            return None
        return [ours[d.key, d.kind] for d in drafts]

    async def _later(self, connection: Connection, drafts: Sequence[Any], after: int) -> list[Step]:
        """Steps among which those of `drafts` are, if they were stored."""
        run, superstep = self._fence.run, min((d.key.superstep for d in drafts if d.key), default=None)
        later = await steps.after(connection, run, after, max(1000, len(drafts)))
        if superstep is None:
            return later
        # An append beside this one may have been noted first, and ours have a smaller seq.
        return later + list((await steps.journal(connection, run, superstep - 1)).values())


def _turn_row(record: RoleCallRecord, seq: int) -> TurnRow:
    if isinstance(record.call, Answer):
        return turns.turn_of(seq, record.origin, record.call, record.position)
    assert record.position is not None
    return turns.rejected_of(seq, record.origin, record.call, record.position)


def _child_run(row: RunRow) -> ChildRun:
    return ChildRun(row.id, row.status, row.stop_reason, row.error or "", row.spent, row.terminal)

"""One slice of one run: from claim to hand-back.

Decides how a slice ends; what happens inside is the graph's business. Every ending of a run goes through `_end`, which
sees to it that there is a report before there is an end.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from langgraph.errors import GraphDrained
from langgraph.types import Command, Interrupt

from offing.core.errors import Fenced, Unavailable
from offing.core.run import TERMINAL, CancelMode, RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.kernel import ending, interrupts
from offing.kernel.execution import Execution, execute
from offing.kernel.store import Entry
from offing.kernel.wait_conditions import awaited
from offing.sdk import Graph
from offing.services.graphs import at_version
from offing.services.reach import Reach
from offing.services.runs import ended_step
from offing.services.store_items import MAX_ITEMS, TenantItems
from offing.storage import runs, spend, steps
from offing.storage.checkpoints import PostgresCheckpoints
from offing.storage.pool import Connection, Database
from offing.storage.runs import Claim, Release, RunRow
from offing.telemetry.logs import bound
from offing.telemetry.redaction import redact
from offing_workers import waiting
from offing_workers.carrying_over import carried_over, thread_carried_over
from offing_workers.epoch import EpochDatabase
from offing_workers.hold import Drain, Hold
from offing_workers.opening import ClaimedEpoch, OpenedRun, opened
from offing_workers.run_store import Wakes
from offing_workers.saver import FencedSaver
from offing_workers.showing import Viewers
from offing_workers.spans import slice_span

STALLED_CLAIMS = 5
"""Lost workers in a row without progress, after which a run is dead."""

VERSION_RETRY = 60.0
"""Seconds between looks for a worker that has the run's graph version."""

RETURN_PAUSE = 0.5
"""Seconds before a slice that Postgres left in the middle goes on from its last checkpoint."""

NOBODY = "The graph asked a person, and a rollout has nobody to ask."

Decide = Callable[[Connection, Sequence[Step]], Awaitable[Release]]
"""Says how a run is handed back, in the transaction that does it and after what was said with it."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SliceLimits:
    """How long a slice may last, and the lease it lives under. Seconds."""

    term: float
    turns: int
    seconds: float
    keep_checkpoints: int | None = None
    """How many checkpoints of each namespace a graph for LangGraph alone keeps while it runs. `None`: all."""
    store_items: int = MAX_ITEMS
    """How many items the runs of a tenant may have in LangGraph's store."""


class Slice:
    """One claim's work."""

    def __init__(
        self,
        database: Database,
        viewers: Viewers,
        wakes: Wakes,
        graphs: Mapping[str, Graph],
        claim: Claim,
        hold: Hold,
        limits: SliceLimits,
        reach: Reach | None = None,
    ) -> None:
        """`reach` None: runs that were asked with the web do without it."""
        self._pool, self._viewers, self._wakes, self._graphs = database, viewers, wakes, graphs
        self._database = EpochDatabase(database)
        self._abort: Callable[[], None] = lambda: None
        """Ends the journal of the epoch."""
        self._reads_again = False
        self._claim, self._hold, self._limits, self._fence = claim, hold, limits, claim.fence
        self._reach = reach
        self._fresh, self._announced = claim.fence.number == 1, False
        self._at_exit, self._is_rollout = False, False
        self._parent: UUID | None = None
        """Who started the run and may wait for it. None: nobody."""
        self._ended = Execution()
        self.to_settle = False
        """The run is a rollout, and this slice set out to end it. It may have been cut off before or after the end was
        stored: a heartbeat that finds an ended run takes it for lost."""

    async def advance(self) -> None:
        """Work until the run ends, is asked to stop, or the slice is over. Leaves everything to others once fenced.

        When Postgres goes away in the middle, the run stays ours until the heartbeat says otherwise, and another epoch
        of the claim begins.
        """
        with bound(run=self._fence.run, tenant=self._fence.tenant):
            while not await self._advanced():
                await asyncio.sleep(RETURN_PAUSE)
                self._fresh, self._reads_again = False, True
                self._database = EpochDatabase(self._pool)

    async def _advanced(self) -> bool:
        """Whether that was all. False: Postgres went away, and the journal has to be read again."""
        try:
            await self._advance_or_bury()
        except Fenced:
            log.info("fenced", run=str(self._fence.run), fence=self._fence.number)
        except Unavailable as error:
            log.warning("interrupted by an absent server", run=str(self._fence.run), reason=str(error))
            return False
        finally:
            await self._end_epoch()
        return True

    async def _end_epoch(self) -> None:
        """Whatever of the graph has outlived it neither calls nor writes any more, and what it wrote has an outcome."""
        self._abort()
        await self._database.end()

    async def _advance_or_bury(self) -> None:
        """A run that cannot even be opened, or be ended, is left to the next claim; after several it is ended bare."""
        try:
            await self._advance()
        except (Fenced, Unavailable):
            raise
        except Exception as error:
            if self._claim.stalled < STALLED_CLAIMS:
                raise
            log.exception("given up", run=str(self._fence.run))
            await self._bury(f"{type(error).__name__}: {error}")

    async def _bury(self, detail: str) -> None:
        """End the run without its graph, its state or a report."""
        status, reason, term = RunStatus.DEAD, StopReason.NO_PROGRESS, self._limits.term
        self.to_settle = self._is_rollout
        async with self._database.transaction(self._fence.tenant) as connection:
            await steps.append(connection, self._fence, term, [ended_step(status, reason, detail=detail)], UsageDelta())
            await runs.hand_back(connection, self._fence, Release(status, stop_reason=reason, error=detail))

    async def _advance(self) -> None:
        async with self._opening() as connection:
            row = await runs.by_id(connection, self._fence.run)
            if (row.fence, row.status) != (self._fence.number, RunStatus.RUNNING):
                raise Fenced(str(self._fence.run), self._fence.number)
            graph = await self._graph_here(connection, row)
            if isinstance(graph, str):
                return await self._wait_for_version(connection, row, graph)
            row = await runs.by_id(connection, self._fence.run) if row.graph_version != graph.version else row
            self._at_exit, self._is_rollout = row.durability == "exit", row.kind == "rollout"
            saver = FencedSaver(
                self._database,
                self._fence,
                turn_key=graph.turn_key,
                at_exit=self._at_exit,
                content=graph.plain.types if graph.plain else None,
                keep_latest=self._limits.keep_checkpoints,
            )
            opened_run = await self._open(connection, row, saver, graph)
        if self._claim.lost:
            await self._give_back_lost()
        with slice_span(self._fence, row.graph, row.traceparent) as spans:
            opened_run.run.parts.spans.nodes = spans
            await self._work(row, graph, saver, opened_run)

    async def _graph_here(self, connection: Connection, row: RunRow) -> Graph | str:
        """The graph that the run continues with, which may be another version, or what is in the way of that."""
        known = at_version(self._graphs, row.graph, row.graph_version)
        graph = known or self._graphs.get(row.graph)
        if graph is None or graph.upgrade is None:
            return known or ""
        store = PostgresCheckpoints(self._database, self._fence, graph.plain.types if graph.plain else None)
        why = "" if known else await carried_over(connection, self._fence, self._limits.term, row, graph, store)
        return why or await thread_carried_over(connection, self._fence, row, graph, store) or graph

    async def _give_back_lost(self) -> None:
        """By itself: in the transaction that opens the slice, others of the tenant would wait until all is read."""
        async with self._database.transaction(self._fence.tenant) as connection:
            await spend.give_back_lost(connection, self._fence)

    @asynccontextmanager
    async def _opening(self) -> AsyncGenerator[Connection]:
        """The transaction that reads the journal. Read again, nothing that was sent before is stored after it."""
        before = self._fence
        try:
            async with self._database.transaction(before.tenant) as connection:
                if self._reads_again:
                    self._fence = await runs.reopen(connection, before, self._limits.term)
                yield connection
        except BaseException:
            self._fence = before
            raise

    async def _work(self, row: RunRow, graph: Graph, saver: FencedSaver, run: OpenedRun) -> None:
        if row.cancel_mode is CancelMode.DISCARD:
            return await self._end(run, saver, graph, RunStatus.CANCELLED, StopReason.CANCELLED)
        if self._claim.stalled >= STALLED_CLAIMS:
            detail = f"{self._claim.stalled} workers in a row were lost while they worked on this run."
            return await self._end(run, saver, graph, RunStatus.DEAD, StopReason.NO_PROGRESS, detail)
        await self._announce(run)
        await self._execute(graph, saver, run)

    async def _open(self, connection: Connection, row: RunRow, saver: FencedSaver, graph: Graph) -> OpenedRun:
        """Everything that the claim needs to know, read at once. A first claim has nothing of its run to read back."""
        epoch = ClaimedEpoch(
            self._database,
            self._fence,
            self._hold,
            self._graphs,
            self._viewers,
            self._wakes,
            self._reach,
            self._limits.term,
            self._limits.turns,
            self._fresh,
            TenantItems(self._database, self._fence.tenant, self._limits.store_items),
        )
        found = await opened(connection, epoch, row, graph, saver)
        self._parent, self._ended = found.parent, Execution()
        self._journal = found.run.parts.journal
        self._abort = self._journal.abort
        return found

    async def _announce(self, run: OpenedRun) -> None:
        """Say that work begins, or begins again after a loss. An ordinary next slice is no news."""
        if self._announced:
            return
        if self._claim.lost:
            detail = f"{run.recorded} recorded calls read back, none repeated"
            payload = {"after": "lost worker", "read_back": run.recorded}
            title = "Resumed after a worker was lost"
            await self._journal.append(Entry(StepDraft(StepKind.RESUMED, title, payload, detail=detail)))
        elif not run.started:
            await self._journal.append(Entry(StepDraft(StepKind.STARTED, "A worker took the run")))
        self._announced = True

    async def _execute(self, graph: Graph, saver: FencedSaver, run: OpenedRun) -> None:
        timer = asyncio.get_running_loop().call_later(self._limits.seconds, self._hold.drain, Drain.SLICE_OVER)
        try:
            raised = await self._called(graph, saver, run)
        except GraphDrained:
            return await self._drained(graph, saver, run)
        except asyncio.CancelledError:
            return await self._interrupted(graph, saver, run)
        except (Fenced, Unavailable):
            raise
        except Exception as error:
            log.exception("the graph raised", run=str(self._fence.run), graph=graph.name)
            detail = redact(f"{type(error).__name__}: {error}")
            return await self._end(run, saver, graph, RunStatus.FAILED, StopReason.GRAPH_ERROR, detail)
        finally:
            timer.cancel()
        if raised:
            return await self._wait(graph, saver, run, raised)
        await self._end(run, saver, graph, RunStatus.DONE, self._ended.stop, self._ended.detail)

    async def _called(self, graph: Graph, saver: FencedSaver, run: OpenedRun) -> tuple[Interrupt, ...]:
        """As `_invoke`; however it ends, nothing of the graph calls any more."""
        self._hold.enter_graph()
        try:
            return await self._invoke(graph, saver, run)
        finally:
            self._hold.in_graph = False
            self._journal.end_calls()

    async def _invoke(self, graph: Graph, saver: FencedSaver, run: OpenedRun) -> tuple[Interrupt, ...]:
        """Why the graph waits. Empty: it has ended."""
        given = await self._going_on(saver, run) if run.begun else graph.start(run.run.context.run)
        how: dict[str, Any] = {"durability": "exit" if self._at_exit else "sync", "control": self._hold.control}
        self._ended = await execute(graph, run.run, saver, given, thread=str(self._fence.thread), **how)
        return self._ended.raised

    async def _going_on(self, saver: FencedSaver, run: OpenedRun) -> Command[Any] | None:
        """A begun graph's input: the answers to what it interrupted itself for. None: there are none."""
        answers = await interrupts.resume_values(run.store, self._journal, saver.interrupts())
        return Command(resume=answers) if answers else None

    async def _wait(self, graph: Graph, saver: FencedSaver, run: OpenedRun, raised: tuple[Interrupt, ...]) -> None:
        """Hand the run back until what its branches wait for is there."""
        wanted = awaited(raised)
        if self._hold.draining in (Drain.CANCEL, Drain.PAUSE, Drain.LOST):
            return await self._drained(graph, saver, run)
        if wanted.of_people and (reason := self._hold.must_write):
            return await self._end(run, saver, graph, RunStatus.DONE, reason)
        if wanted.of_people and self._is_rollout:
            return await self._end(run, saver, graph, RunStatus.FAILED, StopReason.GRAPH_ERROR, NOBODY)
        new = await interrupts.new_requests(run.store, wanted.interrupts)
        release = Release(RunStatus.WAITING)

        async def decided(connection: Connection, _: Sequence[Step]) -> Release:
            nonlocal release
            told = self._hold.write_now
            release = await waiting.release(connection, self._fence.run, wanted, told_to_write=told)
            return release

        await self._let_go(saver, decided, *new)
        if release.status is RunStatus.QUEUED:
            await self._wakes.wake(self._fence.run)

    async def _drained(self, graph: Graph, saver: FencedSaver, run: OpenedRun) -> None:
        why = self._hold.draining
        if why is Drain.CANCEL:
            await self._end(run, saver, graph, RunStatus.CANCELLED, StopReason.CANCELLED)
        elif why is Drain.PAUSE:
            await self._pause(saver)
        elif why is not Drain.LOST:
            await self._let_go(saver, Release(RunStatus.QUEUED))
            await self._wakes.wake(self._fence.run)

    async def _pause(self, saver: FencedSaver) -> None:
        """Hand the run back until a person resumes it; at once, if that was done or it was cancelled meanwhile."""
        async with self._database.transaction(self._fence.tenant) as connection:
            release = await self._pause_release(connection)
        said = [Entry(StepDraft(StepKind.PAUSED, "Paused by a person"))] if release.status is RunStatus.PAUSED else []

        async def decided(connection: Connection, _: Sequence[Step]) -> Release:
            nonlocal release
            release = await self._pause_release(connection)
            return release

        await self._let_go(saver, decided, *said)
        if release.status is RunStatus.QUEUED:
            await self._wakes.wake(self._fence.run)

    async def _pause_release(self, connection: Connection) -> Release:
        """How a run that was paused is handed back, as people want it now."""
        wish = await runs.wish(connection, self._fence.run)
        if wish.pause and wish.cancel is not CancelMode.DISCARD:
            return Release(RunStatus.PAUSED, waiting_for="a person to resume it")
        return Release(RunStatus.QUEUED)

    async def _interrupted(self, graph: Graph, saver: FencedSaver, run: OpenedRun) -> None:
        """Cancelled in mid-call. What was not recorded is done again by whoever comes next."""
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        if self._hold.draining is not Drain.LOST:
            await self._drained(graph, saver, run)

    async def _wait_for_version(self, connection: Connection, row: RunRow, why: str = "") -> None:
        """`why`: what keeps the version that is here from taking the run."""
        wanted = f"a worker with {row.graph} {row.graph_version[:12]}" + (f"; in the one here, {why}" if why else "")
        release = Release(RunStatus.WAITING, waiting_for=wanted, wait_seconds=VERSION_RETRY)
        await runs.hand_back(connection, self._fence, release)

    async def _let_go(self, saver: FencedSaver, how: Release | Decide, *said: Entry) -> None:
        """Hand the run back with its position and what is said, in one transaction."""

        async def with_position(connection: Connection, new: Sequence[Step]) -> None:
            release = how if isinstance(how, Release) else await how(connection, new)
            if release.status not in TERMINAL or not self._at_exit:
                await saver.flush(connection)
            await runs.hand_back(connection, self._fence, release)

        self._hold.handing_back = True
        try:
            await self._journal.append_last(*said, hook=with_position)
            self._hold.released = True
        finally:
            self._hold.handing_back = False

    async def _end(
        self,
        run: OpenedRun,
        saver: FencedSaver,
        graph: Graph,
        status: RunStatus,
        reason: StopReason | None,
        detail: str = "",
    ) -> None:
        report = await run.run.parts.reports.latest()
        own = None if report else await ending.own_answer(graph, run.run, self._ended)
        stop = reason or (StopReason(report.reason) if report else ending.reason_without_report(own))
        said = [Entry(ended_step(status, stop, detail=detail))]
        if report is None and status is not RunStatus.CANCELLED:
            said = [await ending.closing_report(graph, run.run, own, stop), *said]
        self.to_settle = self._is_rollout
        await self._let_go(saver, Release(status, stop_reason=stop, error=detail or None), *said)
        await self._viewers.doing(self._fence.tenant, self._fence.run, None)
        if self._parent is not None:
            await self._wakes.wake(self._parent)

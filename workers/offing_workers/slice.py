"""One slice of one run, from claim to release.

It decides how a slice ends. Every run ends in `_end_run`, which ensures that there is a report
before the run ends.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from langgraph.errors import GraphDrained
from langgraph.types import Command, Interrupt

from offing.bus.notifier import RunDispatcher
from offing.bus.run_streams import RunStreams
from offing.core.answer_draft import DraftEnd
from offing.core.errors import LeaseLostError, Unavailable
from offing.core.langgraph_run import LANGGRAPH
from offing.core.run import TERMINAL_STATUSES, CancelMode, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.kernel import final_report, interrupts
from offing.kernel.execution import GraphProgress, execute_graph
from offing.kernel.run_store import JournalEntry, StepReader
from offing.kernel.wait_conditions import collect_waits
from offing.sdk import Graph
from offing.services import mcp_access
from offing.services.graphs import find_graph_version
from offing.services.runs import draft_end_step
from offing.services.store_items import MAX_ITEMS_PER_TENANT, TenantItems
from offing.services.tool_backends import ToolBackends
from offing.storage import claims, daily_spend, langgraph_runs, runs, steps
from offing.storage.checkpoints import PostgresCheckpointStore, send_find_latest
from offing.storage.claims import Claim, Release
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing.telemetry.logs import bind_log_context
from offing.telemetry.redaction import bind_secrets, redact
from offing_workers import wait_release
from offing_workers.claim_setup import ClaimEpoch, LoadedRun, load_run
from offing_workers.claimed_run import ClaimedRun, DrainReason
from offing_workers.epoch import EpochDatabase
from offing_workers.fenced_checkpointer import FencedCheckpointer
from offing_workers.graph_upgrade import upgrade_run, upgrade_thread
from offing_workers.langgraph_run import LangGraphRun, send_load_langgraph_run
from offing_workers.live_publisher import LiveEventPublisher
from offing_workers.trace_spans import open_slice_span

MAX_STALLED_CLAIMS = 5
"""Maximum number of consecutive claims that were lost without progress. After them, the run fails."""

VERSION_RETRY_SECONDS = 60.0
"""Seconds before a run checks again for a worker with its graph version."""

REOPEN_DELAY_SECONDS = 0.5
"""Seconds before a slice continues from its last checkpoint after Postgres was unavailable."""

NO_RESPONDER_MESSAGE = "The graph made an input request, but a rollout has no person to ask."

START_STEP = StepDraft(StepKind.STARTED, "A worker claimed the run")

ReleaseDecider = Callable[[Connection], Awaitable[Release]]
"""Decides how a run is released, in the transaction that releases it and after its last steps."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SliceLimits:
    """Limits of a slice and of its lease."""

    lease_seconds: float
    max_turns: int
    max_seconds: float
    max_checkpoints: int | None = None
    """Maximum number of checkpoints per namespace that a running adapted graph keeps.

    `None` means no limit.
    """
    max_store_items: int = MAX_ITEMS_PER_TENANT
    """Maximum number of items of a tenant in LangGraph's store."""


class Slice:
    """The work of one claim."""

    def __init__(
        self,
        database: Database,
        live_publisher: LiveEventPublisher,
        dispatcher: RunDispatcher,
        graphs: Mapping[str, Graph],
        claim: Claim,
        claimed_run: ClaimedRun,
        limits: SliceLimits,
        tool_backends: ToolBackends | None = None,
        run_streams: RunStreams | None = None,
    ) -> None:
        """If `tool_backends` is `None`, runs with web access run without it.

        `run_streams` are the streams of LangGraph's clients. Without them, a run of such a client raises an error.
        """
        self._pool, self._live_publisher, self._dispatcher, self._graphs = database, live_publisher, dispatcher, graphs
        self._database = EpochDatabase(database)
        self._abort: Callable[[], None] = lambda: None
        """Ends the journal of the epoch."""
        self._reads_again = False
        self._claim, self._claimed_run, self._limits, self._fence = claim, claimed_run, limits, claim.fence
        self._tool_backends, self._run_streams = tool_backends, run_streams
        self._is_first_claim, self._has_start_step = claim.fence.number == 1, False
        self._writes_at_exit, self._is_rollout = False, False
        self._parent_run_id: UUID | None = None
        """The parent run, which may wait for this run. `None` means that there is none."""
        self._progress = GraphProgress()
        self._langgraph: LangGraphRun | None = None
        """What a client of LangGraph's API asked for. `None` means that another client made the run."""
        self.needs_finalization = False
        """Whether the run is a rollout that this slice started to end.

        The slice may have been interrupted before or after the end was stored, because a heartbeat takes an
        ended run for a lost lease.
        """

    async def advance_run(self) -> None:
        """Advance the run until it ends, must stop, or the slice ends. After a lost lease, do nothing more.

        If Postgres becomes unavailable, the claim stays valid until the heartbeat fails to renew it, and
        another epoch of the claim begins.
        """
        with bind_secrets(), bind_log_context(run_id=self._fence.run_id, tenant_id=self._fence.tenant_id):
            while not await self._run_epoch():
                await asyncio.sleep(REOPEN_DELAY_SECONDS)
                self._is_first_claim, self._reads_again = False, True
                self._database = EpochDatabase(self._pool)

    async def _run_epoch(self) -> bool:
        """Run one epoch. Return `False` if Postgres became unavailable and the journal must be read again."""
        try:
            await self._advance_or_end_stalled()
        except LeaseLostError:
            log.info("fenced", run=str(self._fence.run_id), fence=self._fence.number)
        except Unavailable as error:
            log.warning("interrupted because a server is unavailable", run=str(self._fence.run_id), reason=str(error))
            return False
        finally:
            await self._end_epoch()
        return True

    async def _end_epoch(self) -> None:
        """End the epoch: reject calls and writes of remaining branches, and wait for operations in progress."""
        self._abort()
        await self._database.end()

    async def _advance_or_end_stalled(self) -> None:
        """Advance the run. After several stalled claims, end a run that cannot even be loaded or ended.

        Before, an error leaves the run to the next claim.
        """
        try:
            await self._advance()
        except (LeaseLostError, Unavailable):
            raise
        except Exception as error:
            if self._claim.stall_count < MAX_STALLED_CLAIMS:
                raise
            log.exception("ending a stalled run", run=str(self._fence.run_id))
            await self._end_stalled_run(f"{type(error).__name__}: {error}")

    async def _end_stalled_run(self, detail: str) -> None:
        """End the run without its graph, its state or a report."""
        status, reason, term = RunStatus.FAILED, StopReason.NO_PROGRESS, self._limits.lease_seconds
        self.needs_finalization = self._is_rollout
        async with self._database.transaction(self._fence.tenant_id) as connection:
            await steps.append_steps(
                connection, self._fence, term, [draft_end_step(status, reason, detail=detail)], UsageDelta()
            )
            await claims.release_run(connection, self._fence, Release(status, stop_reason=reason, error=detail))

    async def _advance(self) -> None:
        async with self._open_transaction() as connection:
            # It is sent with the read of the run.
            latest = await send_find_latest(connection, self._fence.thread_id, "")
            row = await runs.get_run(connection, self._fence.run_id)
            if (row.fence, row.status) != (self._fence.number, RunStatus.RUNNING):
                raise LeaseLostError(str(self._fence.run_id), self._fence.number)
            graph = await self._find_graph(connection, row)
            if isinstance(graph, str):
                return await self._wait_for_version(connection, row, graph)
            row = await runs.get_run(connection, self._fence.run_id) if row.graph_version != graph.version else row
            self._writes_at_exit, self._is_rollout = row.durability == "exit", row.kind == "rollout"
            saver = FencedCheckpointer(
                self._database,
                self._fence,
                turn_key=graph.turn_counter,
                writes_at_exit=self._writes_at_exit,
                content_types=graph.langgraph_adapter.state_types if graph.langgraph_adapter else None,
                keep_latest=self._limits.max_checkpoints,
                shows_input=row.protocol == LANGGRAPH,
                latest=latest if graph.upgrade_state is None else None,  # an upgrade may have written another one
            )
            sent = await send_load_langgraph_run(connection, self._fence, row, self._run_streams)
            opened_run = await self._load_run(connection, row, saver, graph)
            self._langgraph = await sent.read_run() if sent is not None else None
            start = await self._send_start_step(connection, row, opened_run)
        if start is not None:
            self._has_start_step = True
            await self._journal.add_stored(await start.read_steps())
        if self._claim.lease_expired:
            await self._release_lost_reservations()
            await self._live_publisher.end_draft(
                self._fence.tenant_id, self._fence.run_id, DraftEnd("", self._fence.number)
            )
        with open_slice_span(self._fence, row.graph, row.traceparent) as spans:
            opened_run.active_run.components.spans.node_spans = spans
            await self._advance_loaded_run(row, graph, saver, opened_run)

    async def _find_graph(self, connection: Connection, row: RunRow) -> Graph | str:
        """Return the graph with which the run continues, possibly another version.

        If there is none, return the reason.
        """
        installed = find_graph_version(self._graphs, row.graph, row.graph_version)
        graph = installed or self._graphs.get(row.graph)
        if graph is None or graph.upgrade_state is None:
            return installed or ""
        store = PostgresCheckpointStore(
            self._database, self._fence, graph.langgraph_adapter.state_types if graph.langgraph_adapter else None
        )
        why = (
            ""
            if installed
            else await upgrade_run(connection, self._fence, self._limits.lease_seconds, row, graph, store)
        )
        return why or await upgrade_thread(connection, self._fence, row, graph, store) or graph

    async def _release_lost_reservations(self) -> None:
        """Release lost reservations in a separate transaction.

        The transaction that opens the slice would block other runs of the tenant until everything is read.
        """
        async with self._database.transaction(self._fence.tenant_id) as connection:
            await daily_spend.release_lost_reservations(connection, self._fence)

    @asynccontextmanager
    async def _open_transaction(self) -> AsyncGenerator[Connection]:
        """Open the transaction that reads the journal.

        When the journal is read again, writes that were sent before can no longer be stored.
        """
        before = self._fence
        try:
            async with self._database.transaction(before.tenant_id, pipelined=True) as connection:
                if self._reads_again:
                    self._fence = await claims.begin_epoch(connection, before, self._limits.lease_seconds)
                yield connection
        except BaseException:
            self._fence = before
            raise

    async def _advance_loaded_run(
        self, row: RunRow, graph: Graph, checkpointer: FencedCheckpointer, loaded_run: LoadedRun
    ) -> None:
        if row.cancel_mode is CancelMode.DISCARD:
            return await self._end_run(loaded_run, checkpointer, graph, RunStatus.CANCELLED, StopReason.CANCELLED)
        if self._claim.stall_count >= MAX_STALLED_CLAIMS:
            detail = f"{self._claim.stall_count} workers in a row stopped responding during this run."
            return await self._end_run(
                loaded_run, checkpointer, graph, RunStatus.FAILED, StopReason.NO_PROGRESS, detail
            )
        if problem := mcp_access.find_pin_problem(row, self._tool_backends):
            return await self._end_run(
                loaded_run, checkpointer, graph, RunStatus.FAILED, StopReason.NO_PROGRESS, problem
            )
        await self._append_start_step(loaded_run)
        await self._execute(graph, checkpointer, loaded_run)

    async def _load_run(
        self, connection: Connection, row: RunRow, checkpointer: FencedCheckpointer, graph: Graph
    ) -> LoadedRun:
        """Load everything that the claim needs. A first claim has no recorded calls."""
        epoch = ClaimEpoch(
            self._database,
            self._fence,
            self._claimed_run,
            self._graphs,
            self._live_publisher,
            self._dispatcher,
            self._tool_backends,
            self._limits.lease_seconds,
            self._limits.max_turns,
            self._is_first_claim,
            TenantItems(self._database, self._fence.tenant_id, self._limits.max_store_items),
        )
        loaded = await load_run(connection, epoch, row, graph, checkpointer)
        self._parent_run_id, self._progress = loaded.parent_run_id, GraphProgress()
        self._journal = loaded.active_run.components.journal
        self._abort = self._journal.abort
        return loaded

    async def _send_start_step(
        self, connection: Connection, row: RunRow, loaded_run: LoadedRun
    ) -> steps.SentAppend | None:
        """Append the start step of a first claim in the transaction that opens it.

        `None` means that it has none, or that the step is appended later. If Postgres's response is lost, the next
        epoch finds the step.
        """
        is_early = self._is_first_claim and not self._writes_at_exit and row.cancel_mode is not CancelMode.DISCARD
        if not is_early or loaded_run.has_start_step:
            return None
        return await steps.send_append(
            connection, self._fence, self._limits.lease_seconds, [START_STEP], UsageDelta(turns=row.usage.turns)
        )

    async def _append_start_step(self, loaded_run: LoadedRun) -> None:
        """Append a start step, or a resume step after a crash. Later slices append none."""
        if self._has_start_step:
            return
        if self._claim.lease_expired:
            detail = f"{loaded_run.recorded_call_count} recorded calls reused, none repeated"
            payload = {"after": "lost worker", "read_back": loaded_run.recorded_call_count}
            title = "Resumed after a worker stopped responding"
            await self._journal.append(JournalEntry(StepDraft(StepKind.RESUMED, title, payload, detail=detail)))
        elif not loaded_run.has_start_step:
            await self._journal.append(JournalEntry(START_STEP))
        self._has_start_step = True

    async def _execute(self, graph: Graph, checkpointer: FencedCheckpointer, loaded_run: LoadedRun) -> None:
        timer = asyncio.get_running_loop().call_later(
            self._limits.max_seconds, self._claimed_run.request_drain, DrainReason.SLICE_OVER
        )
        try:
            raised = await self._invoke_and_end_calls(graph, checkpointer, loaded_run)
        except GraphDrained:
            return await self._handle_drain(graph, checkpointer, loaded_run)
        except asyncio.CancelledError:
            return await self._handle_cancellation(graph, checkpointer, loaded_run)
        except (LeaseLostError, Unavailable):
            raise
        except Exception as error:
            log.exception("the graph raised an exception", run=str(self._fence.run_id), graph=graph.name)
            detail = redact(f"{type(error).__name__}: {error}")
            return await self._end_run(
                loaded_run, checkpointer, graph, RunStatus.FAILED, StopReason.GRAPH_ERROR, detail
            )
        finally:
            timer.cancel()
        if raised:
            return await self._handle_wait(graph, checkpointer, loaded_run, raised)
        await self._end_run(
            loaded_run, checkpointer, graph, RunStatus.DONE, self._progress.stop_reason, self._progress.detail
        )

    async def _invoke_and_end_calls(
        self, graph: Graph, checkpointer: FencedCheckpointer, loaded_run: LoadedRun
    ) -> tuple[Interrupt, ...]:
        """Invoke the graph. Afterwards, no branch of the graph can make calls."""
        self._claimed_run.enter_graph()
        try:
            return await self._invoke(graph, checkpointer, loaded_run)
        finally:
            self._claimed_run.is_in_graph = False
            self._journal.end_calls()

    async def _invoke(
        self, graph: Graph, checkpointer: FencedCheckpointer, loaded_run: LoadedRun
    ) -> tuple[Interrupt, ...]:
        """Execute the graph, and return the interrupts for which it waits. Empty means that it has ended."""
        graph_input = await self._build_graph_input(graph, checkpointer, loaded_run)
        how: dict[str, Any] = {
            "durability": "exit" if self._writes_at_exit else "sync",
            "control": self._claimed_run.control,
        }
        if self._langgraph is not None:
            was_lost = self._claim.lease_expired or self._fence.epoch > 0
            await self._langgraph.open_stream(loaded_run.active_run.paths, loaded_run.superstep, was_lost=was_lost)
            checkpointer.set_before_commit(self._langgraph.stream.settle)
            invocation = self._langgraph.build_invocation(has_begun=loaded_run.has_begun_graph)
            how |= {"durability": self._langgraph.durability, "invocation": invocation, "read_state": True}
        self._progress = await execute_graph(
            graph, loaded_run.active_run, checkpointer, graph_input, thread_id=str(self._fence.thread_id), **how
        )
        return self._progress.interrupts

    async def _build_graph_input(self, graph: Graph, checkpointer: FencedCheckpointer, loaded_run: LoadedRun) -> Any:
        """Return the input of the graph: the run's own, or what continues a run that has begun."""
        if loaded_run.has_begun_graph:
            return await self._build_resume_command(checkpointer, loaded_run)
        if self._langgraph is not None and graph.langgraph_adapter is not None:
            return self._langgraph.build_input()
        return graph.initial_state(loaded_run.active_run.context.run)

    async def _build_resume_command(
        self, checkpointer: FencedCheckpointer, loaded_run: LoadedRun
    ) -> Command[Any] | None:
        """Return the command that resumes a graph with responses to its interrupts. `None` means no responses."""
        answers = await interrupts.consume_responses(loaded_run.store, self._journal, checkpointer.pending_interrupts())
        return Command(resume=answers) if answers else None

    async def _handle_wait(
        self,
        graph: Graph,
        checkpointer: FencedCheckpointer,
        loaded_run: LoadedRun,
        raised_interrupts: tuple[Interrupt, ...],
    ) -> None:
        """Release the run until a wait condition of one of its branches is met."""
        waits = collect_waits(raised_interrupts)
        if self._claimed_run.drain_reason in (DrainReason.CANCEL, DrainReason.PAUSE, DrainReason.LEASE_LOST):
            return await self._handle_drain(graph, checkpointer, loaded_run)
        if self._langgraph is not None and waits.are_of_graph_alone:  # another run of the thread resumes it
            return await self._end_run(loaded_run, checkpointer, graph, RunStatus.DONE, StopReason.ANSWERED)
        if waits.needs_human_input and (reason := self._claimed_run.forced_stop_reason):
            return await self._end_run(loaded_run, checkpointer, graph, RunStatus.DONE, reason)
        if waits.needs_human_input and self._is_rollout:
            return await self._end_run(
                loaded_run, checkpointer, graph, RunStatus.FAILED, StopReason.GRAPH_ERROR, NO_RESPONDER_MESSAGE
            )
        new = await interrupts.build_new_requests(loaded_run.store, waits.interrupts)
        release = Release(RunStatus.WAITING)

        async def decided(connection: Connection) -> Release:
            nonlocal release
            finish_requested = self._claimed_run.finish_requested
            release = await wait_release.decide_release(
                connection, self._fence.run_id, waits, finish_requested=finish_requested
            )
            return release

        await self._release(checkpointer, decided, *new)
        if release.status is RunStatus.QUEUED:
            await self._dispatcher.dispatch_run(self._fence.run_id)

    async def _handle_drain(self, graph: Graph, checkpointer: FencedCheckpointer, loaded_run: LoadedRun) -> None:
        why = self._claimed_run.drain_reason
        if why is DrainReason.CANCEL:
            await self._end_run(loaded_run, checkpointer, graph, RunStatus.CANCELLED, StopReason.CANCELLED)
        elif why is DrainReason.PAUSE:
            await self._handle_pause(checkpointer)
        elif why is not DrainReason.LEASE_LOST:
            await self._release(checkpointer, Release(RunStatus.QUEUED))
            await self._dispatcher.dispatch_run(self._fence.run_id)

    async def _handle_pause(self, checkpointer: FencedCheckpointer) -> None:
        """Release a paused run until a person resumes it.

        If it was resumed or cancelled meanwhile, it is queued again.
        """
        async with self._database.transaction(self._fence.tenant_id) as connection:
            release = await self._decide_pause_release(connection)
        entries = (
            [JournalEntry(StepDraft(StepKind.PAUSED, "Paused by a person"))]
            if release.status is RunStatus.PAUSED
            else []
        )

        async def decided(connection: Connection) -> Release:
            nonlocal release
            release = await self._decide_pause_release(connection)
            return release

        await self._release(checkpointer, decided, *entries)
        if release.status is RunStatus.QUEUED:
            await self._dispatcher.dispatch_run(self._fence.run_id)

    async def _decide_pause_release(self, connection: Connection) -> Release:
        """Return how a paused run is released, according to its current control request."""
        control_request = await runs.get_control_request(connection, self._fence.run_id)
        if control_request.pause_requested and control_request.cancel_mode is not CancelMode.DISCARD:
            return Release(RunStatus.PAUSED, waiting_for="a person to resume it")
        return Release(RunStatus.QUEUED)

    async def _handle_cancellation(self, graph: Graph, checkpointer: FencedCheckpointer, loaded_run: LoadedRun) -> None:
        """Handle a cancellation during a call. The next claim repeats calls that were not recorded."""
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        if self._claimed_run.drain_reason is not DrainReason.LEASE_LOST:
            await self._handle_drain(graph, checkpointer, loaded_run)

    async def _wait_for_version(self, connection: Connection, row: RunRow, reason: str = "") -> None:
        """Release the run until a worker with its graph version is available.

        `reason` says why the installed version cannot continue the run.
        """
        requirement = f"a worker with {row.graph} {row.graph_version[:12]}" + (
            f"; with the version installed here, {reason}" if reason else ""
        )
        release = Release(RunStatus.WAITING, waiting_for=requirement, wait_seconds=VERSION_RETRY_SECONDS)
        await claims.release_run(connection, self._fence, release)

    async def _release(
        self, checkpointer: FencedCheckpointer, release_or_decider: Release | ReleaseDecider, *entries: JournalEntry
    ) -> None:
        """Release the run with its position and its last entries, in one transaction."""

        async def with_position(connection: Connection, _: StepReader) -> None:
            release = (
                release_or_decider if isinstance(release_or_decider, Release) else await release_or_decider(connection)
            )
            if release.status not in TERMINAL_STATUSES or not self._writes_at_exit:
                await checkpointer.flush(connection)
            if self._langgraph is not None:
                await self._langgraph.stream.settle()
            if self._langgraph is not None and release.status in TERMINAL_STATUSES:
                await self._langgraph.record_end(connection, release, self._progress)
            await claims.release_run(connection, self._fence, release)

        self._claimed_run.is_releasing = True
        try:
            await self._journal.append_last(*entries, hook=with_position)
            self._claimed_run.is_released = True
        finally:
            self._claimed_run.is_releasing = False

    async def _end_run(
        self,
        loaded_run: LoadedRun,
        checkpointer: FencedCheckpointer,
        graph: Graph,
        status: RunStatus,
        reason: StopReason | None,
        detail: str = "",
    ) -> None:
        report = await loaded_run.active_run.components.reports.find_latest_report()
        own = None if report else await final_report.build_adapter_report(graph, loaded_run.active_run, self._progress)
        if self._langgraph is not None and own is None and graph.langgraph_adapter is not None:
            own = self._langgraph.draft_state_report(self._progress.state)
        stop = reason or (StopReason(report.stop_reason) if report else final_report.choose_stop_reason(own))
        if self._langgraph is not None and status is RunStatus.DONE:
            detail = self._langgraph.explain_stop(graph, stop, detail)
        entries = [JournalEntry(draft_end_step(status, stop, detail=detail))]
        if report is None and status is not RunStatus.CANCELLED:
            entries = [await final_report.build_final_report(graph, loaded_run.active_run, own, stop), *entries]
        self.needs_finalization = self._is_rollout
        await self._release(checkpointer, Release(status, stop_reason=stop, error=detail or None), *entries)
        if self._langgraph is not None:
            await self._langgraph.announce_end(status, detail, self._progress)
        await self._live_publisher.publish_action(self._fence.tenant_id, self._fence.run_id, None)
        if self._langgraph is not None:
            await self._begin_next_run(self._langgraph.row.thread_id)
        if self._parent_run_id is not None:
            await self._dispatcher.dispatch_run(self._parent_run_id)

    async def _begin_next_run(self, thread_id: UUID) -> None:
        """Notify workers of the run that follows in the thread: one that the end has queued, or one that came late.

        The end does not see a run that was enqueued at the same moment. A look without a lock is enough here, because
        the process that enqueues a run looks, too, after the run is stored.
        """
        async with self._pool.transaction(self._fence.tenant_id, pipelined=True) as connection:
            sent = await langgraph_runs.send_look_for_next_run(connection, thread_id)
        following = await sent.read()
        if following.is_enqueued and not following.is_queued:
            async with self._pool.transaction(self._fence.tenant_id) as connection:
                await langgraph_runs.queue_next_run(connection, thread_id)
        if following.is_enqueued or following.is_queued:
            await self._dispatcher.dispatch_run(self._fence.run_id)

"""One slice of one run: from claim to hand-back.

Decides how a slice ends; what happens inside is the graph's business. Every ending of a run goes through `_end`, which
sees to it that there is a report before there is an end.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol
from uuid import UUID

import structlog
from langgraph.errors import GraphDrained
from langgraph.types import Command, Interrupt

from offing.core.errors import Fenced, Unavailable
from offing.core.policy import policy_of
from offing.core.run import TERMINAL, CancelMode, RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.sdk import DraftCitation, DraftSection, DraftSentence, Evidence, Graph, ReportDraft, RunView
from offing.sdk.running import carrying
from offing.services import mcp_results, prompt_library
from offing.services.code import code_for
from offing.services.graphs import at_version, own_tools
from offing.services.library import LibraryScope, library_port
from offing.services.pages import Pages
from offing.services.reach import Reach
from offing.services.runs import ended_step
from offing.storage import child_runs, runs, spend, steps
from offing.storage.pool import Connection, Database
from offing.storage.runs import Claim, Release, RunRow
from offing.telemetry.logs import bound
from offing.telemetry.redaction import redact
from offing.tools import registry
from offing.tools.mcp_tools import mcp_tools
from offing.tools.tool import ToolScope
from offing_workers import interrupts, plain, waiting
from offing_workers.asking import Asker
from offing_workers.carrying_over import carried_over
from offing_workers.children import Children
from offing_workers.context import SliceContext
from offing_workers.conversing import Conversing
from offing_workers.epoch import EpochDatabase
from offing_workers.hold import Drain, Hold
from offing_workers.places import Places
from offing_workers.recollection import Recollection
from offing_workers.recorder import Also, Recorder, Viewers
from offing_workers.saver import FencedSaver
from offing_workers.spans import slice_span
from offing_workers.tainting import Tainting, following
from offing_workers.toolbelt import Toolbelt

STALLED_CLAIMS = 5
"""Lost workers in a row without progress, after which a run is dead."""

VERSION_RETRY = 60.0
"""Seconds between looks for a worker that has the run's graph version."""

RETURN_PAUSE = 0.5
"""Seconds before a slice that Postgres left in the middle goes on from its last checkpoint."""

SALVAGED_EVIDENCE = 12

CITABLE = 10_000
"""Passages that the answer of a plain graph may cite."""

NOBODY = "The graph asked a person, and a rollout has nobody to ask."

Decide = Callable[[Connection, list[Step]], Awaitable[Release]]
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


class Wakes(Protocol):
    async def wake(self, run: UUID) -> None: ...


@cache
def compiled(build: Callable[[], Any]) -> Any:
    """A graph, compiled once a process; a saver is put in for each slice."""
    return build().compile()


@cache
def _nests(build: Callable[[], Any]) -> bool:
    """Whether there are graphs within the graph."""
    return any(True for _ in compiled(build).get_subgraphs())


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
        self._retire: Callable[[], None] = lambda: None
        """Puts down the recorder of the epoch."""
        self._reads_again = False
        self._claim, self._hold, self._limits, self._fence = claim, hold, limits, claim.fence
        self._reach = reach
        self._fresh, self._announced = claim.fence.number == 1, False
        self._at_exit, self._is_rollout = False, False
        self._parent: UUID | None = None
        """Who started the run and may wait for it. None: nobody."""
        self._places, self._plain = Places(), plain.Advanced()
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
        self._retire()
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
            graph = at_version(self._graphs, row.graph, row.graph_version)
            if graph is None and (here := self._graphs.get(row.graph)) is not None and here.upgrade is not None:
                graph = here
                if why := await carried_over(connection, self._fence, self._limits.term, row, graph):
                    return await self._wait_for_version(connection, row, why)
                row = await runs.by_id(connection, self._fence.run)
            if graph is None:
                return await self._wait_for_version(connection, row)
            self._at_exit, self._is_rollout = row.durability == "exit", row.kind == "rollout"
            saver = FencedSaver(
                self._database,
                self._fence,
                turn_key=graph.turn_key,
                at_exit=self._at_exit,
                content=graph.plain.types if graph.plain else None,
                keep_latest=self._limits.keep_checkpoints,
            )
            context = await self._opened(connection, row, saver, graph)
        if self._claim.lost:
            await self._give_back_lost()
        with slice_span(self._fence, row.graph, row.traceparent) as spans:
            context.spans = spans
            await self._work(row, graph, saver, context)

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

    async def _work(self, row: RunRow, graph: Graph, saver: FencedSaver, context: SliceContext) -> None:
        if row.cancel_mode is CancelMode.DISCARD:
            return await self._end(context, saver, graph, RunStatus.CANCELLED, StopReason.CANCELLED)
        if self._claim.stalled >= STALLED_CLAIMS:
            detail = f"{self._claim.stalled} workers in a row were lost while they worked on this run."
            return await self._end(context, saver, graph, RunStatus.DEAD, StopReason.NO_PROGRESS, detail)
        await self._announce()
        await self._execute(graph, saver, context)

    async def _opened(self, connection: Connection, row: RunRow, saver: FencedSaver, graph: Graph) -> SliceContext:
        """Everything that the claim needs to know, read at once. A first claim has nothing of its run to read back."""
        fresh, at_exit = self._fresh, self._at_exit
        self._places, self._plain = Places(), plain.Advanced()
        position = await saver.begin(connection)
        self._begun = position is not None and position.run == row.id
        after = position.superstep if position and self._begun else -2
        journal = {} if fresh else await steps.journal(connection, row.id, after)
        used = {} if fresh else await child_runs.tools(connection, row.id, "used")
        self._parent = await child_runs.parent_of(connection, row.id) if row.kind == "child" else None
        earlier = await runs.earlier_answers(connection, row.thread, row.id, 5) if position else ()
        said = [] if fresh or self._begun else await steps.last_of_kind(connection, row.id, StepKind.STARTED, 1)
        self._started = self._begun or bool(said)
        self._hold.write_now = row.cancel_mode is CancelMode.WRITE
        if row.deadline is not None:
            self._hold.overdue = (await runs.wish(connection, row.id)).overdue
        self._replayed = len(journal)
        self._recorder = Recorder(
            self._database,
            self._viewers,
            self._fence,
            term=self._limits.term,
            journal=journal,
            spent=row.spent,
            recollection=Recollection(
                self._database, self._fence.tenant, row.id, last_seq=row.last_seq, fresh=fresh, at_exit=at_exit
            ),
            checkpoints=saver,
            monotonic=time.monotonic,
            at_exit=at_exit,
            places=self._places,
            by_content=graph.plain is not None,
        )
        self._retire = self._recorder.retire
        self._asker = Asker(self._database, self._recorder, self._hold, alone=self._is_rollout)
        advice = await prompt_library.advice(connection, row)
        shown = [one.text for one in advice.values()]
        taint = following(self._database, self._recorder, row.question, earlier, shown, fresh=fresh)
        toolbelt = self._toolbelt(row, used, graph, taint, await self._answered(connection, row))
        return SliceContext(
            RunView(row.id, row.question, earlier, row.budget, row.seed),
            row.engines,
            self._hold,
            self._recorder,
            toolbelt,
            self._database,
            self._viewers,
            turns_per_slice=self._limits.turns,
            fresh=fresh,
            counts_turns=bool(graph.turn_key),
            roles=graph.roles,
            asker=self._asker,
            conversing=Conversing(self._database, self._recorder, toolbelt, row.thread),
            children=Children(self._database, self._recorder, toolbelt, self._wakes, row, self._graphs),
            advice=advice,
        )

    async def _answered(self, connection: Connection, row: RunRow) -> Mapping[str, int]:
        """Bytes that earlier claims were answered, where a rule limits them."""
        policy = policy_of(row.policy)
        if self._fresh or policy is None or not policy.counts_bytes:
            return {}
        return await child_runs.tools(connection, row.id, "received")

    def _toolbelt(
        self, row: RunRow, used: Mapping[str, int], graph: Graph, taint: Tainting, received: Mapping[str, int]
    ) -> Toolbelt:
        collections = tuple(row.scope.get("collections", ()))
        sources = tuple(UUID(str(s)) for s in row.scope.get("sources", ()))
        library = library_port(self._database, self._fence.tenant, LibraryScope(collections, sources))
        world = str(row.scope.get("world", ""))
        web, tenant = bool(row.scope.get("web")), self._fence.tenant
        port = Pages(self._database, tenant, self._reach) if web and self._reach else None
        mcp = mcp_results.opened_for(self._database, tenant, row, self._reach)
        code = code_for(self._database, tenant, row, library, self._reach.codes if self._reach else None)
        scope = ToolScope(tenant, row.id, "", library, collections, sources, world, port, mcp, code)
        known = (
            *registry(world, web=web, code=bool(row.scope.get("code")), own=own_tools(graph)),
            *mcp_tools(mcp.servers.values() if mcp else ()),
        )
        tools = {tool.spec.name: tool for tool in known}
        taint.offered(tool.spec for tool in known)
        policy, asker = policy_of(row.policy), self._asker
        told: dict[str, Any] = {"received": received, "taint": taint, "approver": asker}
        return Toolbelt(tools, policy, scope, self._database, self._recorder, used, **told)

    async def _announce(self) -> None:
        """Say that work begins, or begins again after a loss. An ordinary next slice is no news."""
        if self._announced:
            return
        if self._claim.lost:
            detail = f"{self._replayed} recorded calls read back, none repeated"
            payload = {"after": "lost worker", "read_back": self._replayed}
            title = "Resumed after a worker was lost"
            await self._recorder.append(StepDraft(StepKind.RESUMED, title, payload, detail=detail))
        elif not self._started:
            await self._recorder.append(StepDraft(StepKind.STARTED, "A worker took the run"))
        self._announced = True

    async def _execute(self, graph: Graph, saver: FencedSaver, context: SliceContext) -> None:
        timer = asyncio.get_running_loop().call_later(self._limits.seconds, self._hold.drain, Drain.SLICE_OVER)
        try:
            raised = await self._called(graph, saver, context)
        except GraphDrained:
            return await self._drained(graph, saver, context)
        except asyncio.CancelledError:
            return await self._interrupted(graph, saver, context)
        except (Fenced, Unavailable):
            raise
        except Exception as error:
            log.exception("the graph raised", run=str(self._fence.run), graph=graph.name)
            detail = redact(f"{type(error).__name__}: {error}")
            return await self._end(context, saver, graph, RunStatus.FAILED, StopReason.GRAPH_ERROR, detail)
        finally:
            timer.cancel()
        if raised:
            return await self._wait(graph, saver, context, raised)
        await self._end(context, saver, graph, RunStatus.DONE, self._plain.stop, self._plain.detail)

    async def _called(self, graph: Graph, saver: FencedSaver, context: SliceContext) -> tuple[Interrupt, ...]:
        """As `_invoke`; however it ends, nothing of the graph calls any more."""
        self._hold.enter_graph()
        try:
            return await self._invoke(graph, saver, context)
        finally:
            self._hold.in_graph = False
            self._recorder.end_calls()

    async def _invoke(self, graph: Graph, saver: FencedSaver, context: SliceContext) -> tuple[Interrupt, ...]:
        """Why the graph waits. Empty: it has ended."""
        places = [self._places] if graph.plain or _nests(graph.build) else []
        config = {
            "configurable": {"thread_id": str(self._fence.thread)},
            "recursion_limit": 1_000_000,
            "callbacks": [*places, *([context.spans] if context.spans else [])],
        }
        given = await self._going_on(saver) if self._begun else graph.start(context.run)
        runnable = compiled(graph.build).copy({"checkpointer": saver})
        how = {"durability": "exit" if self._at_exit else "sync", "control": self._hold.control}
        if graph.plain is not None:
            self._plain = await plain.advanced(graph, runnable, given, config, context, self._recorder, **how)
            return self._plain.raised
        with carrying(context):
            outcome = await runnable.ainvoke(given, config, context=context, stream_mode="updates", **how)
        return waiting.raised_in(outcome)

    async def _going_on(self, saver: FencedSaver) -> Command[Any] | None:
        """A begun graph's input: the answers to what it interrupted itself for. None: there are none."""
        answers = await interrupts.taken_up(self._database, self._recorder, saver.interrupts())
        return Command(resume=answers) if answers else None

    async def _wait(
        self, graph: Graph, saver: FencedSaver, context: SliceContext, raised: tuple[Interrupt, ...]
    ) -> None:
        """Hand the run back until what its branches wait for is there."""
        wanted = waiting.awaited(raised)
        if self._hold.draining in (Drain.CANCEL, Drain.PAUSE, Drain.LOST):
            return await self._drained(graph, saver, context)
        if wanted.of_people and (reason := self._hold.must_write):
            return await self._end(context, saver, graph, RunStatus.DONE, reason)
        if wanted.of_people and self._is_rollout:
            return await self._end(context, saver, graph, RunStatus.FAILED, StopReason.GRAPH_ERROR, NOBODY)
        async with self._database.transaction(self._fence.tenant) as connection:
            new = await interrupts.not_yet_asked(connection, self._fence, wanted.interrupts)
        release = Release(RunStatus.WAITING)

        async def decided(connection: Connection, said: list[Step]) -> Release:
            nonlocal release
            await interrupts.store(connection, self._fence, new, said)
            told = self._hold.write_now
            release = await waiting.release(connection, self._fence.run, wanted, told_to_write=told)
            return release

        await self._let_go(saver, decided, *interrupts.question_steps(new))
        if release.status is RunStatus.QUEUED:
            await self._wakes.wake(self._fence.run)

    async def _drained(self, graph: Graph, saver: FencedSaver, context: SliceContext) -> None:
        why = self._hold.draining
        if why is Drain.CANCEL:
            await self._end(context, saver, graph, RunStatus.CANCELLED, StopReason.CANCELLED)
        elif why is Drain.PAUSE:
            await self._pause(saver)
        elif why is not Drain.LOST:
            await self._let_go(saver, Release(RunStatus.QUEUED))
            await self._wakes.wake(self._fence.run)

    async def _pause(self, saver: FencedSaver) -> None:
        """Hand the run back until a person resumes it; at once, if that was done or it was cancelled meanwhile."""
        async with self._database.transaction(self._fence.tenant) as connection:
            release = await self._pause_release(connection)
        said = [StepDraft(StepKind.PAUSED, "Paused by a person")] if release.status is RunStatus.PAUSED else []

        async def decided(connection: Connection, _: list[Step]) -> Release:
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

    async def _interrupted(self, graph: Graph, saver: FencedSaver, context: SliceContext) -> None:
        """Cancelled in mid-call. What was not recorded is done again by whoever comes next."""
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        if self._hold.draining is not Drain.LOST:
            await self._drained(graph, saver, context)

    async def _wait_for_version(self, connection: Connection, row: RunRow, why: str = "") -> None:
        """`why`: what keeps the version that is here from taking the run."""
        wanted = f"a worker with {row.graph} {row.graph_version[:12]}" + (f"; in the one here, {why}" if why else "")
        release = Release(RunStatus.WAITING, waiting_for=wanted, wait_seconds=VERSION_RETRY)
        await runs.hand_back(connection, self._fence, release)

    async def _let_go(
        self, saver: FencedSaver, how: Release | Decide, *said: StepDraft, also: Also | None = None
    ) -> None:
        """Hand the run back with its position, what is said and what belongs to it, in one transaction."""

        async def with_position(connection: Connection, new: list[Step]) -> None:
            if also is not None:
                await also(connection, new)
            release = how if isinstance(how, Release) else await how(connection, new)
            if release.status not in TERMINAL or not self._at_exit:
                await saver.flush(connection)
            await runs.hand_back(connection, self._fence, release)

        self._hold.handing_back = True
        try:
            await self._recorder.close(*said, also=with_position)
            self._hold.released = True
        finally:
            self._hold.handing_back = False

    async def _end(
        self,
        context: SliceContext,
        saver: FencedSaver,
        graph: Graph,
        status: RunStatus,
        reason: StopReason | None,
        detail: str = "",
    ) -> None:
        report = context.report or await context.latest_report()
        own = None if report else await self._own_answer(graph, context)
        stop = reason or (StopReason(report.reason) if report else _reason_without_report(own))
        said, also = [ended_step(status, stop, detail=detail)], None
        if report is None and status is not RunStatus.CANCELLED:
            closing = context.closing(own, stop) if own else context.checked(await _salvaged(graph, context), stop)
            last = await closing
            said, also = [last.step, *said], last.store
        self.to_settle = self._is_rollout
        await self._let_go(saver, Release(status, stop_reason=stop, error=detail or None), *said, also=also)
        await self._viewers.doing(self._fence.tenant, self._fence.run, None)
        if self._parent is not None:
            await self._wakes.wake(self._parent)

    async def _own_answer(self, graph: Graph, context: SliceContext) -> ReportDraft | None:
        """The report in the values of a graph that delivers none itself. None: it delivers, or there is none."""
        if graph.plain is None or not self._plain.values:
            return None
        return graph.plain.answer(context.run, self._plain.values, await context.evidence(CITABLE))


def _reason_without_report(own: ReportDraft | None) -> StopReason:
    return StopReason.ANSWERED if own else StopReason.NOTHING_FOUND


async def _salvaged(graph: Graph, context: SliceContext) -> ReportDraft:
    evidence = await context.evidence(SALVAGED_EVIDENCE)
    if graph.salvage is not None:
        return graph.salvage(context.run, evidence)
    return plain_list(context.run, evidence)


def plain_list(run: RunView, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """A report that only lists what was retrieved, for a graph that brings no writer of its own."""
    sentences = tuple(
        DraftSentence(text=f"“{' '.join(e.text.split())[:300]}”", citations=(DraftCitation(evidence=e.id),))
        for e in evidence
    )
    sections = (DraftSection(heading="What was retrieved", sentences=sentences),) if sentences else ()
    return ReportDraft(title=run.question[:200], sections=sections, limits="The run ended before a report was written.")

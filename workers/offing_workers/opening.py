"""Open a claimed run: read everything that an epoch of the claim needs to know, at once."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.policy import policy_of
from offing.core.run import CancelMode, Fence, StopReason
from offing.core.step import StepKind
from offing.kernel.opening import OpenRun, RunSetup, open_run
from offing.kernel.recorded_calls import CallsSinceCheckpoint, Intent
from offing.kernel.role_calls import ConfiguredEngines
from offing.sdk import CHILD_RUN, Graph, RunView
from offing.sdk.tool import OwnTool
from offing.services import mcp_results, prompt_library
from offing.services.code import code_for
from offing.services.graphs import own_tools
from offing.services.library import LibraryScope, library_port
from offing.services.pages import Pages
from offing.services.reach import Reach
from offing.services.store_items import TenantItems
from offing.storage import child_runs, forks, intents, runs, steps
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing.tools import registry
from offing.tools.mcp_tools import mcp_tools
from offing.tools.tool import Tool, ToolScope
from offing_workers.hold import Drain, Hold
from offing_workers.run_store import PostgresRunStore, Wakes
from offing_workers.saver import FencedSaver
from offing_workers.showing import RunSink, Viewers

SEED_BITS = 2**31 - 1
"""Those of a run's id that its fork's seed is made of."""


@dataclass(frozen=True, slots=True)
class ClaimedEpoch:
    """An epoch of a claim, and what it may use."""

    database: Database
    fence: Fence
    hold: Hold
    graphs: Mapping[str, Graph]
    viewers: Viewers
    wakes: Wakes
    reach: Reach | None
    """`None` means that runs that were asked with the web do without it."""
    lease_seconds: float
    max_turns: int
    """Of the slice."""
    fresh: bool
    """The run's first claim, so there is nothing of it to read back."""
    items: TenantItems
    """What its graph finds in LangGraph's store, unless it is a rollout."""


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A claimed run that is about to be advanced."""

    run: OpenRun
    store: PostgresRunStore
    begun: bool
    """Its graph has begun."""
    started: bool
    """Its first step by a worker is on record."""
    recorded: int
    """Calls that are read back."""
    parent: UUID | None
    """Who started the run and may wait for it. `None` means nobody."""


@dataclass(slots=True)
class SliceControls:
    """What people and clocks want of the run, and how many turns the slice has left."""

    hold: Hold
    turns_left: int = field(default=0)

    def forced_stop(self) -> StopReason | None:
        return self.hold.must_write

    def turn_begun(self) -> None:
        self.turns_left -= 1
        if self.turns_left <= 0:
            self.hold.drain(Drain.SLICE_OVER)


async def opened(
    connection: Connection, epoch: ClaimedEpoch, row: RunRow, graph: Graph, saver: FencedSaver
) -> OpenedRun:
    """Read what the run needs in the caller's transaction, and put it together."""
    position = await saver.begin(connection)
    begun = position is not None and position.run == row.id
    earlier = await runs.earlier_answers(connection, row.thread, row.id, 5) if position else ()
    epoch.hold.write_now = row.cancel_mode is CancelMode.WRITE
    if row.deadline is not None:
        epoch.hold.overdue = (await runs.wish(connection, row.id)).overdue
    after = position.superstep if position and begun else -2
    setup = await _setup(connection, epoch, row, graph, after, earlier)
    store = PostgresRunStore(epoch.database, row, epoch.fence, epoch.lease_seconds, saver, epoch.graphs, epoch.wakes)
    controls = SliceControls(epoch.hold, epoch.max_turns)
    sink = RunSink(epoch.viewers, epoch.fence.tenant, row.id)
    run = open_run(setup, store, ConfiguredEngines(row.engines), controls, sink, time.monotonic)
    said = [] if epoch.fresh or begun else await steps.last_of_kind(connection, row.id, StepKind.STARTED, 1)
    parent = await child_runs.parent_of(connection, row.id) if row.kind == "child" else None
    return OpenedRun(run, store, begun, begun or bool(said), setup.recorded.count, parent)


async def _setup(
    connection: Connection,
    epoch: ClaimedEpoch,
    row: RunRow,
    graph: Graph,
    after: int,
    earlier: Sequence[tuple[str, str]],
) -> RunSetup:
    """`after`: the superstep of the checkpoint that the claim starts from."""
    tools, scope = _tools(epoch, row, own_tools(graph))
    fresh = epoch.fresh
    return RunSetup(
        run=RunView(row.id, row.question, tuple(earlier), row.budget, row.seed, await forks.first(connection, row)),
        graph=graph,
        recorded=CallsSinceCheckpoint({}) if fresh else await _recorded(connection, row.id, after),
        last_seq=row.last_seq,
        fence=epoch.fence.number,
        scope=scope,
        tools=tools,
        policy=policy_of(row.policy),
        spent=row.spent,
        fresh=fresh,
        at_end=row.durability == "exit",
        alone=row.kind == "rollout",
        used={} if fresh else await child_runs.tools(connection, row.id, "used"),
        received=await _received(connection, row, fresh=fresh),
        excerpts=await prompt_library.advice(connection, row),
        call_seed=_call_seed(row),
        items=() if row.keeps_own_items else epoch.items,
    )


def _call_seed(row: RunRow) -> int:
    """What a run's answers are sampled with. A fork's own differ from its origin's, as those of any other run may."""
    return row.seed if row.forked_at is None else row.seed ^ (row.id.int & SEED_BITS)


async def _recorded(connection: Connection, run: UUID, after: int) -> CallsSinceCheckpoint:
    """What earlier claims recorded and declared after the checkpoint of superstep `after`."""
    recorded = await steps.journal(connection, run, after)
    declared = [Intent(*intent) for intent in await intents.since(connection, run, after)]
    children = await child_runs.unconsumed_since(connection, run, after)
    begun = [*declared, *(Intent(key, CHILD_RUN, {"question": q}) for key, q in children)]
    upgraded_at = await steps.last_upgrade(connection, run) if recorded else 0
    return CallsSinceCheckpoint(recorded, begun, upgraded_at=upgraded_at)


async def _received(connection: Connection, row: RunRow, *, fresh: bool) -> Mapping[str, int]:
    """Bytes that earlier claims were answered, where a rule limits them."""
    policy = policy_of(row.policy)
    if fresh or policy is None or not policy.counts_bytes:
        return {}
    return await child_runs.tools(connection, row.id, "received")


def _tools(epoch: ClaimedEpoch, row: RunRow, own: Sequence[OwnTool]) -> tuple[tuple[Tool, ...], ToolScope]:
    """The tools that the run's scope gives it, and what they may reach."""
    collections = tuple(row.scope.get("collections", ()))
    sources = tuple(UUID(str(s)) for s in row.scope.get("sources", ()))
    database, tenant, reach = epoch.database, epoch.fence.tenant, epoch.reach
    library = library_port(database, tenant, LibraryScope(collections, sources))
    world, web = str(row.scope.get("world", "")), bool(row.scope.get("web"))
    port = Pages(database, tenant, reach) if web and reach else None
    mcp = mcp_results.opened_for(database, tenant, row, reach)
    code = code_for(database, tenant, row, library, reach.codes if reach else None)
    scope = ToolScope(tenant, row.id, "", library, collections, sources, world, port, mcp, code)
    known: tuple[Any, ...] = (
        *registry(world, web=web, code=bool(row.scope.get("code")), own=own),
        *mcp_tools(mcp.servers.values() if mcp else ()),
    )
    return known, scope

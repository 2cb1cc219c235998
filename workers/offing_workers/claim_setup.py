"""Load a claimed run: read everything that an epoch of the claim needs, at once."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.bus.notifier import RunDispatcher
from offing.core.run import CancelMode, FencingToken, StopReason
from offing.core.step import StepKind
from offing.core.tool_policy import parse_stored_policy
from offing.core.web_domains import WebDomains
from offing.kernel.recorded_calls import CallsSinceCheckpoint, Intent
from offing.kernel.role_calls import ConfiguredEngines
from offing.kernel.run_setup import ActiveRun, RunSetup, build_active_run
from offing.sdk import CHILD_RUN, Graph, RunInfo
from offing.sdk.tool import CustomTool
from offing.services import mcp_access, prompt_library
from offing.services.code_execution import build_run_sandbox
from offing.services.graphs import custom_tools_of
from offing.services.library import LibraryScope, build_library_access
from offing.services.library_models import NO_MODELS
from offing.services.providers import TenantProviders
from offing.services.recorded_pages import RecordedPages
from offing.services.store_items import TenantItems
from offing.services.tool_backends import ToolBackends
from offing.services.web_access import WebPageReader
from offing.storage import child_runs, forks, intents, runs, steps
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing.tools import create_tools
from offing.tools.mcp_tools import create_mcp_tools
from offing.tools.tool import Tool, ToolScope, WebAccess
from offing_workers.claimed_run import ClaimedRun, DrainReason
from offing_workers.fenced_checkpointer import FencedCheckpointer
from offing_workers.live_publisher import LiveEventPublisher, RunLiveSink
from offing_workers.run_store import PostgresRunStore

SEED_MASK = 2**31 - 1
"""Bits of a fork's run id from which its seed is derived."""


@dataclass(frozen=True, slots=True)
class ClaimEpoch:
    """An epoch of a claim with its resources."""

    database: Database
    fencing_token: FencingToken
    claimed_run: ClaimedRun
    graphs: Mapping[str, Graph]
    live_publisher: LiveEventPublisher
    dispatcher: RunDispatcher
    tool_backends: ToolBackends | None
    """`None` means that runs with web access run without it."""
    lease_seconds: float
    max_turns: int
    """Maximum number of turns of the slice."""
    is_first_claim: bool
    """This is the first claim of the run, so there are no recorded calls."""
    items: TenantItems
    """The items in LangGraph's store, except for rollouts."""


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A claimed run that is ready to be advanced."""

    active_run: ActiveRun
    store: PostgresRunStore
    has_begun_graph: bool
    """Whether the graph of the run has begun."""
    has_start_step: bool
    """Whether the start step of the run is recorded."""
    recorded_call_count: int
    """Number of recorded calls to reuse."""
    parent_run_id: UUID | None
    """The parent run, which may wait for this run. `None` means that there is none."""
    superstep: int
    """The superstep of the checkpoint where the claim starts. -2 means that the graph begins with its input."""


@dataclass(slots=True)
class SliceControls:
    """Control requests and deadlines of the run, and the remaining turns of the slice."""

    claimed_run: ClaimedRun
    remaining_turns: int = field(default=0)

    def forced_stop_reason(self) -> StopReason | None:
        return self.claimed_run.forced_stop_reason

    def on_turn_begin(self) -> None:
        self.remaining_turns -= 1
        if self.remaining_turns <= 0:
            self.claimed_run.request_drain(DrainReason.SLICE_OVER)


async def load_run(
    connection: Connection, epoch: ClaimEpoch, row: RunRow, graph: Graph, checkpointer: FencedCheckpointer
) -> LoadedRun:
    """Read everything that the run needs in the caller's transaction, and assemble it."""
    position = await checkpointer.load_position(connection)
    begun = position is not None and position.run_id == row.id
    earlier = await runs.list_earlier_answers(connection, row.thread_id, row.id, 5) if position else ()
    epoch.claimed_run.finish_requested = row.cancel_mode is CancelMode.FINISH
    if row.deadline_at is not None:
        epoch.claimed_run.is_overdue = (await runs.get_control_request(connection, row.id)).deadline_passed
    after = position.superstep if position and begun else -2
    setup = await _build_setup(connection, epoch, row, graph, after, earlier)
    store = PostgresRunStore(
        epoch.database, row, epoch.fencing_token, epoch.lease_seconds, checkpointer, epoch.graphs, epoch.dispatcher
    )
    controls = SliceControls(epoch.claimed_run, epoch.max_turns)
    fence = epoch.fencing_token
    sink = RunLiveSink(epoch.live_publisher, fence.tenant_id, row.id, fence.number, shows_drafts=row.kind != "rollout")
    engines = ConfiguredEngines(row.engines, TenantProviders(epoch.database, fence.tenant_id).find)
    run = build_active_run(setup, store, engines, controls, sink, time.monotonic)
    started_steps = (
        [] if epoch.is_first_claim or begun else await steps.list_last_steps(connection, row.id, StepKind.STARTED, 1)
    )
    parent = await child_runs.find_parent_id(connection, row.id) if row.kind == "child" else None
    return LoadedRun(run, store, begun, begun or bool(started_steps), setup.recorded_calls.count, parent, after)


async def _build_setup(
    connection: Connection,
    epoch: ClaimEpoch,
    row: RunRow,
    graph: Graph,
    after_superstep: int,
    earlier_answers: Sequence[tuple[str, str]],
) -> RunSetup:
    """Build the setup of a run.

    `after_superstep` is the superstep of the checkpoint where the claim starts.
    """
    tools, scope = _build_tools(epoch, row, custom_tools_of(graph))
    fresh = epoch.is_first_claim
    return RunSetup(
        run=RunInfo(
            row.id,
            row.question,
            tuple(earlier_answers),
            row.budget,
            row.seed,
            await forks.find_first_run_id(connection, row),
            row.report_style,
            row.follow_up,
            row.interactions,
        ),
        graph=graph,
        recorded_calls=CallsSinceCheckpoint({})
        if fresh
        else await _load_recorded_calls(connection, row.id, after_superstep),
        last_seq=row.last_seq,
        fence=epoch.fencing_token.number,
        scope=scope,
        tools=tools,
        tool_policy=parse_stored_policy(row.tool_policy),
        run_usage=row.usage,
        is_first_claim=fresh,
        writes_at_exit=row.durability == "exit",
        is_rollout=row.kind == "rollout",
        call_counts={} if fresh else await child_runs.sum_tool_usage(connection, row.id, "used"),
        received_bytes=await _load_received_bytes(connection, row, is_first_claim=fresh),
        excerpts=await prompt_library.get_excerpts(connection, row),
        call_seed=_choose_call_seed(row),
        items=() if row.has_own_store else epoch.items,
    )


def _choose_call_seed(row: RunRow) -> int:
    """Return the seed for sampling. A fork has a seed that differs from that of its origin."""
    return row.seed if row.forked_at is None else row.seed ^ (row.id.int & SEED_MASK)


async def _load_recorded_calls(connection: Connection, run_id: UUID, after_superstep: int) -> CallsSinceCheckpoint:
    """Load the calls and intents that earlier claims recorded after this superstep."""
    recorded = await steps.load_journal(connection, run_id, after_superstep)
    declared = [Intent(*intent) for intent in await intents.list_intents_since(connection, run_id, after_superstep)]
    children = await child_runs.list_unconsumed_since(connection, run_id, after_superstep)
    begun = [*declared, *(Intent(key, CHILD_RUN, {"question": q}) for key, q in children)]
    upgraded_at = await steps.get_last_upgrade_seq(connection, run_id) if recorded else 0
    return CallsSinceCheckpoint(recorded, begun, upgraded_at=upgraded_at)


async def _load_received_bytes(connection: Connection, row: RunRow, *, is_first_claim: bool) -> Mapping[str, int]:
    """Load the bytes that tools returned to earlier claims, if a rule limits them."""
    policy = parse_stored_policy(row.tool_policy)
    if is_first_claim or policy is None or not policy.limits_bytes:
        return {}
    return await child_runs.sum_tool_usage(connection, row.id, "received")


def _build_tools(
    epoch: ClaimEpoch, row: RunRow, custom_tools: Sequence[CustomTool]
) -> tuple[tuple[Tool, ...], ToolScope]:
    """Build the tools in the scope of the run, and the tool scope with their backends."""
    collections = tuple(row.scope.get("collections", ()))
    sources = tuple(UUID(str(s)) for s in row.scope.get("sources", ()))
    database, tenant, reach = epoch.database, epoch.fencing_token.tenant_id, epoch.tool_backends
    models = reach.library_models if reach else NO_MODELS
    library = build_library_access(database, tenant, LibraryScope(collections, sources), models)
    environment, web = str(row.scope.get("environment", "")), bool(row.scope.get("web"))
    port = _build_web_access(database, tenant, row, reach) if web else None
    mcp = mcp_access.build_run_mcp_servers(database, tenant, row, reach)
    code = build_run_sandbox(database, tenant, row, library, reach.code_runner if reach else None)
    scope = ToolScope(tenant, row.id, "", library, collections, sources, environment, port, mcp, code)
    tools: tuple[Any, ...] = (
        *create_tools(environment, web=web, code=bool(row.scope.get("code")), custom=custom_tools),
        *create_mcp_tools(mcp.servers.values() if mcp else ()),
    )
    return tools, scope


def _build_web_access(
    database: Database, tenant_id: UUID, row: RunRow, backends: ToolBackends | None
) -> WebAccess | None:
    """Return the web in the scope of the run: its recorded pages if it names any, else live pages."""
    if pages := row.scope.get("pages"):
        return RecordedPages(database, tenant_id, {url: UUID(str(text)) for url, text in pages.items()})
    return WebPageReader(database, tenant_id, backends, WebDomains.from_scope(row.scope)) if backends else None

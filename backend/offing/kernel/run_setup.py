"""Assemble the components of a run for one epoch of a claim."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from offing.core.report import Evidence
from offing.core.run import RunUsage
from offing.core.step import Step, StepKind
from offing.core.store_item import ItemPut
from offing.core.tool_policy import ToolPolicy
from offing.kernel.budget import RunBudget, RunControls
from offing.kernel.call_key import CallKeys
from offing.kernel.call_path import CallPathTracker
from offing.kernel.child_runs import ChildRunClient
from offing.kernel.context import KernelContext, RunComponents
from offing.kernel.earlier_report import EarlierReportLoader
from offing.kernel.human_input import HumanInput
from offing.kernel.item_index import build_item_index
from offing.kernel.item_store import RunItemStore
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import RecordedCalls
from offing.kernel.report_writer import ReportWriter
from offing.kernel.role_calls import RoleCallComponents, RoleCaller, RoleCallSettings, RoleEngines
from offing.kernel.run_items import PrivateItems, RunItems, SharedItems, list_recorded_puts
from offing.kernel.run_store import ItemSource, LiveSink, RunStore
from offing.kernel.segment_tracker import SegmentTracker
from offing.kernel.step_cache import StepCache
from offing.kernel.taint import TaintTracker, build_taint_tracker
from offing.kernel.thread_search import ThreadSearch
from offing.kernel.tool_executor import ToolExecutor
from offing.kernel.trace_spans import CallSpans
from offing.kernel.usage import UsageLedger
from offing.sdk import Graph, RunInfo
from offing.sdk.library_excerpt import LibraryExcerpt
from offing.tools.tool import EvidenceLookup, SourceLookup, Tool, ToolScope

INITIAL_ITEMS_AT = datetime(2000, 1, 1, tzinfo=UTC)
"""Creation time of the private items with which a run starts."""

MAX_NOTES = 10_000
"""Maximum number of notes of a run. They include puts into its private store."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Everything that is known about a run when an epoch of a claim begins."""

    run: RunInfo
    graph: Graph
    recorded_calls: RecordedCalls
    """The calls to read back."""
    last_seq: int
    """The run's last step."""
    fence: int
    """Fencing token of the claim."""
    scope: ToolScope
    tools: Sequence[Tool]
    tool_policy: ToolPolicy | None
    """`None` means that the run has no valid tool policy. Then every tool call is denied."""
    run_usage: RunUsage = field(default_factory=RunUsage)
    is_first_claim: bool = True
    """This is the first claim of the run, so there is nothing to read back."""
    writes_at_exit: bool = False
    """Nothing is written before the end of the slice."""
    is_rollout: bool = False
    """The run is a rollout, so no person responds to its input requests."""
    call_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of calls of each tool in earlier claims."""
    received_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes that each tool returned to earlier claims."""
    excerpts: Mapping[str, LibraryExcerpt] = field(default_factory=dict[str, LibraryExcerpt])
    """Excerpts of prompt libraries, by role."""
    items: ItemSource | Sequence[ItemPut] = ()
    """The items in LangGraph's store: those that the run shares with others, or its initial private items."""
    call_seed: int | None = None
    """Seed for sampling. `None` means the seed of the run."""
    paths: CallPathTracker = field(default_factory=CallPathTracker)


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run that is being advanced."""

    context: KernelContext
    components: RunComponents
    paths: CallPathTracker
    items: RunItemStore


def build_active_run(
    setup: RunSetup,
    store: RunStore,
    engines: RoleEngines,
    controls: RunControls,
    sink: LiveSink,
    monotonic: Callable[[], float],
) -> ActiveRun:
    """Assemble the components of a run over its store."""
    fresh, graph = setup.is_first_claim, setup.graph
    hidden = setup.recorded_calls.unread_seqs
    cache = StepCache(
        store, last_seq=setup.last_seq, is_first_claim=fresh, writes_at_exit=setup.writes_at_exit, hidden=hidden
    )
    usage, paths = UsageLedger(setup.run_usage, monotonic), setup.paths
    journal = Journal(
        store, sink, cache, usage, setup.recorded_calls, fence=setup.fence, writes_at_exit=setup.writes_at_exit
    )
    keys = CallKeys(paths, by_content=graph.langgraph_adapter is not None)
    budget = RunBudget(setup.run.budget, usage, store, controls, journal.check_open)
    people = HumanInput(journal, store, controls, is_rollout=setup.is_rollout)
    tools = _build_tool_executor(setup, store, journal, cache, people)
    segments, spans = SegmentTracker(store, is_first_claim=fresh), CallSpans()
    reports = ReportWriter(journal, cache, segments, store, graph.roles, setup.run.question, is_first_claim=fresh)
    roles = RoleCaller(
        RoleCallComponents(keys, journal, budget, segments, reports, spans, sink, monotonic),
        engines,
        _build_role_call_settings(setup),
    )
    children = ChildRunClient(keys, journal, tools, cache, store)
    thread = ThreadSearch(keys, journal, tools, cache, store)
    earlier = EarlierReportLoader(keys, journal, tools, cache, store, setup.run.follow_up)
    parts = RunComponents(
        call_keys=keys,
        journal=journal,
        cache=cache,
        budget=budget,
        roles=roles,
        tools=tools,
        reports=reports,
        human_input=people,
        children=children,
        thread=thread,
        earlier_report=earlier,
        spans=spans,
        sink=sink,
        monotonic=monotonic,
        flushes_appends=not graph.turn_counter,
    )
    return ActiveRun(KernelContext(setup.run, parts), parts, paths, _build_item_store(setup, store, parts))


def _build_role_call_settings(setup: RunSetup) -> RoleCallSettings:
    seed = setup.run.seed if setup.call_seed is None else setup.call_seed
    return RoleCallSettings(
        seed, setup.graph.langgraph_adapter is not None, setup.excerpts, flushes_before_calls=not setup.is_rollout
    )


def _build_item_store(setup: RunSetup, store: RunStore, components: RunComponents) -> RunItemStore:
    plain = setup.graph.langgraph_adapter
    index, ttl = (build_item_index(plain.store_index), plain.store_ttl) if plain else (None, None)
    items = _build_items(setup, store, components)
    return RunItemStore(components.call_keys, components.journal, components.tools, items, index, cast(Any, ttl))


def _build_items(setup: RunSetup, store: RunStore, components: RunComponents) -> RunItems:
    if not isinstance(setup.items, Sequence):
        return SharedItems(setup.items, writes_at_exit=setup.writes_at_exit)
    items = setup.items

    async def recorded() -> Sequence[tuple[Sequence[ItemPut], datetime]]:
        stored: Sequence[Step] = [] if setup.is_first_claim else await store.last_steps(StepKind.NOTE, MAX_NOTES)
        notes = [*stored, *components.cache.list_unsaved(StepKind.NOTE)]
        return [(items, INITIAL_ITEMS_AT), *list_recorded_puts(notes)]

    return PrivateItems(recorded)


def _build_tool_executor(
    setup: RunSetup, store: RunStore, journal: Journal, cache: StepCache, human_input: HumanInput
) -> ToolExecutor:
    by_name = {tool.spec.name: tool for tool in setup.tools}
    more: dict[str, Any] = {
        "received_bytes": setup.received_bytes,
        "taint_source": _build_taint_tracker(setup, store, cache),
        "approver": human_input,
        "repairs_calls": not setup.is_rollout,
    }
    find_evidence = None if setup.is_rollout else _build_evidence_lookup(cache)
    scope = replace(setup.scope, find_evidence=find_evidence, find_source=_build_source_lookup(cache))
    return ToolExecutor(by_name, setup.tool_policy, scope, journal, setup.call_counts, **more)


def _build_evidence_lookup(cache: StepCache) -> EvidenceLookup:
    async def find_evidence(id: str) -> Evidence | None:
        return (await cache.get_evidence()).as_dict().get(id)

    return find_evidence


def _build_source_lookup(cache: StepCache) -> SourceLookup:
    async def find_source(label: str) -> UUID | None:
        return (await cache.get_evidence()).find_source_id(label)

    return find_source


def _build_taint_tracker(setup: RunSetup, store: RunStore, cache: StepCache) -> TaintTracker:
    run, excerpt_texts = setup.run, [one.text for one in setup.excerpts.values()]
    taint = build_taint_tracker(
        store, cache, run.question, run.prior_exchanges, excerpt_texts, is_first_claim=setup.is_first_claim
    )
    taint.add_tool_specs(tool.spec for tool in setup.tools)
    return taint

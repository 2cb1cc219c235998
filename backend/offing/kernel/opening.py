"""Put together the parts of a run that an epoch of a claim advances."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from offing.core.policy import Policy
from offing.core.run import Spent
from offing.core.step import Step, StepKind
from offing.core.store_item import ItemPut
from offing.kernel.budget import RunBudget, RunControls
from offing.kernel.call_key import CallKeys
from offing.kernel.call_path import CallPathTracker
from offing.kernel.child_runs import ChildRunClient
from offing.kernel.context import KernelContext, RunParts
from offing.kernel.human_input import HumanInput
from offing.kernel.item_index import item_index
from offing.kernel.item_store import RunItemStore
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import RecordedCalls
from offing.kernel.reports import ReportWriter
from offing.kernel.role_calls import Engines, RoleCaller
from offing.kernel.run_items import OwnItems, RunItems, SharedItems, recorded_puts
from offing.kernel.segment_tracker import SegmentTracker
from offing.kernel.step_cache import StepCache
from offing.kernel.store import ItemSource, LiveSink, RunStore
from offing.kernel.taint import TaintTracker, open_taint_tracker
from offing.kernel.thread_search import ThreadSearch
from offing.kernel.tool_executor import ToolExecutor
from offing.kernel.trace_spans import CallSpans
from offing.kernel.usage import UsageLedger
from offing.sdk import Graph, RunView
from offing.sdk.advice import Advice
from offing.tools.tool import Tool, ToolScope

GIVEN_AT = datetime(2000, 1, 1, tzinfo=UTC)
"""When items were put that a run alone begins with."""

MAX_NOTES = 10_000
"""Of a run, among which are its puts into a store of its own."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What is known of a run when an epoch of a claim begins."""

    run: RunView
    graph: Graph
    recorded: RecordedCalls
    """The calls that are read back."""
    last_seq: int
    """The run's last step."""
    fence: int
    """Number of the claim."""
    scope: ToolScope
    tools: Sequence[Tool]
    policy: Policy | None
    """`None` means that the run has no valid tool policy, and every tool call is denied."""
    spent: Spent = field(default_factory=Spent)
    fresh: bool = True
    """The run's first claim, so there is nothing of it to read back."""
    at_end: bool = False
    """Nothing is written before the end of the slice."""
    alone: bool = False
    """The run is a rollout, and nobody responds to it."""
    used: Mapping[str, int] = field(default_factory=dict[str, int])
    """Calls of each tool that earlier claims made."""
    received: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes that each tool answered earlier claims."""
    excerpts: Mapping[str, Advice] = field(default_factory=dict[str, Advice])
    """Of prompt libraries, by role."""
    items: ItemSource | Sequence[ItemPut] = ()
    """What its graph finds in LangGraph's store: the items that the run shares with others, or those that it alone
    begins with."""
    call_seed: int | None = None
    """What answers are sampled with. `None` means the run's own seed."""
    paths: CallPathTracker = field(default_factory=CallPathTracker)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is advanced."""

    context: KernelContext
    parts: RunParts
    paths: CallPathTracker
    items: RunItemStore


def open_run(
    setup: RunSetup,
    store: RunStore,
    engines: Engines,
    controls: RunControls,
    sink: LiveSink,
    monotonic: Callable[[], float],
) -> OpenRun:
    """Put together a run's parts over its store."""
    fresh, graph = setup.fresh, setup.graph
    hidden = setup.recorded.seqs
    cache = StepCache(store, last_seq=setup.last_seq, fresh=fresh, unsaved=setup.at_end, hidden=hidden)
    usage, paths = UsageLedger(setup.spent, monotonic), setup.paths
    journal = Journal(store, sink, cache, usage, setup.recorded, fence=setup.fence, at_end=setup.at_end)
    keys = CallKeys(paths, by_content=graph.plain is not None)
    budget = RunBudget(setup.run.budget, usage, store, controls, journal.check_open)
    people = HumanInput(journal, store, controls, alone=setup.alone)
    tools = _tool_executor(setup, store, journal, cache, people)
    segments, spans = SegmentTracker(store, fresh=fresh), CallSpans()
    reports = ReportWriter(journal, cache, segments, store, graph.roles, fresh=fresh)
    own: dict[str, Any] = {
        "seed": setup.run.seed if setup.call_seed is None else setup.call_seed,
        "own_turns": graph.plain is not None,
        "excerpts": setup.excerpts,
        "monotonic": monotonic,
    }
    roles = RoleCaller(keys, journal, budget, segments, reports, engines, spans, sink, **own)
    children = ChildRunClient(keys, journal, tools, cache, store)
    thread = ThreadSearch(keys, journal, tools, cache, store)
    flushes = not graph.turn_key
    parts = RunParts(
        keys, journal, cache, budget, roles, tools, reports, people, children, thread, spans, sink, monotonic, flushes
    )
    return OpenRun(KernelContext(setup.run, parts), parts, paths, _item_store(setup, store, parts))


def _item_store(setup: RunSetup, store: RunStore, parts: RunParts) -> RunItemStore:
    plain = setup.graph.plain
    index, ttl = (item_index(plain.store_index), plain.store_ttl) if plain else (None, None)
    items = _items(setup, store, parts)
    return RunItemStore(parts.keys, parts.journal, parts.tools, items, index, cast(Any, ttl))


def _items(setup: RunSetup, store: RunStore, parts: RunParts) -> RunItems:
    if not isinstance(setup.items, Sequence):
        return SharedItems(setup.items, at_end=setup.at_end)
    given = setup.items

    async def recorded() -> Sequence[tuple[Sequence[ItemPut], datetime]]:
        stored: Sequence[Step] = [] if setup.fresh else await store.last_steps(StepKind.NOTE, MAX_NOTES)
        notes = [*stored, *parts.cache.list_unsaved(StepKind.NOTE)]
        return [(given, GIVEN_AT), *recorded_puts(notes)]

    return OwnItems(recorded)


def _tool_executor(
    setup: RunSetup, store: RunStore, journal: Journal, cache: StepCache, people: HumanInput
) -> ToolExecutor:
    by_name = {tool.spec.name: tool for tool in setup.tools}
    more: dict[str, Any] = {"received": setup.received, "taint": _taint(setup, store, cache), "approver": people}
    return ToolExecutor(by_name, setup.policy, setup.scope, journal, setup.used, **more)


def _taint(setup: RunSetup, store: RunStore, cache: StepCache) -> TaintTracker:
    run, shown = setup.run, [one.text for one in setup.excerpts.values()]
    taint = open_taint_tracker(store, cache, run.question, run.earlier, shown, fresh=setup.fresh)
    taint.offered(tool.spec for tool in setup.tools)
    return taint

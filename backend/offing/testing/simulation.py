"""Simulated runs: a graph executed to its end in this process, and its result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from langgraph.types import Command

from offing.core.report import Evidence, Report
from offing.core.run import RunUsage
from offing.core.step import Step, StepKind
from offing.kernel import interrupts
from offing.kernel.execution import GraphProgress, execute_graph
from offing.kernel.final_report import build_adapter_report, build_final_report, choose_stop_reason
from offing.kernel.run_setup import ActiveRun
from offing.kernel.run_store import JournalEntry, ReportAttachment, StepReader
from offing.kernel.wait_conditions import collect_waits
from offing.sdk import Graph, ToolResult, tool_result_from_step
from offing.testing.scenario import Scenario, ScenarioOptions
from offing.testing.simulation_store import ExecutedCall, SimulationStore, WorkerLost


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """Result of a simulated run."""

    report: Report | None
    """The submitted report. `None` means that the graph submitted none."""
    steps: tuple[Step, ...]
    state: Mapping[str, Any]
    """Final state of the graph."""
    executed_calls: tuple[ExecutedCall, ...]
    """Calls of roles and tools that were executed, in order.

    Results that were read back after a crash are not included.
    """
    evidence: tuple[Evidence, ...]
    usage: RunUsage
    loss_points: int
    """Number of points at which the worker could have crashed."""
    losses: int
    interrupted_call: ExecutedCall | None
    """Last call that was executed before the crash. `None` means that there was no call or no crash."""
    checkpoint_sizes: tuple[int, ...]
    """Size in bytes of each checkpoint, in order."""

    def list_steps(self, kind: StepKind) -> tuple[Step, ...]:
        """Return the steps of a kind."""
        return tuple(step for step in self.steps if step.kind is kind)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """Results of all tool calls, as the graph received them."""
        return tuple(tool_result_from_step(step) for step in self.list_steps(StepKind.TOOL_RESULT))


async def simulate_run(
    graph: Graph, question: str, *, crash_at: int | None = None, **options: Unpack[ScenarioOptions]
) -> SimulatedRun:
    """Run a graph on a question.

    `options` are the fields of `Scenario`. `crash_at` is the crash point, from 0, at which the worker
    crashes; `None` means that it does not crash.
    """
    scene = replace(Scenario(question), **options)
    stage = SimulationStore(graph, scene, crash_at)
    return build_result(stage, await _run_to_end(stage))


def build_result(store: SimulationStore, state: Mapping[str, Any]) -> SimulatedRun:
    """Build the result of a run."""
    reports = [
        one.attachment.report for one in store.store.stored_entries if isinstance(one.attachment, ReportAttachment)
    ]
    return SimulatedRun(
        reports[-1] if reports else None,
        tuple(store.steps),
        state,
        tuple(store.executed),
        store.build_evidence_index().latest(10_000),
        replace(store.store.run_usage, seconds=store.clock.seconds),
        store.moments,
        store.losses,
        store.lost_in,
        tuple(store.saver.sizes),
    )


async def _run_to_end(store: SimulationStore) -> Mapping[str, Any]:
    """Run the graph to its end and return its final state.

    After a crash, or when a person has responded, another worker continues the run.
    """
    position, has_checkpoint = None, False
    while True:
        run = store.open_claim(position)
        try:
            ended = await run_worker(store, run, has_checkpoint)
        except (WorkerLost, Exception):
            if not store.is_worker_lost:  # LangChain wraps unknown exceptions in its own
                raise
            position = store.saver.discard_unsaved()
            has_checkpoint = position is not None
            continue
        if not ended.interrupts:
            return ended.state
        store.respond(await _list_pending_requests(store, ended))
        await store.saver.flush(None)
        position, has_checkpoint = store.saver.discard_unsaved(), True


async def run_worker(store: SimulationStore, run: ActiveRun, has_checkpoint: bool) -> GraphProgress:
    """Execute one worker's claim. Raises WorkerLost.

    `has_checkpoint` means that the graph continues from a checkpoint.
    """
    graph_input = await _build_resume_command(store, run) if has_checkpoint else store.graph.initial_state(store.run)
    ended = await execute_graph(
        store.graph, run, store.saver, graph_input, thread_id="run", read_state=True, durability="sync"
    )
    run.components.journal.end_calls()
    await run.components.journal.append_last(*await _build_last_entries(store, run, ended), hook=_no_hook)
    return ended


async def _build_resume_command(store: SimulationStore, run: ActiveRun) -> Command[Any] | None:
    """Return the command with the responses to the graph's own interrupts.

    `None` means that there are none.
    """
    responses = await interrupts.consume_responses(
        store.store, run.components.journal, store.saver.pending_interrupts()
    )
    return Command(resume=responses) if responses else None


async def _list_pending_requests(store: SimulationStore, execution: GraphProgress) -> list[int]:
    """Return the numbers of the input requests that the run waits for."""
    pending = collect_waits(execution.interrupts)
    raised = await store.store.list_interrupt_requests([interrupt.id for interrupt in pending.interrupts])
    return [*pending.request_numbers, *(one.request.seq for one in raised.values())]


async def _build_last_entries(store: SimulationStore, run: ActiveRun, execution: GraphProgress) -> list[JournalEntry]:
    """Return the last entries of a claim.

    They are new input requests for the graph's interrupts, or the report of a graph that submits none
    itself.
    """
    if execution.interrupts:
        return await interrupts.build_new_requests(store.store, collect_waits(execution.interrupts).interrupts)
    if await run.components.reports.find_latest_report() is not None:
        return []
    own = await build_adapter_report(store.graph, run, execution)
    return [] if own is None else [await build_final_report(store.graph, run, own, choose_stop_reason(own))]


async def _no_hook(_: object, __: StepReader) -> None: ...

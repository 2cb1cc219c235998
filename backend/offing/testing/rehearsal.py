"""Running a graph to its end in this process, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from langgraph.types import Command

from offing.core.report import Evidence, Report
from offing.core.run import Spent
from offing.core.step import Step, StepKind
from offing.kernel import interrupts
from offing.kernel.ending import closing_report, own_answer, reason_without_report
from offing.kernel.execution import Execution, execute
from offing.kernel.opening import OpenRun
from offing.kernel.store import Entry, ReportRecord
from offing.kernel.wait_conditions import awaited
from offing.sdk import Graph, ToolResult, result_of
from offing.testing.given import Given
from offing.testing.scene import Scene
from offing.testing.stage import Executed, Lost, Stage


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A run that has ended."""

    report: Report | None
    """None: the graph delivered none."""
    steps: tuple[Step, ...]
    state: Mapping[str, Any]
    """The graph's, at its end."""
    executed: tuple[Executed, ...]
    """Roles and tools that were really asked, in order; what was read back after a loss is not among them."""
    evidence: tuple[Evidence, ...]
    spent: Spent
    moments: int
    """At how many moments its worker could have been lost."""
    losses: int
    lost_in: Executed | None
    """What was executed last before the loss. None: nothing was, or no worker was lost."""
    checkpoint_sizes: tuple[int, ...]
    """Bytes of each checkpoint that was made, in order."""

    def of(self, kind: StepKind) -> tuple[Step, ...]:
        """The steps of a kind."""
        return tuple(step for step in self.steps if step.kind is kind)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """Every tool call, as the graph saw it."""
        return tuple(result_of(step) for step in self.of(StepKind.TOOL))


async def rehearse(graph: Graph, question: str, *, lose_at: int | None = None, **given: Unpack[Given]) -> Rehearsal:
    """Run a graph on a question. `given`: the fields of `Scene`. `lose_at`: the moment at which a worker is lost."""
    scene = replace(Scene(question), **given)
    stage = Stage(graph, scene, lose_at)
    return finished(stage, await _ended(stage))


def finished(stage: Stage, state: Mapping[str, Any]) -> Rehearsal:
    """What came of a run."""
    reports = [one.record.report for one in stage.store.stored if isinstance(one.record, ReportRecord)]
    return Rehearsal(
        reports[-1] if reports else None,
        tuple(stage.steps),
        state,
        tuple(stage.executed),
        stage.book().latest(10_000),
        replace(stage.store.spent, seconds=stage.clock.seconds),
        stage.moments,
        stage.losses,
        stage.lost_in,
        tuple(stage.saver.sizes),
    )


async def _ended(stage: Stage) -> Mapping[str, Any]:
    """The state at the end. A lost worker is followed by another, and so is one that waited for a person."""
    position, begun = None, False
    while True:
        run = stage.open(position)
        try:
            ended = await worked(stage, run, begun)
        except (Lost, Exception):
            if not stage.is_lost:  # LangChain makes an error of its own of what it does not know
                raise
            position = stage.saver.lose()
            begun = position is not None
            continue
        if not ended.raised:
            return ended.values
        stage.respond(await _waited_for(stage, ended))
        await stage.saver.flush(None)
        position, begun = stage.saver.lose(), True


async def worked(stage: Stage, run: OpenRun, begun: bool) -> Execution:
    """One worker's claim. `begun`: there is a checkpoint to go on from. Raises Lost."""
    given = await _responses(stage, run) if begun else stage.graph.start(stage.run)
    ended = await execute(stage.graph, run, stage.saver, given, thread="run", read_values=True, durability="sync")
    run.parts.journal.end_calls()
    await run.parts.journal.append_last(*await _last_words(stage, run, ended), hook=_nothing_more)
    return ended


async def _responses(stage: Stage, run: OpenRun) -> Command[Any] | None:
    """The responses to what the graph interrupted itself for. `None` means that there are none."""
    found = await interrupts.resume_values(stage.store, run.parts.journal, stage.saver.interrupts())
    return Command(resume=found) if found else None


async def _waited_for(stage: Stage, ended: Execution) -> list[int]:
    """Numbers of the input requests that the run waits for."""
    wanted = awaited(ended.raised)
    raised = await stage.store.interrupt_requests([interrupt.id for interrupt in wanted.interrupts])
    return [*wanted.questions, *(one.request.number for one in raised.values())]


async def _last_words(stage: Stage, run: OpenRun, ended: Execution) -> list[Entry]:
    """What the graph interrupted itself for, or the report of a graph that delivers none itself."""
    if ended.raised:
        return await interrupts.new_requests(stage.store, awaited(ended.raised).interrupts)
    if await run.parts.reports.latest() is not None:
        return []
    own = await own_answer(stage.graph, run, ended)
    return [] if own is None else [await closing_report(stage.graph, run, own, reason_without_report(own))]


async def _nothing_more(_: object, __: Sequence[Step]) -> None: ...

"""Running a graph to its end in this process, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

from offing.core.report import Evidence, Report
from offing.core.run import Spent
from offing.core.step import Step, StepKind
from offing.sdk import Graph, ToolResult, result_of
from offing.testing.context import RehearsedContext
from offing.testing.given import Given
from offing.testing.scene import Scene
from offing.testing.stage import Executed, Lost, Stage

MOST_SUPERSTEPS = 10_000


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
    return Rehearsal(
        stage.report,
        tuple(stage.steps),
        state,
        tuple(stage.executed),
        stage.book().latest(10_000),
        replace(stage.spent, seconds=stage.clock.seconds),
        stage.moments,
        stage.losses,
        stage.lost_in,
        tuple(stage.saver.sizes),
    )


async def _ended(stage: Stage) -> dict[str, Any]:
    """The state at the end; a lost worker is followed by another."""
    position, begun = None, False
    while True:
        context = RehearsedContext(stage, stage.journal(position))
        try:
            state = await worked(stage, context, begun)
            context.settle()
            return state
        except Lost:
            position = stage.saver.lose()
            begun = position is not None


async def worked(stage: Stage, context: RehearsedContext, begun: bool) -> dict[str, Any]:
    """One worker's hold. `begun`: there is a checkpoint to go on from. Raises Lost."""
    compiled: Any = stage.graph.build().compile(checkpointer=stage.saver)
    config = {"configurable": {"thread_id": "run"}, "recursion_limit": MOST_SUPERSTEPS}
    given = None if begun else stage.graph.start(stage.run)
    state = await compiled.ainvoke(given, config, context=context, durability="sync")
    return cast(dict[str, Any], state)

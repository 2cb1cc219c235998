"""Crash tests: the worker crashes at each possible moment of a run.

The result must be the same, and no recorded call may be repeated.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Unpack, cast

from langchain_core.messages import BaseMessage

from offing.core.step import Step, StepKind
from offing.core.tool import SideEffect
from offing.sdk import Graph
from offing.testing.scenario import ScenarioOptions
from offing.testing.simulation import SimulatedRun, simulate_run


class RecoveryMismatchError(AssertionError):
    """A run whose worker crashed took a different course than one without a crash."""


async def assert_survives_worker_loss(graph: Graph, question: str, **options: Unpack[ScenarioOptions]) -> SimulatedRun:
    """Run a graph once undisturbed and once for each crash point, and return the undisturbed run.

    Raises RecoveryMismatchError with the crash point and the first difference. A node then depends on
    something that is neither in its state nor recorded, such as a clock, a random number, or the order
    of a set. Parallel branches may record their steps in another order after a crash. Later steps are
    then compared by their requests instead of their text, because steps and evidence are numbered in
    the order in which they are recorded.
    """
    whole = await simulate_run(graph, question, **options)
    effects = {
        t.spec.name for t in graph.tools if not isinstance(t, str) and t.spec.side_effect is SideEffect.AT_MOST_ONCE
    }
    for moment in range(whole.loss_points):
        recovered = await simulate_run(graph, question, crash_at=moment, **options)
        if recovered.interrupted_call is not None and recovered.interrupted_call.name in effects:
            # the outcome of the call is unknown, so the run may take a different course from here
            _assert_once(recovered, effects, moment)
        else:
            _assert_same_run(whole, recovered, moment)
    return whole


def _assert_same_run(undisturbed: SimulatedRun, recovered: SimulatedRun, moment: int) -> None:
    if recovered.losses != 1:
        raise RecoveryMismatchError(
            f"Crash point {moment} was not reached: the run takes a different course each time."
        )
    again = Counter(e.call_key for e in recovered.executed_calls) - Counter(
        e.call_key for e in undisturbed.executed_calls
    )
    if any(count > 1 for count in again.values()) or len({key.superstep for key in again}) > 1:
        raise RecoveryMismatchError(
            f"After a crash at point {moment}, recorded calls were repeated: {', '.join(map(str, again))}."
        )
    turned = _find_reordered_superstep(undisturbed.steps, recovered.steps)
    ones, others = (
        run.steps if turned is None else sorted(run.steps, key=_position_of_step) for run in (undisturbed, recovered)
    )
    for one, other in zip(ones, others, strict=False):
        if _comparable_step(one, turned) != _comparable_step(other, turned):
            difference = f"{_comparable_step(one, turned)}\n  {_comparable_step(other, turned)}"
            raise RecoveryMismatchError(f"After a crash at point {moment}, step {one.seq} differs:\n  {difference}")
    if len(undisturbed.steps) != len(recovered.steps):
        raise RecoveryMismatchError(
            f"After a crash at point {moment}, the run has {len(recovered.steps)} steps instead of "
            f"{len(undisturbed.steps)}."
        )
    if _final_result(undisturbed, turned) != _final_result(recovered, turned):
        raise RecoveryMismatchError(f"After a crash at point {moment}, the report or the final state differs.")


def _find_reordered_superstep(one: Sequence[Step], other: Sequence[Step]) -> int | None:
    """Return the first superstep whose branches recorded the same steps in another order.

    `None` means that there is none.
    """
    positions, others = list(map(_position_of_step, one)), list(map(_position_of_step, other))
    if positions == others or Counter(positions) != Counter(others):
        return None
    return next(position[0] for position, there in zip(positions, others, strict=True) if position != there)


def _position_of_step(step: Step) -> tuple[int, str, str, int]:
    """Return the position of a step by its call key. User messages have none, so they come first."""
    key = step.call_key
    return (key.superstep, key.path, key.digest, key.ordinal) if key else (-2, "", "", step.seq)


def _final_result(run: SimulatedRun, reordered_from: int | None) -> tuple[Any, ...]:
    if reordered_from is None:
        return run.report, _remove_message_ids(dict(run.state))
    return run.report and run.report.stop_reason, set(run.state)


def _remove_message_ids(value: Any) -> Any:
    """Return a state without the ids of its messages, which LangChain generates at random."""
    match value:
        case BaseMessage():
            return value.type, value.model_dump(exclude={"id"})
        case dict():
            return {key: _remove_message_ids(inner) for key, inner in cast(dict[Any, Any], value).items()}
        case list() | tuple():
            return [_remove_message_ids(inner) for inner in cast(list[Any], value)]
        case _:
            return value


def _assert_once(recovered: SimulatedRun, effects: set[str], moment: int) -> None:
    ran = Counter(
        step.call_key for step in recovered.list_steps(StepKind.TOOL_RESULT) if step.payload["tool"] in effects
    )
    if any(count > 1 for count in ran.values()):
        raise RecoveryMismatchError(
            f"After a crash at point {moment}, a tool with an at-most-once side effect was recorded twice."
        )


def _comparable_step(step: Step, reordered_from: int | None) -> tuple[Any, ...]:
    """Return the fields of a step that are compared."""
    if reordered_from is None or _position_of_step(step)[0] <= reordered_from:
        return step.kind, step.title, dict(step.payload), step.turn
    return step.kind, step.payload.get("role"), step.payload.get("tool"), step.turn

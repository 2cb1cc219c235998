"""Losing the worker at each moment of a run: the result must be the same, and nothing recorded is done again."""

from collections import Counter
from typing import Any, Unpack

from offing.core.step import Step, StepKind
from offing.core.tool import Effect
from offing.sdk import Graph
from offing.testing.given import Given
from offing.testing.rehearsal import Rehearsal, rehearse


class Differs(AssertionError):
    """A run that lost its worker went another way than one that did not."""


async def survives(graph: Graph, question: str, **given: Unpack[Given]) -> Rehearsal:
    """The undisturbed run, after one run for each of its moments in which the worker was lost there.

    Raises Differs with the moment and the first difference: a node then depends on something that is not in its state
    or on record, such as a clock, a random number, or the order of a set.
    """
    whole = await rehearse(graph, question, **given)
    effects = {t.spec.name for t in graph.tools if not isinstance(t, str) and t.spec.effect is Effect.AT_MOST_ONCE}
    for moment in range(whole.moments):
        lost = await rehearse(graph, question, lose_at=moment, **given)
        if lost.lost_in is not None and lost.lost_in.name in effects:
            _once(lost, effects, moment)  # its outcome is unknown to the run, which may go another way from here
        else:
            _same(whole, lost, moment)
    return whole


def _same(whole: Rehearsal, lost: Rehearsal, moment: int) -> None:
    if lost.losses != 1:
        raise Differs(f"Moment {moment} never came: the run takes another course each time.")
    if len(lost.executed) > len(whole.executed) + 1:
        again = Counter(e.key for e in lost.executed) - Counter(e.key for e in whole.executed)
        raise Differs(
            f"Lost at moment {moment}, calls were repeated that were on record: {', '.join(map(str, again))}."
        )
    for one, other in zip(map(_seen, whole.steps), map(_seen, lost.steps), strict=False):
        if one != other:
            raise Differs(f"Lost at moment {moment}, step {one[0]} differs:\n  {one[1:]}\n  {other[1:]}")
    if len(whole.steps) != len(lost.steps):
        raise Differs(f"Lost at moment {moment}, the run has {len(lost.steps)} steps instead of {len(whole.steps)}.")
    if whole.report != lost.report or dict(whole.state) != dict(lost.state):
        raise Differs(f"Lost at moment {moment}, the report or the state at the end differs.")


def _once(lost: Rehearsal, effects: set[str], moment: int) -> None:
    ran = Counter(step.key for step in lost.of(StepKind.TOOL) if step.payload["tool"] in effects)
    if any(count > 1 for count in ran.values()):
        raise Differs(f"Lost at moment {moment}, a tool whose effect must happen once was recorded twice.")


def _seen(step: Step) -> tuple[Any, ...]:
    return step.seq, step.kind, step.title, dict(step.payload), step.turn

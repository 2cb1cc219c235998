"""Losing the worker at each moment of a run: the result must be the same, and nothing recorded is done again."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Unpack, cast

from langchain_core.messages import BaseMessage

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
    or on record, such as a clock, a random number, or the order of a set. Branches that run side by side may record
    their steps in another order than before; what follows them is then compared by what was asked, not by its words,
    since steps and evidence are numbered in the order in which they come.
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
    again = Counter(e.key for e in lost.executed) - Counter(e.key for e in whole.executed)
    if any(count > 1 for count in again.values()) or len({key.superstep for key in again}) > 1:
        raise Differs(
            f"Lost at moment {moment}, calls were repeated that were on record: {', '.join(map(str, again))}."
        )
    turned = _turned(whole.steps, lost.steps)
    ones, others = (run.steps if turned is None else sorted(run.steps, key=_place) for run in (whole, lost))
    for one, other in zip(ones, others, strict=False):
        if _seen(one, turned) != _seen(other, turned):
            told = f"{_seen(one, turned)}\n  {_seen(other, turned)}"
            raise Differs(f"Lost at moment {moment}, step {one.seq} differs:\n  {told}")
    if len(whole.steps) != len(lost.steps):
        raise Differs(f"Lost at moment {moment}, the run has {len(lost.steps)} steps instead of {len(whole.steps)}.")
    if _end(whole, turned) != _end(lost, turned):
        raise Differs(f"Lost at moment {moment}, the report or the state at the end differs.")


def _turned(one: Sequence[Step], other: Sequence[Step]) -> int | None:
    """The first superstep whose branches recorded the same steps in another order. None: there is none."""
    places, others = list(map(_place, one)), list(map(_place, other))
    if places == others or Counter(places) != Counter(others):
        return None
    return next(place[0] for place, there in zip(places, others, strict=True) if place != there)


def _place(step: Step) -> tuple[int, str, str, int]:
    """What a person writes has no place of its own: it comes with the beginning."""
    key = step.key
    return (key.superstep, key.path, key.digest, key.ordinal) if key else (-2, "", "", step.seq)


def _end(run: Rehearsal, turned: int | None) -> tuple[Any, ...]:
    if turned is None:
        return run.report, _without_ids(dict(run.state))
    return run.report and run.report.reason, set(run.state)


def _without_ids(value: Any) -> Any:
    """A state without the ids of its messages: LangChain draws them at random."""
    match value:
        case BaseMessage():
            return value.type, value.model_dump(exclude={"id"})
        case dict():
            return {key: _without_ids(inner) for key, inner in cast(dict[Any, Any], value).items()}
        case list() | tuple():
            return [_without_ids(inner) for inner in cast(list[Any], value)]
        case _:
            return value


def _once(lost: Rehearsal, effects: set[str], moment: int) -> None:
    ran = Counter(step.key for step in lost.of(StepKind.TOOL) if step.payload["tool"] in effects)
    if any(count > 1 for count in ran.values()):
        raise Differs(f"Lost at moment {moment}, a tool whose effect must happen once was recorded twice.")


def _seen(step: Step, turned: int | None) -> tuple[Any, ...]:
    """What is compared of a step."""
    if turned is None or _place(step)[0] <= turned:
        return step.kind, step.title, dict(step.payload), step.turn
    return step.kind, step.payload.get("role"), step.payload.get("tool"), step.turn

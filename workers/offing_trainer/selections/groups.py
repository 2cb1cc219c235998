"""Whole groups and rollouts that are left out before anything is computed of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from offing_trainer.batch import Group, Sample
from offing_trainer.seam import GroupsGiven, Options, Plugin, Seam, State, no_state


class Informative(Options):
    epsilon: Annotated[float, Field(ge=0)] = 1e-9
    """Settled rewards that differ by no more are the same."""


class Successes(Options):
    least: float = 1.0
    """Settled reward."""
    most: Annotated[int, Field(ge=1)] | None = None
    """Rollouts of a group, drawn if there are more. None: any number."""


class RolloutSample(Options):
    count: Annotated[int, Field(ge=1)] = 12
    """Rollouts of a group at most."""


def informative(options: Informative, given: GroupsGiven) -> tuple[Sequence[Group], State]:
    """Groups whose rewards differ: of the others, statistics over rollouts say nothing."""
    return [group for group in given.groups if _differ(group, options.epsilon)], no_state()


def successes(options: Successes, given: GroupsGiven) -> tuple[Sequence[Group], State]:
    """What is worth imitating."""
    kept = [replace(group, samples=_best(options, group, given)) for group in given.groups]
    return [group for group in kept if group.samples], no_state()


def rollout_sample(options: RolloutSample, given: GroupsGiven) -> tuple[Sequence[Group], State]:
    """Statistics are then over the rollouts that were drawn."""
    return [replace(group, samples=_drawn(group.samples, options.count, given)) for group in given.groups], no_state()


def _differ(group: Group, epsilon: float) -> bool:
    known = [s.episode.reward for s in group.samples if s.episode.reward is not None]
    return bool(known) and max(known) - min(known) > epsilon


def _best(options: Successes, group: Group, given: GroupsGiven) -> tuple[Sample, ...]:
    good = [s for s in group.samples if s.episode.reward is not None and s.episode.reward >= options.least]
    return tuple(good) if options.most is None else _drawn(good, options.most, given)


def _drawn(samples: Sequence[Sample], most: int, given: GroupsGiven) -> tuple[Sample, ...]:
    if len(samples) <= most:
        return tuple(samples)
    drawn: list[int] = given.rng.choice(len(samples), most, replace=False).tolist()
    return tuple(samples[n] for n in sorted(drawn))


PLUGINS = (
    Plugin(
        "informative",
        Seam.SELECT,
        "DAPO, arXiv 2503.14476: dynamic sampling",
        informative,
        Informative,
        stage="groups",
        smallest_group=2,
    ),
    Plugin(
        "successes", Seam.SELECT, "rejection sampling fine-tuning", successes, Successes, stage="groups", draws=True
    ),
    Plugin(
        "rollout-sample",
        Seam.SELECT,
        "MemAct (DCPO), released code: statistics after sampling",
        rollout_sample,
        RolloutSample,
        stage="groups",
        draws=True,
    ),
)

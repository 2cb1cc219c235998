"""Tasks that are neither solved nor hopeless first: the success tracker read as a curriculum.

`potentials` serves the collector too, which decides by it what is collected next: see `job.curriculum`. The plug-in
chooses among groups that are there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from offing_trainer.advantages.tracker import TRACKER, tracked_of, unseen
from offing_trainer.batch import Floats, Group, Places
from offing_trainer.seam import GroupsGiven, Options, Plugin, Seam, State, no_state


class Potential(Options):
    """How a task is weighed."""

    floor: float = Field(default=0.05, gt=0)
    """Weight of a task that has no potential, so that it is seen again."""
    novelty: float = Field(default=0.0, ge=0)
    """Weights are divided by what is known of the task to this power."""
    prior: float = Field(default=0.5, gt=0, lt=1)
    """Success of a task that was never seen."""
    strength: float = Field(default=8.0, gt=0)
    """How many rollouts that counts as."""


class LearningPotential(Potential):
    keep: int = Field(default=32, ge=1)
    """Groups of a step; fewer are all kept."""


def learning_potential(options: LearningPotential, given: GroupsGiven) -> tuple[Sequence[Group], State]:
    """Drawn without replacement, each by its task's weight; in the order in which they came."""
    if len(given.groups) <= options.keep:
        return given.groups, no_state()
    weight = potentials(options, given.state.get(TRACKER, {}), [group.task for group in given.groups])
    kept: Places = given.rng.choice(len(given.groups), options.keep, replace=False, p=weight / weight.sum())
    return [given.groups[int(n)] for n in np.sort(kept)], no_state()


def potentials(options: Potential, table: Mapping[str, Any], tasks: Sequence[str]) -> Floats:
    """(tasks,) sqrt(v (1 - v)) / n^novelty + floor; v the tracked success, n the rollouts that it rests on."""
    found = [tracked_of(table, task) or unseen(options.prior, options.strength) for task in tasks]
    value, known = np.array([t.value for t in found]), np.array([t.alpha + t.beta for t in found])
    return np.sqrt(value * (1 - value)) / known**options.novelty + options.floor


PLUGIN = Plugin(
    "learning-potential",
    Seam.SELECT,
    "SPO (single-stream), arXiv 2509.13232: weight sqrt(v (1 - v)) + .05",
    learning_potential,
    LearningPotential,
    stage="groups",
    state=frozenset({TRACKER}),
    draws=True,
)

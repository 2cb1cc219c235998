"""Preference for tasks that are neither always solved nor never solved.

`compute_task_weights` also serves the rollout collector, which uses it to draw the tasks that are
collected next: see `job.curriculum`. The plug-in selects among existing groups.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from offing_trainer.advantages.tracker import TRACKER_TABLE, find_task_success, prior_task_success
from offing_trainer.batch import Floats, Indices, RolloutGroup
from offing_trainer.plugin import GroupSelectorInput, Plugin, PluginKind, PluginOptions, PluginState, empty_state


class PotentialOptions(PluginOptions):
    """How a task is weighted."""

    min_weight: float = Field(default=0.05, gt=0)
    """Weight of a task without learning potential, so that it is still drawn sometimes."""
    novelty_exponent: float = Field(default=0.0, ge=0)
    """Weights are divided by the number of known rollouts of the task to this power."""
    prior_success: float = Field(default=0.5, gt=0, lt=1)
    """Assumed success rate of a task that was never seen."""
    prior_rollouts: float = Field(default=8.0, gt=0)
    """Number of rollouts that `prior_success` counts as."""


class LearningPotentialOptions(PotentialOptions):
    max_groups: int = Field(default=32, ge=1)
    """Maximum number of groups per step. If there are fewer, all are kept."""


def learning_potential(
    options: LearningPotentialOptions, inputs: GroupSelectorInput
) -> tuple[Sequence[RolloutGroup], PluginState]:
    """Draw groups without replacement by the weights of their tasks. Their order is kept."""
    if len(inputs.groups) <= options.max_groups:
        return inputs.groups, empty_state()
    weight = compute_task_weights(options, inputs.state.get(TRACKER_TABLE, {}), [group.task for group in inputs.groups])
    selected: Indices = inputs.rng.choice(
        len(inputs.groups), options.max_groups, replace=False, p=weight / weight.sum()
    )
    return [inputs.groups[int(n)] for n in np.sort(selected)], empty_state()


def compute_task_weights(options: PotentialOptions, table: Mapping[str, Any], tasks: Sequence[str]) -> Floats:
    """Return sqrt(v (1 - v)) / n^novelty_exponent + min_weight for each task, (tasks,).

    v is the recorded success rate, n the number of rollouts behind it.
    """
    successes = [
        find_task_success(table, task) or prior_task_success(options.prior_success, options.prior_rollouts)
        for task in tasks
    ]
    value, known = np.array([t.success_rate for t in successes]), np.array([t.alpha + t.beta for t in successes])
    return np.sqrt(value * (1 - value)) / known**options.novelty_exponent + options.min_weight


PLUGIN = Plugin(
    "learning-potential",
    PluginKind.SELECTOR,
    "SPO (single-stream), arXiv 2509.13232: weight sqrt(v (1 - v)) + .05",
    learning_potential,
    LearningPotentialOptions,
    stage="groups",
    state_tables=frozenset({TRACKER_TABLE}),
    uses_rng=True,
)

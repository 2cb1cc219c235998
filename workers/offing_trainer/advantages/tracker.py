"""A per-task success baseline that persists across steps: single-stream policy optimization (SPO).

It needs no groups. Its table holds, for each task, the counts of successes and failures and the
policy version that was seen last. Older counts decay with how far the policy has moved since.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic import Field

from offing.core.errors import InvalidInput
from offing_trainer.batch import Floats, TrainingBatch
from offing_trainer.grouped_statistics import sum_by_index
from offing_trainer.plugin import Advantage, AdvantageInput, Plugin, PluginKind, PluginOptions, PluginState, Rewards
from offing_trainer.turn_math import standardize

TRACKER_TABLE = "tracker"


class TrackerOptions(PluginOptions):
    prior_success: float = Field(default=0.5, gt=0, lt=1)
    """Assumed success rate of a task that was never seen."""
    prior_rollouts: float = Field(default=8.0, gt=0)
    """Number of rollouts that `prior_success` counts as."""
    nats_per_version: float = Field(default=0.03, ge=0)
    """How far the policy moves with each version, in nats per token."""
    half_life_nats: float = Field(default=0.06, gt=0)
    """Policy drift, in nats per token, after which half of the counts are forgotten."""
    min_retention: float = Field(default=0.875, ge=0, le=1)
    """Minimum fraction of the counts that is retained."""
    max_retention: float = Field(default=0.96, ge=0, le=1)
    """Fraction of the counts that is retained when the policy has not moved."""
    standardize: bool = True
    """Standardize the advantages over the rollouts of the step."""


@dataclass(frozen=True, slots=True)
class TaskSuccess:
    """The recorded successes and failures of one task."""

    alpha: float
    """Weighted count of successes."""
    beta: float
    """Weighted count of failures."""
    version: int | None = None
    """Version of the policy that was seen last. `None` means that it is unknown."""

    @property
    def success_rate(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    def decay(self, retention: float) -> "TaskSuccess":
        return TaskSuccess(retention * self.alpha, retention * self.beta, self.version)

    def add_rollouts(self, successes: float, rollouts: float, version: int | None) -> "TaskSuccess":
        return TaskSuccess(self.alpha + successes, self.beta + rollouts - successes, version)


def tracker(options: TrackerOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    """Compute A = r - v, where v is the success rate before this step, and update the table.

    The advantages are then standardized over the step, if requested.
    """
    batch, table = inputs.batch, dict(inputs.state.get(TRACKER_TABLE, {}))
    score = _rollout_scores(batch, inputs.rewards)
    before = {
        task: find_task_success(table, task) or prior_task_success(options.prior_success, options.prior_rollouts)
        for task in batch.task_keys
    }
    value = np.array([before[task].success_rate for task in batch.task_keys])
    scored = ~np.isnan(score)
    raw = np.where(scored, score - value[batch.rollout_group], 0.0)
    advantage = standardize(raw, scored) if options.standardize else raw
    return Advantage(advantage[batch.token_rollout]), {
        TRACKER_TABLE: table | _update_tasks(options, batch, score, before)
    }


def compute_retention(options: TrackerOptions, drift: float) -> float:
    """Return rho = 2^(-drift / half_life_nats), limited to the configured range."""
    return min(max(2.0 ** (-drift / options.half_life_nats), options.min_retention), options.max_retention)


def find_task_success(table: Mapping[str, Any], task: str) -> TaskSuccess | None:
    return TaskSuccess(**table[task]) if task in table else None


def prior_task_success(prior: float, strength: float) -> TaskSuccess:
    """Return the assumed counts of a task that was never seen."""
    return TaskSuccess(prior * strength, (1 - prior) * strength)


def update_task_success(
    options: TrackerOptions, task_success: TaskSuccess, successes: float, rollouts: float, version: int | None
) -> TaskSuccess:
    """Return the counts after these rollouts of a policy version. `None` means that it is unknown."""
    decayed = task_success.decay(compute_retention(options, _policy_drift(options, task_success, version)))
    return decayed.add_rollouts(successes, rollouts, version)


def task_success_to_row(success: TaskSuccess) -> dict[str, Any]:
    """Return the record as plain values for the table. See `find_task_success`."""
    return asdict(success)


def _rollout_scores(batch: TrainingBatch, rewards: Rewards) -> Floats:
    """Return the sum of each rollout's rewards, (R,). NaN means that the rollout has no score.

    Raises InvalidInput for rewards outside the range from 0 to 1.
    """
    score = sum_by_index(rewards.turn, batch.turn_rollout, batch.num_rollouts)
    score = score if rewards.by_turn else score + rewards.rollout
    known = score[~np.isnan(score)]
    if len(known) and not 0 <= known.min() <= known.max() <= 1:
        problem = f"tracker needs rewards from 0 to 1, but they range from {known.min():g} to {known.max():g}"
        raise InvalidInput("pipeline.rewards", problem, "Set a threshold for outcome, or use another advantage.")
    return score


def _update_tasks(
    options: TrackerOptions, batch: TrainingBatch, score: Floats, before: Mapping[str, TaskSuccess]
) -> dict[str, Any]:
    """Return the updated records of the step's tasks, one for each task over all its groups."""
    after: dict[str, Any] = {}
    tasks = np.array(batch.task_keys, np.object_)[batch.rollout_group] if batch.num_groups else np.empty(0, np.object_)
    for task, success in before.items():
        is_counted = (tasks == task) & ~np.isnan(score) & ~batch.replayed
        if is_counted.any():
            now = update_task_success(
                options,
                success,
                float(score[is_counted].sum()),
                float(is_counted.sum()),
                _find_newest_version_of(batch, is_counted),
            )
            after[task] = task_success_to_row(now)
    return after


def _policy_drift(options: TrackerOptions, task_success: TaskSuccess, version: int | None) -> float:
    """Return the policy drift in nats per token since the task was last seen.

    If the task was never seen or a version is unknown, the drift of one version is assumed.
    """
    if task_success.version is None or version is None:
        return options.nats_per_version
    return options.nats_per_version * abs(version - task_success.version)


def _find_newest_version_of(batch: TrainingBatch, mask: np.ndarray[Any, Any]) -> int | None:
    return find_newest_version(batch.policy_versions[n] for n in np.flatnonzero(mask).tolist())


def find_newest_version(policies: Iterable[str]) -> int | None:
    """Return the highest version among NAME@VERSION labels, or `None` if no label has one."""
    numbers = [policy.rpartition("@")[2] for policy in policies]
    return max((int(number) for number in numbers if number.isdecimal()), default=None)


PLUGIN = Plugin(
    "tracker",
    PluginKind.ADVANTAGE,
    "SPO (single-stream), arXiv 2509.13232: A = r - alpha / (alpha + beta), z-scored over the batch",
    tracker,
    TrackerOptions,
    state_tables=frozenset({TRACKER_TABLE}),
)

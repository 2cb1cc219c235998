"""Task selection by learning potential: tasks that the job neither always solves nor always fails.

The job records its own success rate of each task, for any pipeline. The record is committed
with each step, together with the state of plug-ins. Weights and decay are those of single-stream policy
optimization.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np

from offing.storage.training_groups import GroupSummary
from offing_trainer.advantages.tracker import (
    TrackerOptions,
    find_newest_version,
    find_task_success,
    prior_task_success,
    task_success_to_row,
    update_task_success,
)
from offing_trainer.config import CurriculumConfig
from offing_trainer.plugin import PluginState
from offing_trainer.selectors.learning_potential import compute_task_weights

CURRICULUM_TABLE = "curriculum"
"""Name of the state table: by task, the counts of successes and failures and the last policy version."""


def select_tasks(
    curriculum_config: CurriculumConfig, state: PluginState, candidates: Sequence[UUID], count: int, seed: int
) -> list[UUID]:
    """Draw `count` of the candidates by weight, each at most once. Their order is kept.

    The same seed, state and candidates give the same result.
    """
    if len(candidates) <= count:
        return list(candidates)
    weight = compute_task_weights(
        curriculum_config, state.get(CURRICULUM_TABLE, {}), [str(task) for task in candidates]
    )
    drawn = np.random.default_rng(seed).choice(len(candidates), count, replace=False, p=weight / weight.sum())
    return [candidates[n] for n in sorted(drawn.tolist())]


def update_curriculum(
    curriculum_config: CurriculumConfig, state: PluginState, summaries: Sequence[GroupSummary]
) -> dict[str, Any]:
    """Return the record updated with a step's groups.

    Rewards are limited to the range from 0 to 1. Rollouts without a score do not count.
    """
    table, forgetting = (
        dict(state.get(CURRICULUM_TABLE, {})),
        TrackerOptions(prior_success=curriculum_config.prior_success, prior_rollouts=curriculum_config.prior_rollouts),
    )
    for head in summaries:
        scores = [min(max(m.reward, 0.0), 1.0) for m in head.final_members if m.reward is not None]
        if scores:
            success = find_task_success(table, str(head.task_id)) or prior_task_success(
                curriculum_config.prior_success, curriculum_config.prior_rollouts
            )
            now = update_task_success(
                forgetting, success, sum(scores), len(scores), find_newest_version(head.policy_labels)
            )
            table[str(head.task_id)] = task_success_to_row(now)
    return {CURRICULUM_TABLE: table}

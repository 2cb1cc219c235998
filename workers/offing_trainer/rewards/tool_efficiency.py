"""OTC: a success is rewarded more, the closer its cost is to the minimum for its task.

Other rewards do not change. The state table holds the minimum cost of each task's successes over
all steps.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from pydantic import Field

from offing.core.errors import InvalidInput
from offing_trainer.batch import Bits, Floats, TrainingBatch
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, PluginState, PluginTrait, RewardInput, Rewards

MIN_COST_TABLE = "min-cost"


class ToolEfficiencyOptions(PluginOptions):
    cost_stat: str = "tool_calls"
    """Name of the rollout statistic that is the cost."""
    min_success_reward: float = 0.5
    """Minimum reward of a success, whose cost can be the minimum."""
    scale: float = Field(default=1.0, gt=0)
    smoothing: float = Field(default=1.0, gt=0)
    """How slowly the reward falls with cost if a task can be solved at no cost. Larger is slower."""


def tool_efficiency(options: ToolEfficiencyOptions, inputs: RewardInput) -> tuple[Rewards, PluginState]:
    """Compute r = scale k(m, n) r for positive rewards.

    A rollout with unknown cost keeps its reward.
    """
    batch, rewards = inputs.batch, inputs.rewards
    if rewards.by_turn:
        raise InvalidInput(
            "pipeline.rewards", "tool-efficiency comes after a reward for turns", "Move it before that reward."
        )
    cost, reward = batch.rollout_stats[options.cost_stat], rewards.rollout
    table: Mapping[str, float] = dict(inputs.state.get(MIN_COST_TABLE, {}))
    min_costs = _update_min_costs(batch, cost, (reward >= options.min_success_reward) & ~np.isnan(cost), table)
    best = np.array([min_costs.get(task, np.nan) for task in batch.task_keys], np.float64)[batch.rollout_group]
    has_cost = (reward > 0) & ~np.isnan(cost)
    shaped = np.where(has_cost, options.scale * compute_efficiency(cost, best, options.smoothing) * reward, reward)
    return replace(rewards, rollout=shaped), {MIN_COST_TABLE: min_costs}


def compute_efficiency(cost: Floats, min_cost: Floats, smoothing: float) -> Floats:
    """Return k(m, n) from 0 to 1, with 1 at m = n.

    If `min_cost` is NaN or 0, it is cos(m pi / (2 m + smoothing)), which is 1 at no cost.
    """
    falling = np.cos(cost * np.pi / (2 * cost + smoothing))
    known = min_cost > 0
    n = np.where(known, min_cost, 1.0)
    total = cost + n
    peaked = np.sin(np.divide(cost * np.pi, total, out=np.zeros(len(cost)), where=total > 0))
    return np.where(known, peaked, falling)


def _update_min_costs(
    batch: TrainingBatch, cost: Floats, is_success: Bits, table: Mapping[str, float]
) -> dict[str, float]:
    min_costs = dict(table)
    for nth in np.flatnonzero(is_success):
        task = batch.task_keys[int(batch.rollout_group[nth])]
        min_costs[task] = min(min_costs.get(task, np.inf), float(cost[nth]))
    return min_costs


PLUGIN = Plugin(
    "tool-efficiency",
    PluginKind.REWARD,
    "OTC, arXiv 2504.14870: r = k(m, n) r_correct, k = sin(f pi / 2n), f = 2 n m / (m + n)",
    tool_efficiency,
    ToolEfficiencyOptions,
    needs_for_options=lambda options: frozenset({f"rollout_stats.{options.cost_stat}"}),
    state_tables=frozenset({MIN_COST_TABLE}),
    traits=frozenset({PluginTrait.COST, PluginTrait.TOOL_CALL_REWARD}),
)

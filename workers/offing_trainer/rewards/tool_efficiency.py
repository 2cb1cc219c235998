"""Success pays the more, the closer its cost is to the least that ever solved the task: OTC.

Failure pays what it paid. The table holds the least cost of each task's successes, across steps.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from pydantic import Field

from offing.core.errors import InvalidInput
from offing_trainer.batch import Batch, Bits, Floats
from offing_trainer.seam import Claim, Options, Plugin, RewardGiven, Rewards, Seam, State

LEAST_COST = "least-cost"


class ToolEfficiency(Options):
    cost: str = "tool_calls"
    """A fact about rollouts."""
    success: float = 0.5
    """Rewards from here on are successes, whose cost can be the least."""
    scale: float = Field(default=1.0, gt=0)
    smooth: float = Field(default=1.0, gt=0)
    """How gently cost takes away where the task can be solved for nothing; the larger, the gentler."""


def tool_efficiency(options: ToolEfficiency, given: RewardGiven) -> tuple[Rewards, State]:
    """r = scale k(m, n) r for rewards above 0; a rollout whose cost is not known keeps its reward."""
    batch, rewards = given.batch, given.rewards
    if rewards.by_turn:
        raise InvalidInput("chain.reward", "tool-efficiency comes after turns were paid", "Put it before.")
    cost, reward = batch.facts[options.cost], rewards.rollout
    table: Mapping[str, float] = dict(given.state.get(LEAST_COST, {}))
    least = _least(batch, cost, (reward >= options.success) & ~np.isnan(cost), table)
    best = np.array([least.get(task, np.nan) for task in batch.task], np.float64)[batch.rollout_group]
    priced = (reward > 0) & ~np.isnan(cost)
    paid = np.where(priced, options.scale * efficiency(cost, best, options.smooth) * reward, reward)
    return replace(rewards, rollout=paid), {LEAST_COST: least}


def efficiency(cost: Floats, least: Floats, smooth: float) -> Floats:
    """k(m, n) from 0 to 1, and 1 at m = n. `least` NaN or 0: cos(m pi / (2 m + smooth)), which is 1 for nothing."""
    falling = np.cos(cost * np.pi / (2 * cost + smooth))
    known = least > 0
    n = np.where(known, least, 1.0)
    total = cost + n
    peaked = np.sin(np.divide(cost * np.pi, total, out=np.zeros(len(cost)), where=total > 0))
    return np.where(known, peaked, falling)


def _least(batch: Batch, cost: Floats, success: Bits, table: Mapping[str, float]) -> dict[str, float]:
    least = dict(table)
    for nth in np.flatnonzero(success):
        task = batch.task[int(batch.rollout_group[nth])]
        least[task] = min(least.get(task, np.inf), float(cost[nth]))
    return least


PLUGIN = Plugin(
    "tool-efficiency",
    Seam.REWARD,
    "OTC, arXiv 2504.14870: r = k(m, n) r_correct, k = sin(f pi / 2n), f = 2 n m / (m + n)",
    tool_efficiency,
    ToolEfficiency,
    also_needs=lambda options: frozenset({f"facts.{options.cost}"}),
    state=frozenset({LEAST_COST}),
    claims=frozenset({Claim.COST, Claim.TOOL_PULL}),
)

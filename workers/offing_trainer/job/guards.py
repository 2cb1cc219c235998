"""When a job has gone wrong by its own figures. Pure.

Figures of a step are those of the weights as the steps before left them, so a guard that trips at a step condemns the
update before it: the job goes back to the last weights that passed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from offing_trainer.config import GuardConfig


@dataclass(frozen=True, slots=True)
class Tripped:
    """Why a job may not go on."""

    guard: str
    value: float
    limit: float

    def __str__(self) -> str:
        return f"{self.guard}: {self.value:.4g}, and the limit is {self.limit:.4g}"


def tripped(limits: GuardConfig, first: Mapping[str, float], now: Mapping[str, float]) -> Tripped | None:
    """The first guard that figures break. `first`: those of the job's first step. Missing figures break none."""
    found = [*_entropy(limits, first, now), *_distance(limits, now), *_reward(limits, first, now)]
    return next((one for one in found if not one.value <= one.limit), None)


def _entropy(limits: GuardConfig, first: Mapping[str, float], now: Mapping[str, float]) -> list[Tripped]:
    before, entropy = first.get("entropy"), now.get("entropy")
    if before is None or entropy is None or not before > 0:
        return []
    moved = entropy / before - 1
    found: list[Tripped] = []
    if limits.entropy_drop is not None:
        found.append(Tripped("entropy fell by a share", -moved, limits.entropy_drop))
    if limits.entropy_rise is not None:
        found.append(Tripped("entropy rose by a share", moved, limits.entropy_rise))
    return found


def _distance(limits: GuardConfig, now: Mapping[str, float]) -> list[Tripped]:
    """By the estimator k1, in which a token counts by its logarithm: in k3, which is the smoother curve, a single rare
    token that has become likely outweighs thousands of others."""
    found: list[Tripped] = []
    kl, ratio = now.get("kl_k1"), now.get("ratio")
    if limits.kl_limit is not None and kl is not None:
        found.append(Tripped("distance to the sampling policy", kl, limits.kl_limit))
    if limits.ratio_limit is not None and ratio is not None:
        away = max(ratio, 1 / ratio) if ratio > 0 else math.inf
        found.append(Tripped("mean importance ratio", away, limits.ratio_limit))
    return found


def _reward(limits: GuardConfig, first: Mapping[str, float], now: Mapping[str, float]) -> list[Tripped]:
    before, reward = first.get("reward"), now.get("reward")
    if limits.reward_drop is None or before is None or reward is None:
        return []
    return [Tripped("mean reward fell", before - reward, limits.reward_drop)]

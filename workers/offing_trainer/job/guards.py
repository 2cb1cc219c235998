"""Guards: limits on a job's metrics that stop it.

The metrics of a step describe the weights before its update. A guard that is violated therefore
concerns the update of the step before, and the job returns to the last good weights. Mean reward and
violations describe the policy that sampled the rollouts, which is another one if a job trains on
stored rollouts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from offing_trainer.config import GuardConfig

BASELINE_METRICS = ("entropy", "reward", "violation_fraction")
"""Metrics whose change since their first value is limited."""


@dataclass(frozen=True, slots=True)
class GuardViolation:
    """A guard that the metrics violate."""

    guard: str
    value: float
    limit: float

    def __str__(self) -> str:
        return f"{self.guard}: {self.value:.4g}, above the limit of {self.limit:.4g}"


def find_violation(
    guards: GuardConfig, first_metrics: Mapping[str, float], metrics: Mapping[str, float]
) -> GuardViolation | None:
    """Find the first guard that the metrics violate, or return `None`.

    `first_metrics` has the first value of each of `BASELINE_METRICS` that the job has measured. Missing
    metrics violate no guard.
    """
    candidates = [
        *_entropy_candidates(guards, first_metrics, metrics),
        *_divergence_candidates(guards, metrics),
        *_rollout_candidates(guards, first_metrics, metrics),
    ]
    return next((one for one in candidates if not one.value <= one.limit), None)


def _entropy_candidates(
    guards: GuardConfig, first_metrics: Mapping[str, float], metrics: Mapping[str, float]
) -> list[GuardViolation]:
    before, entropy = first_metrics.get("entropy"), metrics.get("entropy")
    if before is None or entropy is None or not before > 0:
        return []
    change = entropy / before - 1
    violations: list[GuardViolation] = []
    if guards.max_entropy_drop is not None:
        violations.append(GuardViolation("relative drop of entropy", -change, guards.max_entropy_drop))
    if guards.max_entropy_rise is not None:
        violations.append(GuardViolation("relative rise of entropy", change, guards.max_entropy_rise))
    return violations


def _divergence_candidates(guards: GuardConfig, metrics: Mapping[str, float]) -> list[GuardViolation]:
    """Return the divergence guards, with KL estimated by k1.

    In k1 a token counts by its log-ratio. In the smoother k3, a single rare token that became likely
    would outweigh thousands of others.
    """
    violations: list[GuardViolation] = []
    kl, ratio = metrics.get("kl_k1"), metrics.get("ratio")
    if guards.max_kl is not None and kl is not None:
        violations.append(GuardViolation("KL divergence from the sampling policy", kl, guards.max_kl))
    if guards.max_ratio is not None and ratio is not None:
        ratio_distance = max(ratio, 1 / ratio) if ratio > 0 else math.inf
        violations.append(GuardViolation("mean importance ratio", ratio_distance, guards.max_ratio))
    return violations


def _rollout_candidates(
    guards: GuardConfig, first_metrics: Mapping[str, float], metrics: Mapping[str, float]
) -> list[GuardViolation]:
    limits = (
        ("drop of mean reward", "reward", -1, guards.max_reward_drop),
        ("rise of the fraction of rollouts that violated a rule", "violation_fraction", 1, guards.max_violation_rise),
    )
    return [
        GuardViolation(name, sign * (metrics[metric] - first_metrics[metric]), limit)
        for name, metric, sign, limit in limits
        if limit is not None and metric in metrics and metric in first_metrics
    ]

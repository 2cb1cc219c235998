"""Metrics of a training step: its groups, its advantages, and its loss.

A job stores them under the names used here. Guards read `entropy`, `kl_k1`, `ratio`,
`reward` and `violation_fraction`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from offing.core.trajectory import Outcome
from offing_trainer.batch import Floats, RolloutGroup, TrainingBatch
from offing_trainer.critic import explained_variance
from offing_trainer.grouped_statistics import count_by_index
from offing_trainer.plugin import Columns, Rewards
from offing_trainer.regularizers.kl import estimate_kl

MIN_SUCCESS_REWARD = 1.0
"""Minimum finalized reward of a success."""

NEAR_ZERO_ADVANTAGE = 1e-6
"""Advantages smaller than this count as zero in the metrics."""

ADVANTAGE_BIN_EDGES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
"""Edges of the histogram of token advantages."""


def group_metrics(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Compute metrics of the finalized rewards, before any plug-in selects groups or changes rewards."""
    scores = [[s.metadata.reward for s in group.rollouts if s.metadata.reward is not None] for group in groups]
    differing = sum(max(metrics, default=0.0) > min(metrics, default=0.0) for metrics in scores)
    known_scores = np.array([score for group_scores in scores for score in group_scores], np.float64)
    group_scores = {
        "groups": float(len(groups)),
        "rollouts": float(sum(len(group.rollouts) for group in groups)),
        "zero_variance": 1.0 - differing / len(groups) if groups else 0.0,
    }
    if len(known_scores):
        group_scores |= {
            "reward": float(known_scores.mean()),
            "reward_std": float(known_scores.std()),
            "success_rate": float((known_scores >= MIN_SUCCESS_REWARD).mean()),
        }
    return group_scores | _violation_fraction(groups)


def _violation_fraction(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Return the fraction of the scored rollouts that violated a rule of the graph. Empty if no outcome is known."""
    known = [s.metadata for group in groups for s in group.rollouts if s.metadata.reward is not None]
    outcomes = [metadata.outcome for metadata in known if metadata.outcome is not None]
    return {"violation_fraction": outcomes.count(Outcome.VIOLATED) / len(outcomes)} if outcomes else {}


def advantage_metrics(batch: TrainingBatch, rewards: Rewards, advantage: Floats) -> dict[str, float]:
    """Compute metrics of the rows that are trained."""
    metrics = {
        "replayed": float(batch.replayed.sum()),
        "rows": float(batch.num_rows),
        "tokens": float(batch.num_tokens),
        "turns": float((count_by_index(batch.token_turn, batch.num_turns) > 0).sum()),
    }
    known_rewards = rewards.rollout[~np.isnan(rewards.rollout)]
    if len(known_rewards):
        metrics["shaped_reward"] = float(known_rewards.mean())
    return metrics | (_advantage_histogram(advantage) if len(advantage) else {})


def _advantage_histogram(advantage: Floats) -> dict[str, float]:
    bars = np.bincount(
        np.searchsorted(ADVANTAGE_BIN_EDGES, advantage, side="right"), minlength=len(ADVANTAGE_BIN_EDGES) + 1
    ) / len(advantage)
    names = [f"advantage_below_{edge:g}" for edge in ADVANTAGE_BIN_EDGES] + [
        f"advantage_from_{ADVANTAGE_BIN_EDGES[-1]:g}"
    ]
    return {
        "advantage_mean": float(advantage.mean()),
        "advantage_std": float(advantage.std()),
        "advantage_near_zero": float((np.abs(advantage) < NEAR_ZERO_ADVANTAGE).mean()),
        **{name: float(bar) for name, bar in zip(names, bars, strict=True)},
    }


class MetricAccumulator:
    """Accumulates the metrics of optimizer steps over micro-batches, independent of their split."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._low, self._high = np.inf, -np.inf

    def add(self, sums: Mapping[str, float]) -> None:
        """Add sums to the accumulated ones. See `LossTerm.metrics`."""
        for name, value in sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def add_tokens(self, batch: TrainingBatch, logprobs: Floats, entropy: Floats, columns: Columns) -> None:
        """Add tokens that were forwarded for a gradient."""
        if not len(logprobs):
            return
        sums = {"forwarded": float(len(logprobs)), "entropy": float(entropy.sum())}
        sums |= self._ratio_sums(batch, logprobs, columns)
        if "ref_logprobs" in columns:
            log_ratio = columns["ref_logprobs"] - logprobs
            sums |= {
                f"kl_ref{name}": float(estimate_kl(k, log_ratio)[0].sum()) for name, k in (("", "k3"), ("_k1", "k1"))
            }
        self.add(sums)

    def _ratio_sums(self, batch: TrainingBatch, logprobs: Floats, columns: Columns) -> dict[str, float]:
        """Sum ratios and divergences over the tokens with recorded logprobs."""
        known = ~np.isnan(batch.behavior_logprobs)
        log_ratio = np.clip(batch.behavior_logprobs[known] - logprobs[known], -20, 20)
        if not len(log_ratio):
            return {}
        ratio = np.exp(-log_ratio)
        self._low, self._high = min(self._low, float(ratio.min())), max(self._high, float(ratio.max()))
        return {
            "known": float(len(log_ratio)),
            "ratio": float(ratio.sum()),
            "ratio_squared": float((ratio**2).sum()),
            "kl": float((ratio - 1 + log_ratio).sum()),
            "kl_k1": float(log_ratio.sum()),
        }

    def compute_metrics(self) -> dict[str, float]:
        """Return means over tokens and fractions of them. Sums of loss terms are returned unchanged."""
        sums = dict(self._sums)
        tokens, known = sums.pop("forwarded", 0.0), sums.pop("known", 0.0)
        squared = sums.pop("ratio_squared", 0.0)
        heads = [name.removesuffix(TARGET_COUNT_SUFFIX) for name in sums if name.endswith(TARGET_COUNT_SUFFIX)]
        critic_sums = {name for name in sums if name.rpartition("/")[0] in heads}
        metrics = {
            name: sums[name] for name in sums.keys() - TOKEN_MEAN_METRICS - RECORDED_TOKEN_MEAN_METRICS - critic_sums
        }
        metrics |= {name: value for head in heads for name, value in _critic_metrics(sums, head).items()}
        metrics |= {name: sums[name] / tokens for name in TOKEN_MEAN_METRICS & sums.keys() if tokens}
        metrics |= {name: sums[name] / known for name in RECORDED_TOKEN_MEAN_METRICS & sums.keys() if known}
        if known:
            metrics |= {"ratio_min": self._low, "ratio_max": self._high, "ess": sums["ratio"] ** 2 / squared / known}
        return metrics


def _critic_metrics(sums: Mapping[str, float], head: str) -> dict[str, float]:
    """Return a head's number of targets, means over them, and its explained variance.

    explained_variance = 1 - Var(target - value) / Var(target), with the values that were forwarded for
    the step's gradients, as in openai/baselines for PPO (`common/math_util.py`). 1 means a perfect
    prediction, 0 is no better than a constant, and below 0 is worse. It is missing if the targets do
    not vary.
    """
    target_count, variance = sums[head + TARGET_COUNT_SUFFIX], explained_variance(sums, head)
    means = {
        f"{head}/{name}": sums[f"{head}/{name}"] / target_count for name in ("clipped", "squared_error") if target_count
    }
    return {
        head + TARGET_COUNT_SUFFIX: target_count,
        **means,
        **({} if variance is None else {f"{head}/explained_variance": variance}),
    }


TARGET_COUNT_SUFFIX = "/target_count"
"""Suffix of the metric that counts a critic's targets."""

TOKEN_MEAN_METRICS = frozenset({"entropy", "kl_ref", "kl_ref_k1", "clip_low", "clip_high"})
"""Metrics that are means over the forwarded tokens."""

RECORDED_TOKEN_MEAN_METRICS = frozenset({"ratio", "kl", "kl_k1"})
"""Metrics that are means over the tokens with recorded logprobs.
Ratio and KL divergence are between the trained weights and the sampling policy. The divergence is
estimated by k3 from the sampled tokens.
"""

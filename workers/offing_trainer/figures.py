"""What a step looked like in numbers: of its groups, its credit, and its loss part by part.

The only home of the figures' names. A job stores them as they are; guards read `entropy`, `kl`, `ratio`, `reward`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from offing_trainer.batch import Batch, Floats, Group
from offing_trainer.critic import explained_variance
from offing_trainer.regularisers.kl import estimated
from offing_trainer.seam import Columns, Rewards
from offing_trainer.statistics import counts

SUCCESS = 1.0
"""Settled reward from which a rollout counts as a success."""

SMALL = 1e-6
"""An advantage below it teaches nothing."""

EDGES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
"""Between the bars of the histogram of advantages, a rollout's token counting alike."""


def of_groups(groups: Sequence[Group]) -> dict[str, float]:
    """Of settled rewards, before any plug-in chose or paid."""
    scores = [[s.episode.reward for s in group.samples if s.episode.reward is not None] for group in groups]
    differing = sum(max(found, default=0.0) > min(found, default=0.0) for found in scores)
    known = np.array([score for found in scores for score in found], np.float64)
    found = {
        "groups": float(len(groups)),
        "rollouts": float(sum(len(group.samples) for group in groups)),
        "zero_variance": 1.0 - differing / len(groups) if groups else 0.0,
    }
    if len(known):
        found |= {
            "reward": float(known.mean()),
            "reward_std": float(known.std()),
            "success": float((known >= SUCCESS).mean()),
        }
    return found


def of_credit(batch: Batch, rewards: Rewards, advantage: Floats) -> dict[str, float]:
    """Of the rows that are trained."""
    found = {
        "replayed": float(batch.replayed.sum()),
        "rows": float(batch.rows),
        "tokens": float(batch.tokens),
        "turns": float((counts(batch.token_turn, batch.turns) > 0).sum()),
    }
    paid = rewards.rollout[~np.isnan(rewards.rollout)]
    if len(paid):
        found["reward_paid"] = float(paid.mean())
    return found | (_of_advantage(advantage) if len(advantage) else {})


def _of_advantage(advantage: Floats) -> dict[str, float]:
    bars = np.bincount(np.searchsorted(EDGES, advantage, side="right"), minlength=len(EDGES) + 1) / len(advantage)
    names = [f"advantage_below_{edge:g}" for edge in EDGES] + [f"advantage_from_{EDGES[-1]:g}"]
    return {
        "advantage_mean": float(advantage.mean()),
        "advantage_std": float(advantage.std()),
        "advantage_small": float((np.abs(advantage) < SMALL).mean()),
        **{name: float(bar) for name, bar in zip(names, bars, strict=True)},
    }


class Tally:
    """Adds up what the parts of optimiser steps were; part by part, in any cut."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._low, self._high = np.inf, -np.inf

    def add(self, figures: Mapping[str, float]) -> None:
        """Sums; see `seam.Loss.figures`."""
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def saw(self, batch: Batch, logp: Floats, entropy: Floats, columns: Columns) -> None:
        """Tokens as they were forwarded on the way to a gradient."""
        if not len(logp):
            return
        sums = {"forwarded": float(len(logp)), "entropy": float(entropy.sum())}
        sums |= self._ratio(batch, logp, columns)
        if "logp_ref" in columns:
            apart = columns["logp_ref"] - logp
            sums |= {f"kl_ref{name}": float(estimated(k, apart)[0].sum()) for name, k in (("", "k3"), ("_k1", "k1"))}
        self.add(sums)

    def _ratio(self, batch: Batch, logp: Floats, columns: Columns) -> dict[str, float]:
        """Of tokens whose behaviour is known."""
        known = ~np.isnan(batch.behaviour)
        apart = np.clip(batch.behaviour[known] - logp[known], -20, 20)
        if not len(apart):
            return {}
        ratio = np.exp(-apart)
        self._low, self._high = min(self._low, float(ratio.min())), max(self._high, float(ratio.max()))
        return {
            "known": float(len(apart)),
            "ratio": float(ratio.sum()),
            "ratio_squared": float((ratio**2).sum()),
            "kl": float((ratio - 1 + apart).sum()),
            "kl_k1": float(apart.sum()),
        }

    def figures(self) -> dict[str, float]:
        """Means over tokens and shares of them; sums of loss terms as they are."""
        sums = dict(self._sums)
        tokens, known = sums.pop("forwarded", 0.0), sums.pop("known", 0.0)
        squared = sums.pop("ratio_squared", 0.0)
        heads = [name.removesuffix(ASKED) for name in sums if name.endswith(ASKED)]
        pieces = {name for name in sums if name.rpartition("/")[0] in heads}
        found = {name: sums[name] for name in sums.keys() - A_TOKEN - A_KNOWN_TOKEN - pieces}
        found |= {name: value for head in heads for name, value in _of_critic(sums, head).items()}
        found |= {name: sums[name] / tokens for name in A_TOKEN & sums.keys() if tokens}
        found |= {name: sums[name] / known for name in A_KNOWN_TOKEN & sums.keys() if known}
        if known:
            found |= {"ratio_min": self._low, "ratio_max": self._high, "ess": sums["ratio"] ** 2 / squared / known}
        return found


def _of_critic(sums: Mapping[str, float], head: str) -> dict[str, float]:
    """Turns that the head was asked at, means over those, and the share of variance that it explains.

    explained_variance = 1 - Var(target - value) / Var(target), with values as they were forwarded for the step's
    gradients; as openai/baselines has it for PPO (`common/math_util.py`). 1: it foresees all; 0: no better than one
    number for all turns; below 0: worse. Not there where no target differs from another.
    """
    asked, share = sums[head + ASKED], explained_variance(sums, head)
    means = {f"{head}/{name}": sums[f"{head}/{name}"] / asked for name in ("clipped", "squared_error") if asked}
    return {head + ASKED: asked, **means, **({} if share is None else {f"{head}/explained_variance": share})}


ASKED = "/asked"
"""Ends the name of a critic's figure that counts turns."""

A_TOKEN = frozenset({"entropy", "kl_ref", "kl_ref_k1", "clip_low", "clip_high"})
"""Figures that are means over the tokens that were forwarded."""

A_KNOWN_TOKEN = frozenset({"ratio", "kl", "kl_k1"})
"""Over those whose behaviour is known. Ratio and divergence are between the weights as trained and the policy that
sampled, and the divergence's estimate is k3 with the sampled tokens."""

"""EMPG: larger advantages for turns with low entropy, and a bonus for leading to such turns."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats, TrainingBatch
from offing_trainer.plugin import AdvantageInput, Plugin, PluginKind, PluginOptions, PluginTrait
from offing_trainer.turn_math import mean_per_turn


class EntropyModulatedOptions(PluginOptions):
    k: float = Field(default=1.0, ge=0)
    """How strongly turns with low entropy are preferred. `0` turns this off."""
    k_next: float = Field(default=1.0, ge=0)
    """The same as `k`, for the entropy of the next turn."""
    zeta: float = Field(default=0.1, ge=0)
    """Weight of the bonus for a next turn with low entropy. `0` turns it off."""
    center: bool = True
    """Subtract the mean over all turns from the result."""


def entropy_modulated(options: EntropyModulatedOptions, inputs: AdvantageInput, token_advantage: Floats) -> Floats:
    """Compute A' = A g(H_t) + zeta f(H_{t+1}).

    H is the turn's mean entropy at sampling, scaled to the range from 0 to 1 over the batch.
    """
    batch, normalized_entropy = inputs.batch, _normalized_entropy(inputs.batch)
    there = np.flatnonzero(~np.isnan(normalized_entropy))
    if not len(there):
        return token_advantage
    sure = np.exp(-options.k * normalized_entropy)
    gain = sure / sure[there].mean()
    changed = (
        token_advantage * gain[batch.token_turn]
        + options.zeta * _confidence_bonus(options, batch, normalized_entropy)[batch.token_turn]
    )
    return changed - (mean_per_turn(batch, changed)[there].mean() if options.center else 0.0)


def _normalized_entropy(batch: TrainingBatch) -> Floats:
    """Return the scaled mean entropy of each turn, (T,). NaN means that the turn has no tokens."""
    entropy = mean_per_turn(batch, batch.entropy)
    known = entropy[~np.isnan(entropy)]
    if not len(known):
        return entropy
    spread = known.max() - known.min()
    return (entropy - known.min()) / (spread if spread > 0 else 1.0)


def _confidence_bonus(options: EntropyModulatedOptions, batch: TrainingBatch, normalized_entropy: Floats) -> Floats:
    """Return the bonus for the rollout's next turn that has tokens, (T,). The last turn gets 0."""
    there = np.flatnonzero(~np.isnan(normalized_entropy))
    same_rollout = batch.turn_rollout[there[1:]] == batch.turn_rollout[there[:-1]]
    bonus = np.zeros(batch.num_turns)
    bonus[there[:-1]] = np.where(same_rollout, np.exp(-options.k_next * normalized_entropy[there[1:]]), 0.0)
    return bonus


PLUGIN = Plugin(
    "entropy-modulated",
    PluginKind.ADVANTAGE_MODIFIER,
    "EMPG, arXiv 2509.09265: A g(H_t) + zeta f(H_{t+1}), centered",
    entropy_modulated,
    EntropyModulatedOptions,
    needs=frozenset({"entropy"}),
    traits=frozenset({PluginTrait.ENTROPY_MODULATION}),
)

"""Turns of which the policy was sure are credited more, and turns that led to where it was surer are paid: EMPG."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Batch, Floats
from offing_trainer.seam import AdvantageGiven, Claim, Options, Plugin, Seam
from offing_trainer.turns import turn_means


class EntropyModulated(Options):
    k: float = Field(default=1.0, ge=0)
    """How strongly sure turns are preferred. 0: not."""
    k_next: float = Field(default=1.0, ge=0)
    """The same of the turn after."""
    zeta: float = Field(default=0.1, ge=0)
    """How much a sure turn after it pays. 0: nothing."""
    centre: bool = True
    """Take off the mean over all turns."""


def entropy_modulated(options: EntropyModulated, given: AdvantageGiven, token: Floats) -> Floats:
    """A' = A g(H_t) + zeta f(H_{t+1}); H the turn's mean entropy as sampled, from 0 to 1 over the batch."""
    batch, unsure = given.batch, _unsure(given.batch)
    there = np.flatnonzero(~np.isnan(unsure))
    if not len(there):
        return token
    sure = np.exp(-options.k * unsure)
    gain = sure / sure[there].mean()
    changed = token * gain[batch.token_turn] + options.zeta * _paid(options, batch, unsure)[batch.token_turn]
    return changed - (turn_means(batch, changed)[there].mean() if options.centre else 0.0)


def _unsure(batch: Batch) -> Floats:
    """(T,) NaN: the turn has no tokens."""
    entropy = turn_means(batch, batch.entropy)
    known = entropy[~np.isnan(entropy)]
    if not len(known):
        return entropy
    spread = known.max() - known.min()
    return (entropy - known.min()) / (spread if spread > 0 else 1.0)


def _paid(options: EntropyModulated, batch: Batch, unsure: Floats) -> Floats:
    """(T,) for the rollout's next turn that has tokens; the last gets nothing."""
    there = np.flatnonzero(~np.isnan(unsure))
    goes_on = batch.turn_rollout[there[1:]] == batch.turn_rollout[there[:-1]]
    paid = np.zeros(batch.turns)
    paid[there[:-1]] = np.where(goes_on, np.exp(-options.k_next * unsure[there[1:]]), 0.0)
    return paid


PLUGIN = Plugin(
    "entropy-modulated",
    Seam.MODIFIER,
    "EMPG, arXiv 2509.09265: A g(H_t) + zeta f(H_{t+1}), centred",
    entropy_modulated,
    EntropyModulated,
    needs=frozenset({"entropy"}),
    claims=frozenset({Claim.ENTROPY_USE}),
)

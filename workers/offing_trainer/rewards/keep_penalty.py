"""What going on with a subgoal costs, against a policy that never switches, and what copying it wrongly costs."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from pydantic import Field

from offing_trainer.advantages.hae import KEPT, SUBGOAL, segment_begins
from offing_trainer.batch import Batch, Bits
from offing_trainer.seam import Options, Plugin, RewardGiven, Rewards, Seam, State, no_state


class KeepPenalty(Options):
    keep: float = Field(default=-0.3, le=0)
    """Added at every turn that keeps its subgoal."""
    per_rollout: bool = True
    """`keep` is divided by the turns of the rollout, so that keeping throughout costs about `keep`."""
    drift: float = Field(default=-0.3, le=0)
    """Added at a turn that keeps its subgoal and writes other tokens than those of the subgoal in the turn before."""


def keep_penalty(options: KeepPenalty, given: RewardGiven) -> tuple[Rewards, State]:
    batch, keeps = given.batch, ~segment_begins(given.batch)
    turns = np.bincount(batch.turn_rollout, minlength=batch.rollouts)[batch.turn_rollout]
    each = options.keep / turns if options.per_rollout else np.full(batch.turns, options.keep)
    paid = given.rewards.turn + np.where(keeps, each, 0.0) + np.where(keeps & drifts(batch), options.drift, 0.0)
    return replace(given.rewards, turn=paid), no_state()


def drifts(batch: Batch) -> Bits:
    """(T,) the turn's subgoal is not, token by token, that of the turn before it in the batch."""
    tokens = np.flatnonzero((batch.kind == SUBGOAL) | (batch.kind == KEPT))
    order = tokens[np.argsort(batch.token_turn[tokens], kind="stable")]
    edges: list[int] = np.searchsorted(batch.token_turn[order], np.arange(batch.turns + 1)).tolist()
    said = [batch.token_id[order[a:b]].tobytes() for a, b in pairwise(edges)]
    return np.array([nth > 0 and words != said[nth - 1] for nth, words in enumerate(said)], np.bool_)


PLUGIN = Plugin(
    "keep-penalty",
    Seam.REWARD,
    "HiPER, arXiv 2602.16165, reward shaping of the released code",
    keep_penalty,
    KeepPenalty,
)

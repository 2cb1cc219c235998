"""Reward shaping of HiPER: penalties for keeping a subgoal and for copying it incorrectly."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from pydantic import Field

from offing_trainer.advantages.hae import SUBGOAL, UNCHANGED_SUBGOAL, segment_starts
from offing_trainer.batch import Bits, TrainingBatch
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, PluginState, RewardInput, Rewards, empty_state


class KeepPenaltyOptions(PluginOptions):
    keep_reward: float = Field(default=-0.3, le=0)
    """Reward added at every turn that keeps its subgoal."""
    per_rollout: bool = True
    """Divide `keep_reward` by the turns of the rollout. Keeping throughout then costs about `keep_reward`."""
    changed_subgoal_reward: float = Field(default=-0.3, le=0)
    """Reward added at a turn that keeps its subgoal but writes it with other tokens than the turn before."""


def keep_penalty(options: KeepPenaltyOptions, inputs: RewardInput) -> tuple[Rewards, PluginState]:
    batch, keeps = inputs.batch, ~segment_starts(inputs.batch)
    turns = np.bincount(batch.turn_rollout, minlength=batch.num_rollouts)[batch.turn_rollout]
    each = options.keep_reward / turns if options.per_rollout else np.full(batch.num_turns, options.keep_reward)
    turn_reward = (
        inputs.rewards.turn
        + np.where(keeps, each, 0.0)
        + np.where(keeps & has_changed_subgoal(batch), options.changed_subgoal_reward, 0.0)
    )
    return replace(inputs.rewards, turn=turn_reward), empty_state()


def has_changed_subgoal(batch: TrainingBatch) -> Bits:
    """Return whether each turn's subgoal has other tokens than that of the turn before it, (T,).

    The turn before it is the one in the batch.
    """
    tokens = np.flatnonzero((batch.span_kind == SUBGOAL) | (batch.span_kind == UNCHANGED_SUBGOAL))
    order = tokens[np.argsort(batch.token_turn[tokens], kind="stable")]
    edges: list[int] = np.searchsorted(batch.token_turn[order], np.arange(batch.num_turns + 1)).tolist()
    subgoal_tokens = [batch.token_ids[order[a:b]].tobytes() for a, b in pairwise(edges)]
    return np.array(
        [nth > 0 and words != subgoal_tokens[nth - 1] for nth, words in enumerate(subgoal_tokens)], np.bool_
    )


PLUGIN = Plugin(
    "keep-penalty",
    PluginKind.REWARD,
    "HiPER, arXiv 2602.16165, reward shaping of the released code",
    keep_penalty,
    KeepPenaltyOptions,
)

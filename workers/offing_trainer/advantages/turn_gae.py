"""Flat generalised advantages a turn: one critic, one stream, the same for all tokens of a turn."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats
from offing_trainer.critic import said
from offing_trainer.hierarchy import AtCut
from offing_trainer.seam import Advantage, AdvantageGiven, Options, Plugin, Seam, State, no_state
from offing_trainer.turns import backward, closes, cut_off, following, has_token, standardised, turn_rewards


class TurnGae(Options):
    gamma: float = Field(default=1.0, ge=0, le=1)
    """A turn."""
    lam: float = Field(default=1.0, ge=0, le=1)
    at_cut: AtCut = AtCut.OFF
    """compat: the last turn's own value."""
    standardise: bool = True
    """Over all turns of the batch that have tokens."""


def turn_gae(options: TurnGae, given: AdvantageGiven) -> tuple[Advantage, State]:
    batch, paid = given.batch, turn_rewards(given.batch, given.rewards)
    scored = ~np.isnan(paid)
    value = said(given.columns, "value", scored)
    future = following(value, closes(batch.turn_rollout), _beyond(options, given, value))
    surprise = np.where(scored, paid, 0.0) + options.gamma * future - value
    advantage = backward(surprise, np.full(batch.turns, options.gamma * options.lam), batch.turn_rollout)
    target = np.where(scored, advantage + value, np.nan)
    having = has_token(batch, np.ones(batch.tokens, np.bool_)) & scored
    credit = standardised(advantage, having) if options.standardise else np.where(having, advantage, 0.0)
    return Advantage(credit[batch.token_turn], {"value": target}), no_state()


def _beyond(options: TurnGae, given: AdvantageGiven, value: Floats) -> Floats:
    cut = cut_off(given.batch)
    if options.at_cut is AtCut.NEXT_VALUE:
        after = given.columns["value_after"][given.batch.turn_rollout]
        return np.where(cut, said({"value_after": after}, "value_after", cut), 0.0)
    return np.where(cut, value, 0.0) if options.at_cut is AtCut.COMPAT else np.zeros(len(value))


PLUGIN = Plugin(
    "turn-gae",
    Seam.ADVANTAGE,
    "Schulman et al., arXiv 1506.02438, a turn as one action",
    turn_gae,
    TurnGae,
    needs=frozenset({"value"}),
    also_needs=lambda options: frozenset({"value_after"} if options.at_cut is AtCut.NEXT_VALUE else ()),
)

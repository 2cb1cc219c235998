"""Flat generalised advantages a turn: one critic, one stream, the same for all tokens of a turn."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats, Places
from offing_trainer.critic import said
from offing_trainer.hierarchy import AtCut
from offing_trainer.seam import Advantage, AdvantageGiven, Options, Plugin, Seam, State, no_state
from offing_trainer.turns import backward, closes, cut_off, following, standardised, taught


class TurnGae(Options):
    gamma: float = Field(default=1.0, ge=0, le=1)
    """A turn."""
    lam: float = Field(default=1.0, ge=0, le=1)
    at_cut: AtCut = AtCut.OFF
    """compat: the last turn's own value."""
    standardise: bool = True
    """Over all turns of the batch."""


def turn_gae(options: TurnGae, given: AdvantageGiven) -> tuple[Advantage, State]:
    batch = given.batch
    turns, paid = taught(batch, given.rewards)
    owner = batch.turn_rollout[turns]
    value = said("value", given.columns["value"][turns], np.ones(len(turns), np.bool_))
    future = following(value, closes(owner), _beyond(options, given, turns, value))
    surprise = paid + options.gamma * future - value
    advantage = backward(surprise, np.full(len(turns), options.gamma * options.lam), owner)
    credit, target = np.zeros(batch.turns), np.full(batch.turns, np.nan)
    target[turns] = advantage + value
    credit[turns] = standardised(advantage, np.ones(len(turns), np.bool_)) if options.standardise else advantage
    return Advantage(credit[batch.token_turn], {"value": target}), no_state()


def _beyond(options: TurnGae, given: AdvantageGiven, turns: Places, value: Floats) -> Floats:
    cut = cut_off(given.batch)[turns]
    if options.at_cut is AtCut.NEXT_VALUE:
        return said("value_after", given.columns["value_after"][given.batch.turn_rollout[turns]], cut)
    return np.where(cut, value, 0.0) if options.at_cut is AtCut.COMPAT else np.zeros(len(turns))


PLUGIN = Plugin(
    "turn-gae",
    Seam.ADVANTAGE,
    "Schulman et al., arXiv 1506.02438, a turn as one action",
    turn_gae,
    TurnGae,
    needs=frozenset({"value"}),
    also_needs=lambda options: frozenset({"value_after"} if options.at_cut is AtCut.NEXT_VALUE else ()),
)

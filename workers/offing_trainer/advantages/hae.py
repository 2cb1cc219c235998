"""Hierarchical advantages: subgoals, the actions under them, and the decision to keep or switch, each credited apart.

The only home of which token gets which stream. A turn that holds a new subgoal, and a rollout's first, begins a
segment; both are read from the spans, which come from the very parse that the flow acted on.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from offing.core.rows import SPAN_CODES
from offing_trainer.batch import Batch, Bits, Floats, Places
from offing_trainer.critic import said
from offing_trainer.hierarchy import AtCut, Stream, Walk, chosen_stream, high_stream, low_stream, switch_stream, walk_of
from offing_trainer.seam import Advantage, AdvantageGiven, Columns, Options, Plugin, Seam, State, no_state
from offing_trainer.turns import cut_off, has_token, opens, standardised, taught

SWITCH, SUBGOAL, KEPT, ACTION, TEXT = (SPAN_CODES[kind] for kind in ("switch", "subgoal", "kept", "action", "text"))


class Hae(Options):
    gamma: float = Field(default=1.0, ge=0, le=1)
    """A turn."""
    lam_turn: float = Field(default=1.0, ge=0, le=1)
    lam_segment: float = Field(default=0.95, ge=0, le=1)
    """A segment."""
    switch: Literal["release", "paper"] = "release"
    """release: against a critic of its own; paper: (switched - chance to) * (high value - low value of going on)."""
    at_cut: AtCut = AtCut.OFF
    standardise: bool = True
    """Each stream by itself, over the turns of the whole batch that have its tokens."""
    targets: Literal["lambda", "one-step"] = "lambda"
    """What critics are asked to say: lambda-returns as released, or one step as in the paper."""
    undecided: Literal["turn", "release"] = "turn"
    """What a turn without switch and subgoal, such as one that no role could read, is held against. turn: the critic
    that is read where every turn begins. release: the low critic, read there too, for such turns alone; what only
    failures show it, it takes for failed, and they cost nothing."""


def hae(options: Hae, given: AdvantageGiven) -> tuple[Advantage, State]:
    batch = given.batch
    turns, paid = taught(batch, given.rewards)
    walk = _walk(options, batch, given.columns, turns, paid)
    low, high, switch = _streams(options, walk, given, turns)
    masks, token = token_masks(batch), np.zeros(batch.tokens)
    for kind, stream in {ACTION: low, SUBGOAL: high, SWITCH: switch}.items():
        credit = _credit(options, batch, _placed(batch, turns, stream.advantage, 0.0), masks[kind], turns)
        token[masks[kind]] = credit[batch.token_turn[masks[kind]]]
    low = replace(low, target=np.where(_has_low(options, batch, turns), low.target, np.nan))
    targets = {"value_low": low, "value_high": high} | ({"value_term": switch} if options.switch == "release" else {})
    return Advantage(token, {name: _placed(batch, turns, s.target, np.nan) for name, s in targets.items()}), no_state()


def token_masks(batch: Batch) -> dict[int, Bits]:
    """(P,) by span code: the tokens that each stream credits; no token is in two. What no role could read is an action
    as a whole."""
    begins = segment_begins(batch)[batch.token_turn]
    subgoal = ((batch.kind == SUBGOAL) | (batch.kind == KEPT)) & begins
    return {SWITCH: batch.kind == SWITCH, SUBGOAL: subgoal, ACTION: (batch.kind == ACTION) | (batch.kind == TEXT)}


def segment_begins(batch: Batch) -> Bits:
    """(T,)"""
    return opens(batch.turn_rollout) | has_token(batch, batch.kind == SUBGOAL)


def _walk(options: Hae, batch: Batch, columns: Columns, turns: Places, paid: Floats) -> Walk:
    owner, cut = batch.turn_rollout[turns], cut_off(batch)[turns]
    begins = opens(owner) | segment_begins(batch)[turns]
    asked = np.ones(len(turns), np.bool_) if options.switch == "paper" else begins
    after = np.full(len(turns), np.nan)
    if options.at_cut is AtCut.NEXT_VALUE:
        after = said("value_after", columns["value_after"][owner], cut)
    begun = columns["value_term" if options.switch == "release" else "value_high"]
    low = np.where(_has_low(options, batch, turns), columns["value_low"][turns], begun[turns])
    high, every = columns["value_high"][turns], np.ones(len(turns), np.bool_)
    return walk_of(owner, begins, paid, said("value_low", low, every), said("value_high", high, asked), cut, after)


def _has_low(options: Hae, batch: Batch, turns: Places) -> Bits:
    """Of each of these turns, whether the low critic is read for it."""
    decided = has_token(batch, np.isin(batch.kind, (SWITCH, SUBGOAL, KEPT)))[turns]
    return decided | (options.undecided == "release")


def _streams(options: Hae, walk: Walk, given: AdvantageGiven, turns: Places) -> tuple[Stream, Stream, Stream]:
    gamma, at_cut, one_step = options.gamma, options.at_cut, options.targets == "one-step"
    low = low_stream(walk, gamma, options.lam_turn, at_cut, one_step=one_step)
    high = high_stream(walk, gamma, options.lam_segment, at_cut, one_step=one_step)
    if options.switch == "release":
        value = said("value_term", given.columns["value_term"][turns], np.ones(len(turns), np.bool_))
        return low, high, switch_stream(walk, gamma, at_cut, value)
    kept = said("value_kept", given.columns["value_kept"][turns], ~opens(walk.rollout))
    return low, high, chosen_stream(walk, kept, switch_chance(given.batch)[turns])


def switch_chance(batch: Batch) -> Floats:
    """(T,) that the policy that sampled would switch, from what it wrote; 0: the turn has no switch."""
    tokens = batch.kind == SWITCH
    chance = np.exp(np.bincount(batch.token_turn[tokens], batch.behaviour[tokens], batch.turns))
    switched = has_token(batch, batch.kind == SUBGOAL)
    return np.where(has_token(batch, tokens), np.where(switched, chance, 1.0 - chance), 0.0)


def _credit(options: Hae, batch: Batch, advantage: Floats, tokens: Bits, turns: Places) -> Floats:
    """(T,)"""
    having = has_token(batch, tokens) & np.isin(np.arange(batch.turns), turns)
    return standardised(advantage, having) if options.standardise else np.where(having, advantage, 0.0)


def _placed(batch: Batch, turns: Places, values: Floats, elsewhere: float) -> Floats:
    """(T,)"""
    placed = np.full(batch.turns, elsewhere)
    placed[turns] = values
    return placed


def _also_needs(options: Hae) -> frozenset[str]:
    form = {"value_term"} if options.switch == "release" else {"value_kept", "behaviour"}
    return frozenset(form | ({"value_after"} if options.at_cut is AtCut.NEXT_VALUE else set()))


PLUGIN = Plugin(
    "hae",
    Seam.ADVANTAGE,
    "HiPER, arXiv 2602.16165, Theorem 4.1 and released code",
    hae,
    Hae,
    needs=frozenset({"value_low", "value_high"}),
    also_needs=_also_needs,
)

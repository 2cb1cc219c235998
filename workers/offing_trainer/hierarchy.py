"""Credit in two levels: turns within segments, segments within rollouts, and the decision to begin a segment.

The only home of hierarchical advantage estimation's arithmetic (HiPER, arXiv 2602.16165, and its released code). Works
on arrays a turn; knows no tokens and no plug-in. A segment is a stretch of turns under one subgoal; the first turn of a
rollout always begins one. Discounts are a turn.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from offing_trainer.batch import Bits, Floats, Places
from offing_trainer.turns import backward, closes, following, opens


class AtCut(StrEnum):
    """What stands for the future of a rollout that a limit cut off."""

    OFF = "off"
    """Nothing, as if it had ended."""
    COMPAT = "compat"
    """As released: the last turn's own low value; for segments and switches the high value where the last one began."""
    NEXT_VALUE = "next-value"
    """The critic after the last observation."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Turns of rollouts one after the other, and what critics say of them; one entry a turn."""

    rollout: Places
    """Equal for the turns of a rollout."""
    begins: Bits
    """The turn begins a segment."""
    reward: Floats
    low: Floats
    """Value of the turn's state under its subgoal."""
    high: Floats
    """Value of its state before a subgoal is chosen; read where a segment begins, elsewhere by the paper's switches."""
    cut: Bits
    """A limit ended the rollout."""
    after: Floats
    """Value after the rollout's last observation, read at last turns of rollouts that were cut. NaN: not known."""

    @property
    def segment(self) -> Places:
        return np.cumsum(self.begins).astype(np.int64)

    @property
    def last(self) -> Bits:
        return closes(self.rollout)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """One level's credit."""

    advantage: Floats
    """(T,) 0 where the level has nothing to say."""
    target: Floats
    """(T,) what its critic should have said. NaN: it is not asked."""


def walk_of(
    rollout: Places, begins: Bits, reward: Floats, low: Floats, high: Floats, cut: Bits, after: Floats | None = None
) -> Walk:
    """`after` None: no such values are known."""
    unknown = np.full(len(reward), np.nan)
    return Walk(rollout, begins | opens(rollout), reward, low, high, cut, unknown if after is None else after)


def low_stream(walk: Walk, gamma: float, lam: float, at_cut: AtCut, *, one_step: bool = False) -> Stream:
    """Generalised advantages of actions within their segments, which end with the high value of the next one."""
    segment = walk.segment
    ending = closes(segment)
    beyond = np.where(ending & ~walk.last, following(walk.high, walk.last, walk.high), _future(walk, at_cut, walk.low))
    future = np.where(ending, beyond, following(walk.low, walk.last, walk.low))
    surprise = walk.reward + gamma * future - walk.low
    advantage = backward(surprise, np.full(len(surprise), gamma * lam), segment)
    return Stream(advantage, walk.low + (surprise if one_step else advantage))


def high_stream(walk: Walk, gamma: float, lam: float, at_cut: AtCut, *, one_step: bool = False) -> Stream:
    """Generalised advantages of subgoals: a segment is one step that lasts as many turns as it has."""
    at = np.flatnonzero(walk.begins)
    fade, paid, value = gamma ** _lengths(walk), _paid(walk, gamma)[at], walk.high[at]
    owner = walk.rollout[at]
    future = following(value, closes(owner), _high_future(walk, at_cut))
    surprise = paid + fade * future - value
    advantage = backward(surprise, fade * lam, owner)
    return Stream(
        _placed(advantage, at, len(walk.reward), 0.0),
        _placed(value + (surprise if one_step else advantage), at, len(walk.reward), np.nan),
    )


def switch_stream(walk: Walk, gamma: float, at_cut: AtCut, value: Floats) -> Stream:
    """The released form: what the rest of the segment brought, against a critic of the decision to keep or switch."""
    at = np.flatnonzero(walk.begins)
    owner = walk.rollout[at]
    future = following(walk.high[at], closes(owner), _high_future(walk, at_cut))
    nth = walk.segment - 1
    left = _turns_left(walk)
    brought = _paid(walk, gamma) + gamma**left * future[nth]
    return Stream(brought - value, brought)


def chosen_stream(walk: Walk, kept: Floats, chance: Floats) -> Stream:
    """The paper's form: (q - chance of SWITCH) * (high value - low value of going on), 0 at a rollout's first turn.

    `kept`: value of the turn's state under the subgoal before; `chance`: that the policy switches, as it sampled.
    """
    gain = (walk.begins - chance) * (walk.high - kept)
    return Stream(np.where(opens(walk.rollout), 0.0, gain), np.full(len(gain), np.nan))


def _high_future(walk: Walk, at_cut: AtCut) -> Floats:
    """(segments,)"""
    return _future(walk, at_cut, walk.high[np.flatnonzero(walk.begins)][walk.segment - 1])[closes(walk.segment)]


def _future(walk: Walk, at_cut: AtCut, compat: Floats) -> Floats:
    """(T,) value after the last turn of a rollout."""
    if at_cut is AtCut.OFF:
        return np.zeros(len(walk.reward))
    return np.where(walk.cut, compat if at_cut is AtCut.COMPAT else walk.after, 0.0)


def _paid(walk: Walk, gamma: float) -> Floats:
    """(T,) discounted rewards from the turn to the end of its segment."""
    return backward(walk.reward, np.full(len(walk.reward), gamma), walk.segment)


def _turns_left(walk: Walk) -> Floats:
    """(T,) turns of the segment from this one on."""
    ones = np.ones(len(walk.reward))
    return backward(ones, ones, walk.segment)


def _lengths(walk: Walk) -> Floats:
    """(segments,) in turns."""
    return _turns_left(walk)[walk.begins]


def _placed(values: Floats, at: Places, size: int, elsewhere: float) -> Floats:
    placed = np.full(size, elsewhere)
    placed[at] = values
    return placed

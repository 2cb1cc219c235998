"""Hierarchical GAE over turns within segments, segments within rollouts, and switches between them.

The formulas are those of HiPER (arXiv 2602.16165) and of its released code. All arrays have one
entry per turn. A segment is a range of turns under one subgoal; the first turn of a rollout always
begins one. Discounts are per turn.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from offing_trainer.batch import Bits, Floats, Indices
from offing_trainer.turn_math import accumulate_backward, mark_first, mark_last, shift_from_next


class TruncationValue(StrEnum):
    """The value after the last turn of a truncated rollout."""

    OFF = "off"
    """0, as if the rollout had ended."""
    LAST_VALUE = "last-value"
    """The last turn's own low value, as released.
    Subgoals and switches use the high value at the start of the last segment.
    """
    NEXT_VALUE = "next-value"
    """The critic's value after the last observation."""


@dataclass(frozen=True, slots=True, eq=False)
class TurnSequence:
    """Turns of concatenated rollouts with their values, one entry per turn."""

    rollout_index: Indices
    """Index of the turn's rollout."""
    starts_segment: Bits
    """Whether the turn begins a segment."""
    reward: Floats
    low_value: Floats
    """Value of the turn's state under its subgoal."""
    high_value: Floats
    """Value of the turn's state before a subgoal is chosen.
    It is read where a segment begins, and at all turns for the switches of the paper.
    """
    is_truncated: Bits
    """Whether a limit ended the rollout."""
    final_value: Floats
    """Value after the rollout's last observation, read at the last turn of a truncated rollout.
    NaN means unknown.
    """

    @property
    def segment_index(self) -> Indices:
        return np.cumsum(self.starts_segment).astype(np.int64)

    @property
    def is_last_turn(self) -> Bits:
        return mark_last(self.rollout_index)


@dataclass(frozen=True, slots=True, eq=False)
class AdvantageStream:
    """Advantages and value targets of one level of the hierarchy."""

    advantage: Floats
    """Advantages, (T,). 0 where the level has no decision."""
    target: Floats
    """Value targets, (T,). NaN means that the turn has no target."""


def build_turn_sequence(
    rollout_index: Indices,
    starts_segment: Bits,
    reward: Floats,
    low_value: Floats,
    high_value: Floats,
    is_truncated: Bits,
    final_value: Floats | None = None,
) -> TurnSequence:
    """Build the sequence. A `final_value` of `None` means that no such values are known."""
    unknown = np.full(len(reward), np.nan)
    return TurnSequence(
        rollout_index,
        starts_segment | mark_first(rollout_index),
        reward,
        low_value,
        high_value,
        is_truncated,
        unknown if final_value is None else final_value,
    )


def compute_action_stream(
    sequence: TurnSequence, gamma: float, lam: float, at_truncation: TruncationValue, *, one_step: bool = False
) -> AdvantageStream:
    """Compute GAE of the actions within their segments.

    A segment ends with the high value of the next one.
    """
    segment = sequence.segment_index
    ending = mark_last(segment)
    beyond = np.where(
        ending & ~sequence.is_last_turn,
        shift_from_next(sequence.high_value, sequence.is_last_turn, sequence.high_value),
        _bootstrap_values(sequence, at_truncation, sequence.low_value),
    )
    future = np.where(ending, beyond, shift_from_next(sequence.low_value, sequence.is_last_turn, sequence.low_value))
    td_error = sequence.reward + gamma * future - sequence.low_value
    advantage = accumulate_backward(td_error, np.full(len(td_error), gamma * lam), segment)
    return AdvantageStream(advantage, sequence.low_value + (td_error if one_step else advantage))


def compute_subgoal_stream(
    sequence: TurnSequence, gamma: float, lam: float, at_truncation: TruncationValue, *, one_step: bool = False
) -> AdvantageStream:
    """Compute GAE of the subgoals. A segment is one step, discounted by its number of turns."""
    at = np.flatnonzero(sequence.starts_segment)
    discount, segment_return, value = (
        gamma ** _segment_lengths(sequence),
        _segment_returns(sequence, gamma)[at],
        sequence.high_value[at],
    )
    owner = sequence.rollout_index[at]
    future = shift_from_next(value, mark_last(owner), _segment_bootstrap_values(sequence, at_truncation))
    td_error = segment_return + discount * future - value
    advantage = accumulate_backward(td_error, discount * lam, owner)
    return AdvantageStream(
        _scatter(advantage, at, len(sequence.reward), 0.0),
        _scatter(value + (td_error if one_step else advantage), at, len(sequence.reward), np.nan),
    )


def compute_switch_stream(
    sequence: TurnSequence, gamma: float, at_truncation: TruncationValue, switch_value: Floats
) -> AdvantageStream:
    """Compute the released form of switch advantages.

    The return of the rest of the segment is compared with a critic of the decision to keep or switch.
    """
    at = np.flatnonzero(sequence.starts_segment)
    owner = sequence.rollout_index[at]
    future = shift_from_next(
        sequence.high_value[at], mark_last(owner), _segment_bootstrap_values(sequence, at_truncation)
    )
    nth = sequence.segment_index - 1
    remaining_turns = _remaining_segment_turns(sequence)
    segment_return = _segment_returns(sequence, gamma) + gamma**remaining_turns * future[nth]
    return AdvantageStream(segment_return - switch_value, segment_return)


def compute_paper_switch_stream(
    sequence: TurnSequence, keep_value: Floats, switch_probability: Floats
) -> AdvantageStream:
    """Compute the paper's form of switch advantages.

    It is (switched - probability of switching) * (high value - keep value), and 0 at a rollout's first
    turn. `keep_value` is the value of the turn's state under the previous subgoal. `switch_probability`
    is the sampling policy's.
    """
    advantage = (sequence.starts_segment - switch_probability) * (sequence.high_value - keep_value)
    return AdvantageStream(
        np.where(mark_first(sequence.rollout_index), 0.0, advantage), np.full(len(advantage), np.nan)
    )


def _segment_bootstrap_values(sequence: TurnSequence, at_truncation: TruncationValue) -> Floats:
    """Return the high value after each segment that ends a truncated rollout, (segments,). Others get 0."""
    return _bootstrap_values(
        sequence,
        at_truncation,
        sequence.high_value[np.flatnonzero(sequence.starts_segment)][sequence.segment_index - 1],
    )[mark_last(sequence.segment_index)]


def _bootstrap_values(sequence: TurnSequence, at_truncation: TruncationValue, last_value: Floats) -> Floats:
    """Return the value after the last turn of each turn's rollout, (T,). It is 0 unless truncated."""
    if at_truncation is TruncationValue.OFF:
        return np.zeros(len(sequence.reward))
    return np.where(
        sequence.is_truncated, last_value if at_truncation is TruncationValue.LAST_VALUE else sequence.final_value, 0.0
    )


def _segment_returns(sequence: TurnSequence, gamma: float) -> Floats:
    """Return the discounted rewards from each turn to the end of its segment, (T,)."""
    return accumulate_backward(sequence.reward, np.full(len(sequence.reward), gamma), sequence.segment_index)


def _remaining_segment_turns(sequence: TurnSequence) -> Floats:
    """Return the number of turns from each turn to the end of its segment, (T,)."""
    ones = np.ones(len(sequence.reward))
    return accumulate_backward(ones, ones, sequence.segment_index)


def _segment_lengths(sequence: TurnSequence) -> Floats:
    """Return the number of turns of each segment, (segments,)."""
    return _remaining_segment_turns(sequence)[sequence.starts_segment]


def _scatter(values: Floats, indices: Indices, size: int, fill: float) -> Floats:
    result = np.full(size, fill)
    result[indices] = values
    return result

"""Advantages relative to the group: z-scores, and the leave-one-out baseline.

The unit of a score matters most. With rollouts as the unit, each rollout counts once, however many
turns it took: Flow-GRPO, DCPO, SUPO. With turns as the unit, each turn of a rollout is a separate
entry: EAPO, and Flow-GRPO as released. Rows work likewise.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from offing_trainer.batch import Bits, Floats, Indices, TrainingBatch
from offing_trainer.grouped_statistics import count_by_index, mean_by_index, reciprocal, std_by_index, sum_by_index
from offing_trainer.plugin import (
    Advantage,
    AdvantageInput,
    Plugin,
    PluginKind,
    PluginOptions,
    PluginState,
    Rewards,
    empty_state,
)

StatisticsUnit = Literal["rollouts", "turns", "rows"]

MIN_DIFFERENCE = 1e-12
"""Differences below this value are treated as rounding errors."""


class GroupZOptions(PluginOptions):
    unit: StatisticsUnit = "rollouts"
    """The unit that counts as one entry of the statistics and gets one advantage."""
    ddof: Literal[0, 1] = 1
    """`1` uses the sample standard deviation, `0` that of the population."""
    std: Literal["group", "batch", "none"] = "group"
    """The standard deviation to divide by.
    `batch` uses all scores of the step; `none` only subtracts the mean.
    """
    epsilon: Annotated[float, Field(ge=0)] = 1e-6
    """Added to the standard deviation."""
    min_std: Annotated[float, Field(ge=0)] = 0.0
    """Minimum standard deviation to divide by, which keeps small differences small. `0` is as published."""
    dedupe: bool = False
    """With turns or rows as the unit, count each rollout once in the mean and the standard deviation.
    The entries of a rollout share its weight.
    """
    single_entry: Literal["zero", "score"] = "zero"
    """The advantage of an entry that is alone in its group.
    `score` uses the entry's own score, as verl does.
    """


class LeaveOneOutOptions(PluginOptions):
    unit: StatisticsUnit = "rollouts"


def group_z(options: GroupZOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    batch = inputs.batch
    entries = build_entries(batch, inputs.rewards, options.unit)
    weight = entries.rollout_weight if options.dedupe else None
    mean = mean_by_index(entries.score, entries.group, batch.num_groups, weight)
    centered = entries.subtract_mean(mean[entries.group])
    scaled = centered / _compute_divisor(options, batch, entries, weight)
    is_single = _has_single_entry(batch, entries, options.dedupe)[entries.group]
    return entries.to_advantage(
        batch, np.where(is_single, _score_single_entries(options, entries.score), scaled)
    ), empty_state()


def leave_one_out(options: LeaveOneOutOptions, inputs: AdvantageInput) -> tuple[Advantage, PluginState]:
    """Compute A = score - mean of the others = n / (n - 1) (score - mean).

    An entry that is alone in its group gets 0.
    """
    batch = inputs.batch
    entries = build_entries(batch, inputs.rewards, options.unit)
    n = count_by_index(entries.group, batch.num_groups)
    centered = entries.subtract_mean(mean_by_index(entries.score, entries.group, batch.num_groups)[entries.group])
    return entries.to_advantage(batch, centered * (n * reciprocal(n - 1))[entries.group]), empty_state()


class ScoreEntries:
    """Scores over which statistics are computed, with the rollout, group and tokens of each."""

    def __init__(self, score: Floats, rollout: Indices, group: Indices, token_entry: Indices) -> None:
        self.score, self.rollout, self.group, self.of_token = score, rollout, group, token_entry

    @property
    def rollout_weight(self) -> Floats:
        """Return 1 / the number of entries of the same rollout, for each entry."""
        n = count_by_index(self.rollout, int(self.rollout.max(initial=-1)) + 1)
        return reciprocal(n)[self.rollout]

    def subtract_mean(self, mean: Floats) -> Floats:
        """Return score - mean, with rounding errors set to 0.

        Equal scores therefore get an advantage of exactly 0.
        """
        difference = self.score - mean
        return np.where(np.abs(difference) > MIN_DIFFERENCE, difference, 0.0)

    def to_advantage(self, batch: TrainingBatch, advantage: Floats) -> Advantage:
        return Advantage(advantage[self.of_token] if len(self.of_token) else np.empty(0, np.float64))


def build_entries(batch: TrainingBatch, rewards: Rewards, unit: StatisticsUnit) -> ScoreEntries:
    """Build the scores, and the index of the rollout, group and entry that each belongs to.

    The score of a rollout is the sum of its rewards. The score of a turn is its turn reward, plus the
    rollout's reward unless turn rewards already include it. The score of a row is the same with the sum
    over its turns. Turns without a token to train are not entries.
    """
    if unit == "rollouts":
        return _build_rollout_entries(batch, rewards)
    rollout_reward = np.zeros(batch.num_rollouts) if rewards.by_turn else rewards.rollout
    if unit == "turns":
        there = np.flatnonzero(batch.turn_token_counts > 0)
        entry_index = np.full(batch.num_turns, -1)
        entry_index[there] = np.arange(len(there))
        rollout = batch.turn_rollout[there]
        score = rewards.turn[there] + rollout_reward[rollout]
        return ScoreEntries(score, rollout, batch.rollout_group[rollout], entry_index[batch.token_turn])
    in_row = batch.turn_row >= 0
    by_row = sum_by_index(rewards.turn[in_row], batch.turn_row[in_row], batch.num_rows)
    score = by_row + rollout_reward[batch.row_rollout]
    return ScoreEntries(score, batch.row_rollout, batch.rollout_group[batch.row_rollout], batch.token_row)


def _build_rollout_entries(batch: TrainingBatch, rewards: Rewards) -> ScoreEntries:
    score = sum_by_index(rewards.turn, batch.turn_rollout, batch.num_rollouts)
    score = score if rewards.by_turn else score + rewards.rollout
    return ScoreEntries(score, np.arange(batch.num_rollouts), batch.rollout_group, batch.token_rollout)


def _compute_divisor(
    options: GroupZOptions, batch: TrainingBatch, entries: ScoreEntries, weight: Floats | None
) -> Floats:
    if options.std == "none":
        return np.ones(len(entries.score))
    of = entries.group if options.std == "group" else np.zeros(len(entries.score), np.int64)
    std = std_by_index(entries.score, of, batch.num_groups if options.std == "group" else 1, options.ddof, weight)
    divisor = np.maximum(std, options.min_std) + options.epsilon
    return np.where(divisor > MIN_DIFFERENCE, divisor, 1.0)[of]


def _has_single_entry(batch: TrainingBatch, entries: ScoreEntries, dedupe: bool) -> Bits:
    """Return whether each group has a single entry, (Q,). With `dedupe`, whether it has a single rollout."""
    if not dedupe:
        return count_by_index(entries.group, batch.num_groups) < 2
    return sum_by_index(entries.rollout_weight, entries.group, batch.num_groups) < 1.5


def _score_single_entries(options: GroupZOptions, score: Floats) -> Floats:
    return score if options.single_entry == "score" else np.zeros(len(score))


GROUP_Z = Plugin(
    "group-z",
    PluginKind.ADVANTAGE,
    "GRPO; over rollouts as in AgentFlow, arXiv 2510.05592; over turns as in EAPO, arXiv 2511.07327",
    group_z,
    GroupZOptions,
)
LEAVE_ONE_OUT = Plugin(
    "leave-one-out",
    PluginKind.ADVANTAGE,
    "RLOO, as in LOOP, arXiv 2502.01600: A = n / (n - 1) (R - mean R)",
    leave_one_out,
    LeaveOneOutOptions,
    min_group_size=2,
)

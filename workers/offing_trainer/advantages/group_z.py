"""How much better than its group: (score - mean) / deviation, and the baseline that leaves one's own score out.

What a score is of is the heart of it. Over rollouts, each counts once, however many turns it took: Flow-GRPO, DCPO,
SUPO. Over turns, a rollout's turns are entries of their own: EAPO, and Flow-GRPO as released. Over rows likewise.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from offing_trainer.batch import Batch, Bits, Floats, Places
from offing_trainer.seam import Advantage, AdvantageGiven, Options, Plugin, Rewards, Seam, State, no_state
from offing_trainer.statistics import counts, deviations, means, reciprocal, sums

Over = Literal["rollouts", "turns", "rows"]

SMALLEST = 1e-12
"""Below it a difference is rounding."""


class GroupZ(Options):
    over: Over = "rollouts"
    """What is one entry of the statistics, and gets one advantage."""
    ddof: Literal[0, 1] = 1
    """1: sample deviation; 0: that of the population."""
    std: Literal["group", "batch", "none"] = "group"
    """Whose deviation is divided by; batch: that of all scores of the step. none: only the mean is taken off."""
    epsilon: Annotated[float, Field(ge=0)] = 1e-6
    """Added to the deviation."""
    floor: Annotated[float, Field(ge=0)] = 0.0
    """A deviation below it counts as it, so that small differences stay small. 0: as published."""
    dedupe: bool = False
    """Over turns or rows: each rollout counts once in mean and deviation, its entries sharing its weight."""
    alone: Literal["zero", "score"] = "zero"
    """What an entry without others gets; score: its own, as verl does."""


class LeaveOneOut(Options):
    over: Over = "rollouts"


def group_z(options: GroupZ, given: AdvantageGiven) -> tuple[Advantage, State]:
    batch = given.batch
    entries = entries_of(batch, given.rewards, options.over)
    weight = entries.shared if options.dedupe else None
    mean = means(entries.score, entries.group, batch.groups, weight)
    centred = entries.above(mean[entries.group])
    scaled = centred / _divisor(options, batch, entries, weight)
    alone = _alone(batch, entries, options.dedupe)[entries.group]
    return entries.told(batch, np.where(alone, _for_alone(options, entries.score), scaled)), no_state()


def leave_one_out(options: LeaveOneOut, given: AdvantageGiven) -> tuple[Advantage, State]:
    """A = score - mean of the others = n / (n - 1) (score - mean). Alone: 0."""
    batch = given.batch
    entries = entries_of(batch, given.rewards, options.over)
    n = counts(entries.group, batch.groups)
    centred = entries.above(means(entries.score, entries.group, batch.groups)[entries.group])
    return entries.told(batch, centred * (n * reciprocal(n - 1))[entries.group]), no_state()


class Entries:
    """What the statistics are over."""

    def __init__(self, score: Floats, rollout: Places, group: Places, of_token: Places) -> None:
        self.score, self.rollout, self.group, self.of_token = score, rollout, group, of_token

    @property
    def shared(self) -> Floats:
        """1 over the entries of the same rollout."""
        n = counts(self.rollout, int(self.rollout.max(initial=-1)) + 1)
        return reciprocal(n)[self.rollout]

    def above(self, mean: Floats) -> Floats:
        """Score less mean, and 0 where that is rounding, so that equal scores teach exactly nothing."""
        apart = self.score - mean
        return np.where(np.abs(apart) > SMALLEST, apart, 0.0)

    def told(self, batch: Batch, advantage: Floats) -> Advantage:
        return Advantage(advantage[self.of_token] if len(self.of_token) else np.empty(0, np.float64))


def entries_of(batch: Batch, rewards: Rewards, over: Over) -> Entries:
    """Scores with the index of their rollout, group, and which of them each token belongs to.

    A rollout's score is all that it was paid; of a turn what it was paid, and where turns do not hold everything,
    beside it what was paid for the rollout; of a row the same with the sum of its turns. Turns without a token to
    train are no entries.
    """
    if over == "rollouts":
        return _over_rollouts(batch, rewards)
    whole = np.zeros(batch.rollouts) if rewards.by_turn else rewards.rollout
    if over == "turns":
        there = np.flatnonzero(batch.turn_tokens > 0)
        place = np.full(batch.turns, -1)
        place[there] = np.arange(len(there))
        rollout = batch.turn_rollout[there]
        score = rewards.turn[there] + whole[rollout]
        return Entries(score, rollout, batch.rollout_group[rollout], place[batch.token_turn])
    held = batch.turn_row >= 0
    by_row = sums(rewards.turn[held], batch.turn_row[held], batch.rows)
    score = by_row + whole[batch.row_rollout]
    return Entries(score, batch.row_rollout, batch.rollout_group[batch.row_rollout], batch.token_row)


def _over_rollouts(batch: Batch, rewards: Rewards) -> Entries:
    score = sums(rewards.turn, batch.turn_rollout, batch.rollouts)
    score = score if rewards.by_turn else score + rewards.rollout
    return Entries(score, np.arange(batch.rollouts), batch.rollout_group, batch.token_rollout)


def _divisor(options: GroupZ, batch: Batch, entries: Entries, weight: Floats | None) -> Floats:
    if options.std == "none":
        return np.ones(len(entries.score))
    of = entries.group if options.std == "group" else np.zeros(len(entries.score), np.int64)
    found = deviations(entries.score, of, batch.groups if options.std == "group" else 1, options.ddof, weight)
    divisor = np.maximum(found, options.floor) + options.epsilon
    return np.where(divisor > SMALLEST, divisor, 1.0)[of]


def _alone(batch: Batch, entries: Entries, dedupe: bool) -> Bits:
    """(Q,) whether a group has one entry; deduplicated, one rollout."""
    if not dedupe:
        return counts(entries.group, batch.groups) < 2
    return sums(entries.shared, entries.group, batch.groups) < 1.5


def _for_alone(options: GroupZ, score: Floats) -> Floats:
    return score if options.alone == "score" else np.zeros(len(score))


PLUGINS = (
    Plugin(
        "group-z",
        Seam.ADVANTAGE,
        "GRPO; over rollouts as in AgentFlow, arXiv 2510.05592; over turns as in EAPO, arXiv 2511.07327",
        group_z,
        GroupZ,
    ),
    Plugin(
        "leave-one-out",
        Seam.ADVANTAGE,
        "RLOO, as in LOOP, arXiv 2502.01600: A = n / (n - 1) (R - mean R)",
        leave_one_out,
        LeaveOneOut,
        smallest_group=2,
    ),
)

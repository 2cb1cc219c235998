"""A baseline that remembers each task's success from step to step, so that no groups are needed: single-stream PO.

The only home of the tracker's table: for each task what counts for success and for failure, and the policy that was
seen last. What is remembered fades with how far the policy has moved since.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic import Field

from offing.core.errors import InvalidInput
from offing_trainer.batch import Batch, Floats
from offing_trainer.seam import Advantage, AdvantageGiven, Options, Plugin, Rewards, Seam, State
from offing_trainer.statistics import sums
from offing_trainer.turns import standardised

TRACKER = "tracker"


class Tracker(Options):
    prior: float = Field(default=0.5, gt=0, lt=1)
    """Success of a task that was never seen."""
    strength: float = Field(default=8.0, gt=0)
    """How many rollouts that counts as."""
    drift: float = Field(default=0.03, ge=0)
    """How far the policy moves with each version, in nats a token."""
    half: float = Field(default=0.06, gt=0)
    """Drift after which half is forgotten."""
    least: float = Field(default=0.875, ge=0, le=1)
    """Share that is always remembered."""
    most: float = Field(default=0.96, ge=0, le=1)
    """Share that is remembered where the policy has not moved."""
    standardise: bool = True
    """Over the rollouts of the step."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """What is known of a task."""

    alpha: float
    """Successes."""
    beta: float
    """Failures."""
    version: int | None = None
    """Of the policy that was seen last. None: not known."""

    @property
    def value(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    def faded(self, share: float) -> "Tracked":
        return Tracked(share * self.alpha, share * self.beta, self.version)

    def seen(self, successes: float, rollouts: float, version: int | None) -> "Tracked":
        return Tracked(self.alpha + successes, self.beta + rollouts - successes, version)


def tracker(options: Tracker, given: AdvantageGiven) -> tuple[Advantage, State]:
    """A = r - v, v as it was before the step; then z-scores over the step, and the step is remembered."""
    batch, table = given.batch, dict(given.state.get(TRACKER, {}))
    score = _scores(batch, given.rewards)
    before = {task: tracked_of(table, task) or unseen(options.prior, options.strength) for task in batch.task}
    value = np.array([before[task].value for task in batch.task])
    scored = ~np.isnan(score)
    raw = np.where(scored, score - value[batch.rollout_group], 0.0)
    advantage = standardised(raw, scored) if options.standardise else raw
    return Advantage(advantage[batch.token_rollout]), {TRACKER: table | _after(options, batch, score, before)}


def remembered(options: Tracker, drift: float) -> float:
    """rho = 2^(-drift / half), within its bounds."""
    return min(max(2.0 ** (-drift / options.half), options.least), options.most)


def tracked_of(table: Mapping[str, Any], task: str) -> Tracked | None:
    return Tracked(**table[task]) if task in table else None


def unseen(prior: float, strength: float) -> Tracked:
    """What is taken for known of a task that was never seen."""
    return Tracked(prior * strength, (1 - prior) * strength)


def updated(options: Tracker, known: Tracked, successes: float, rollouts: float, version: int | None) -> Tracked:
    """After so many rollouts of a policy's version. None: it is not known which."""
    kept = known.faded(remembered(options, _moved(options, known, version)))
    return kept.seen(successes, rollouts, version)


def stored(tracked: Tracked) -> dict[str, Any]:
    """As a table keeps it; see `tracked_of`."""
    return asdict(tracked)


def _scores(batch: Batch, rewards: Rewards) -> Floats:
    """(R,) all that a rollout was paid, NaN: nobody scored it. Raises InvalidInput for what is no share of success."""
    score = sums(rewards.turn, batch.turn_rollout, batch.rollouts)
    score = score if rewards.by_turn else score + rewards.rollout
    known = score[~np.isnan(score)]
    if len(known) and not 0 <= known.min() <= known.max() <= 1:
        problem = f"tracker needs rewards from 0 to 1, and there are {known.min():g} to {known.max():g}"
        raise InvalidInput("chain.reward", problem, "Give outcome a threshold, or choose another advantage.")
    return score


def _after(options: Tracker, batch: Batch, score: Floats, before: Mapping[str, Tracked]) -> dict[str, Any]:
    """The tasks of the step, each once, however many of its groups and rollouts there are."""
    after: dict[str, Any] = {}
    tasks = np.array(batch.task, np.object_)[batch.rollout_group] if batch.groups else np.empty(0, np.object_)
    for task, known in before.items():
        mine = (tasks == task) & ~np.isnan(score) & ~batch.replayed
        if mine.any():
            now = updated(options, known, float(score[mine].sum()), float(mine.sum()), _newest(batch, mine))
            after[task] = stored(now)
    return after


def _moved(options: Tracker, known: Tracked, version: int | None) -> float:
    """Nats since the task was last seen; a task never seen, or whose policy is not known, has moved by one version."""
    if known.version is None or version is None:
        return options.drift
    return options.drift * abs(version - known.version)


def _newest(batch: Batch, mine: np.ndarray[Any, Any]) -> int | None:
    return newest(batch.policy[n] for n in np.flatnonzero(mine).tolist())


def newest(policies: Iterable[str]) -> int | None:
    """The highest version among NAME@VERSION. None: none has one."""
    numbers = [policy.rpartition("@")[2] for policy in policies]
    return max((int(number) for number in numbers if number.isdecimal()), default=None)


PLUGIN = Plugin(
    "tracker",
    Seam.ADVANTAGE,
    "SPO (single-stream), arXiv 2509.13232: A = r - alpha / (alpha + beta), z-scored over the batch",
    tracker,
    Tracker,
    state=frozenset({TRACKER}),
)

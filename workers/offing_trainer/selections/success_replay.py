"""A group that failed as a whole gets an earlier success of its task in place of a failure: ARPO's replay.

The table holds ids of runs; their rows stay in the store, and come as `GroupsGiven.earlier`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field

from offing_trainer.batch import Group, Sample
from offing_trainer.seam import REPLAY, GroupsGiven, Options, Plugin, Seam, State


class SuccessReplay(Options):
    size: int = Field(default=8, ge=1)
    """Successes that are remembered a task; the oldest is forgotten first."""
    success: float = 0.1
    """Settled rewards above it are remembered."""
    spread_below: float = Field(default=0.05, gt=0)
    """Only groups whose rewards deviate by less,"""
    mean_below: float = 0.2
    """and whose mean is lower."""


def success_replay(options: SuccessReplay, given: GroupsGiven) -> tuple[Sequence[Group], State]:
    """What was put in keeps its log-probabilities, policy version and reward, and counts in the group's statistics."""
    table: Mapping[str, Sequence[str]] = given.state.get(REPLAY, {})
    groups = [_helped(options, group, table.get(group.task, ()), given) for group in given.groups]
    return groups, {REPLAY: _remembered(options, given.groups, table)}


def _helped(options: SuccessReplay, group: Group, named: Sequence[str], given: GroupsGiven) -> Group:
    present = {str(sample.episode.run) for sample in group.samples}
    stored = [given.earlier[run] for run in named if run in given.earlier and run not in present]
    if not stored or not _failed(options, group):
        return group
    failing = [n for n, s in enumerate(group.samples) if s.episode.reward is not None]
    place = failing[int(given.rng.integers(len(failing)))]
    put_in = replace(stored[int(given.rng.integers(len(stored)))], replayed=True)
    return replace(group, samples=(*group.samples[:place], put_in, *group.samples[place + 1 :]))


def _failed(options: SuccessReplay, group: Group) -> bool:
    rewards = [s.episode.reward for s in group.samples if s.episode.reward is not None]
    if not rewards or max(rewards) > options.success:
        return False
    return float(np.std(rewards)) < options.spread_below and float(np.mean(rewards)) < options.mean_below


def _remembered(
    options: SuccessReplay, groups: Sequence[Group], table: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    kept = {task: list(runs) for task, runs in table.items()}
    for group in groups:
        known = kept.get(group.task, [])
        new = [str(s.episode.run) for s in group.samples if _succeeded(options, s)]
        if new:
            kept[group.task] = [*known, *(run for run in new if run not in known)][-options.size :]
    return kept


def _succeeded(options: SuccessReplay, sample: Sample) -> bool:
    reward = sample.episode.reward
    return not sample.replayed and bool(sample.rows) and reward is not None and reward > options.success


PLUGIN = Plugin(
    "success-replay",
    Seam.SELECT,
    "ARPO, arXiv 2505.16282, and released code: one stored success into a group that failed as a whole",
    success_replay,
    SuccessReplay,
    stage="groups",
    state=frozenset({REPLAY}),
    draws=True,
)

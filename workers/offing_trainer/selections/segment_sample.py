"""The same number of rows of every group, spread over its rollouts: MemAct's sampling of segments."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.batch import Places
from offing_trainer.seam import Options, Plugin, RowsGiven, Seam, State, no_state


class SegmentSample(Options):
    count: Annotated[int, Field(ge=1)] = 12
    """Rows of a group."""


def segment_sample(options: SegmentSample, given: RowsGiven) -> tuple[Places, State]:
    """Exactly `count` rows of each group that has any; a row may be there more than once.

    One of each rollout, at random; the rest in turn over the rollouts, rows that were not taken yet first. With more
    rollouts than `count`, so many of them.
    """
    batch = given.batch
    by_rollout = np.split(np.arange(batch.rows), np.searchsorted(batch.row_rollout, np.arange(1, batch.rollouts)))
    found: list[Places] = [np.empty(0, np.int64)]
    for nth in range(batch.groups):
        mine = [by_rollout[r] for r in np.flatnonzero(batch.rollout_group == nth) if len(by_rollout[r])]
        found.append(_sampled(mine, options.count, given.rng))
    return np.concatenate(found), no_state()


def _sampled(by_rollout: Sequence[Places], count: int, rng: np.random.Generator) -> Places:
    taken: list[int] = []
    while by_rollout and len(taken) < count:
        taken += _in_turn(by_rollout, rng)
    return np.array(taken[:count], np.int64)


def _in_turn(by_rollout: Sequence[Places], rng: np.random.Generator) -> list[int]:
    """Every row once: a first of each rollout, then a second of each that has one, and so on."""
    order: list[int] = rng.permutation(len(by_rollout)).tolist()
    shuffled: list[list[int]] = [rng.permutation(by_rollout[nth]).tolist() for nth in order]
    return [row for layer in zip_longest(*shuffled) for row in layer if row is not None]


PLUGIN = Plugin(
    "segment-sample",
    Seam.SELECT,
    "MemAct (DCPO), arXiv 2510.12635 and its released code: N_seg rows a prompt",
    segment_sample,
    SegmentSample,
    stage="rows",
    draws=True,
)

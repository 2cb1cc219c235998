"""MemAct: the same number of rows from every group, spread over its rollouts."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated

import numpy as np
from pydantic import Field

from offing_trainer.batch import Indices
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, PluginState, RowSelectorInput, empty_state


class SegmentSampleOptions(PluginOptions):
    rows_per_group: Annotated[int, Field(ge=1)] = 12
    """Number of rows per group."""


def segment_sample(options: SegmentSampleOptions, inputs: RowSelectorInput) -> tuple[Indices, PluginState]:
    """Draw exactly `rows_per_group` rows of each group that has any. A row may appear several times.

    The first are one row per rollout, at random. The rest are drawn from the rollouts in turn, unused
    rows first. If a group has more rollouts than that, only as many rollouts are used.
    """
    batch = inputs.batch
    by_rollout = np.split(
        np.arange(batch.num_rows), np.searchsorted(batch.row_rollout, np.arange(1, batch.num_rollouts))
    )
    selected: list[Indices] = [np.empty(0, np.int64)]
    for nth in range(batch.num_groups):
        mine = [by_rollout[r] for r in np.flatnonzero(batch.rollout_group == nth) if len(by_rollout[r])]
        selected.append(_sample_rows(mine, options.rows_per_group, inputs.rng))
    return np.concatenate(selected), empty_state()


def _sample_rows(by_rollout: Sequence[Indices], count: int, rng: np.random.Generator) -> Indices:
    sampled: list[int] = []
    while by_rollout and len(sampled) < count:
        sampled += _round_robin_order(by_rollout, rng)
    return np.array(sampled[:count], np.int64)


def _round_robin_order(by_rollout: Sequence[Indices], rng: np.random.Generator) -> list[int]:
    """Return every row once: the first of each rollout, then the second of each, and so on."""
    order: list[int] = rng.permutation(len(by_rollout)).tolist()
    shuffled: list[list[int]] = [rng.permutation(by_rollout[nth]).tolist() for nth in order]
    return [row for layer in zip_longest(*shuffled) for row in layer if row is not None]


PLUGIN = Plugin(
    "segment-sample",
    PluginKind.SELECTOR,
    "MemAct (DCPO), arXiv 2510.12635 and its released code: N_seg rows per prompt",
    segment_sample,
    SegmentSampleOptions,
    stage="rows",
    uses_rng=True,
)

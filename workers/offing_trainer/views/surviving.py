"""Segments as MemAct's released code masks them: the last one trains everything of the policy that is still in it.

What the policy said in earlier segments and no edit removed is trained a second time, under a context in which it was
not said. The paper trains each token once; see `policy_turns`. How likely such tokens were under the new context nobody
recorded, so that the anchor must be computed anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from offing.core.rows import TrainRow
from offing_trainer.batch import Group, Places, Sample
from offing_trainer.seam import Plugin, Seam
from offing_trainer.views.policy_turns import Shown, policy_turns


def surviving(options: Shown, groups: Sequence[Group]) -> Sequence[Group]:
    shown = policy_turns(options, groups)
    return [replace(group, samples=tuple(_restored(sample) for sample in group.samples)) for group in shown]


def _restored(sample: Sample) -> Sample:
    if len(sample.rows) < 2:
        return sample
    *before, last = sorted(sample.rows, key=lambda row: (row.head.idx, row.part))
    said = [ids for row in before for ids in _said(row)]
    return replace(sample, rows=(*before, _with(last, said)))


def _said(row: TrainRow) -> Iterator[Places]:
    """The trained tokens of each turn."""
    for nth in np.unique(row.turn_index[row.loss_mask]):
        yield row.token_ids[row.loss_mask & (row.turn_index == nth)].astype(np.int64)


def _with(row: TrainRow, said: Sequence[Places]) -> TrainRow:
    mask, behaviour = row.loss_mask.copy(), row.behaviour_logprobs.copy()
    for ids in said:
        for start in _starts(row.token_ids.astype(np.int64), ids):
            there = slice(max(int(start), 1), int(start) + len(ids))
            behaviour[there] = np.where(mask[there], behaviour[there], np.nan)
            mask[there] = True
    return replace(row, loss_mask=mask, behaviour_logprobs=behaviour)


def _starts(ids: Places, wanted: Places) -> Places:
    """Where these tokens stand one after the other."""
    if len(wanted) > len(ids):
        return np.empty(0, np.int64)
    return np.flatnonzero((sliding_window_view(ids, len(wanted)) == wanted).all(axis=1))


PLUGIN = Plugin("surviving", Seam.VIEW, "MemAct (DCPO), released code: mask of the last segment", surviving, Shown)

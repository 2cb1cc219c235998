"""Loss masks of MemAct's released code: the last segment trains all completions still in its context.

Completions of earlier segments that no edit removed are trained a second time, in a context in
which they were not sampled. The paper trains each token once; see `policy_turns`. Their logprobs in
the new context were not recorded, so the old logprobs must be recomputed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from offing.core.training_rows import TrainingRow
from offing_trainer.batch import Indices, RolloutGroup, TrainingRollout
from offing_trainer.plugin import Plugin, PluginKind
from offing_trainer.views.policy_turns import ViewOptions, is_rejected, policy_turns


def surviving(options: ViewOptions, groups: Sequence[RolloutGroup]) -> Sequence[RolloutGroup]:
    policy_rows = policy_turns(options, groups)
    return [
        replace(group, rollouts=tuple(_restore_loss_masks(sample) for sample in group.rollouts))
        for group in policy_rows
    ]


def _restore_loss_masks(rollout: TrainingRollout) -> TrainingRollout:
    """Train the completions of earlier segments in the last one, too. Rejected completions are unchanged."""
    rejected = tuple(row for row in rollout.rows if is_rejected(row))
    accepted = sorted(
        (row for row in rollout.rows if not is_rejected(row)), key=lambda row: (row.segment_info.idx, row.part)
    )
    if len(accepted) < 2:
        return rollout
    *before, last = accepted
    token_runs = [ids for row in before for ids in _iter_trained_tokens(row)]
    return replace(rollout, rows=(*before, _train_tokens(last, token_runs), *rejected))


def _iter_trained_tokens(row: TrainingRow) -> Iterator[Indices]:
    """Yield the trained tokens of each turn."""
    for nth in np.unique(row.turn_index[row.loss_mask]):
        yield row.token_ids[row.loss_mask & (row.turn_index == nth)].astype(np.int64)


def _train_tokens(row: TrainingRow, token_runs: Sequence[Indices]) -> TrainingRow:
    mask, behavior_logprobs = row.loss_mask.copy(), row.behavior_logprobs.copy()
    for ids in token_runs:
        for start in _find_occurrences(row.token_ids.astype(np.int64), ids):
            there = slice(max(int(start), 1), int(start) + len(ids))
            behavior_logprobs[there] = np.where(mask[there], behavior_logprobs[there], np.nan)
            mask[there] = True
    return replace(row, loss_mask=mask, behavior_logprobs=behavior_logprobs)


def _find_occurrences(ids: Indices, tokens: Indices) -> Indices:
    """Return the positions at which these tokens occur in sequence."""
    if len(tokens) > len(ids):
        return np.empty(0, np.int64)
    return np.flatnonzero((sliding_window_view(ids, len(tokens)) == tokens).all(axis=1))


PLUGIN = Plugin(
    "surviving", PluginKind.VIEW, "MemAct (DCPO), released code: mask of the last segment", surviving, ViewOptions
)

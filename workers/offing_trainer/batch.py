"""Stored rollouts as flat arrays: groups, rollouts, turns, rows and trained tokens.

A token is one that the policy sampled and that may be trained. Prompts, observations and padding
are not in a batch, so no estimator can give them weight.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from offing.core.errors import OffingError
from offing.core.training_rows import TrainingRow
from offing.core.trajectory import Outcome
from offing.core.trajectory_records import TrajectoryMetadata

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Bits = npt.NDArray[np.bool_]

OUTCOME_CODES = {outcome.value: code for code, outcome in enumerate(Outcome)}
"""The codes of `TrainingBatch.outcome`, by outcome."""

UNKNOWN_OUTCOME_CODE = -1
UNKNOWN_STATE = -1


class MixedPoliciesError(OffingError):
    """A group has turns of more than one policy version, so its statistics would not be comparable."""

    code = "mixed_policies"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRollout:
    """One rollout with its training rows. A rollout without rows still counts in its group's statistics."""

    metadata: TrajectoryMetadata
    rows: tuple[TrainingRow, ...]
    replayed: bool = False
    """Taken from an earlier group of the same task, and therefore sampled by another policy version."""


@dataclass(frozen=True, slots=True, eq=False)
class RolloutGroup:
    """The rollouts of one task under one policy version."""

    key: str
    task: str
    rollouts: tuple[TrainingRollout, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBatch:
    """Whole groups as arrays of Q groups, R rollouts, T turns, N rows and P tokens.

    An index array points one level up.
    """

    group_keys: tuple[str, ...]
    """Keys of the groups, (Q,)."""
    task_keys: tuple[str, ...]
    """Keys of the tasks, (Q,)."""
    run_ids: tuple[str, ...]
    """Ids of the runs, (R,)."""
    rollout_group: Indices
    """Index of the group, (R,)."""
    reward: Floats
    """The finalized reward, (R,). NaN means that the rollout has no score."""
    outcome: Codes
    """Code of `OUTCOME_CODES`, (R,). `-1` means that the outcome is unknown."""
    replayed: Bits
    """See `TrainingRollout.replayed`, (R,)."""
    policy_versions: tuple[str, ...]
    """NAME@VERSION of the sampling policy, (R,). Empty if the rollout has no trained token."""
    turn_rollout: Indices
    """Index of the rollout, (T,). The turns of a rollout are adjacent and in order."""
    turn_row: Indices
    """Index of the row with this turn, (T,). `-1` means that a selector left the row out."""
    turn_number: Indices
    """Number of the turn in the graph's loop, (T,), from 1. `0` means outside the loop."""
    turn_seq: Indices
    """`seq` of the turn's step, (T,)."""
    turn_ends_run: Bits
    """Whether the role ended the run in this turn, (T,)."""
    turn_token_counts: Indices
    """Number of trainable tokens, (T,), including those that a selector left out.
    `0` means that the turn is only context.
    """
    turn_state: Indices
    """Index of what the policy read before the turn, (T,). Equal numbers mean equal prompts. `-1` means unknown."""
    row_keys: tuple[str, ...]
    """Keys of the rows, (N,): run, segment, part."""
    row_rollout: Indices
    """Index of the rollout, (N,)."""
    row_segment: Indices
    """Index of the segment within its run, (N,)."""
    row_boundary_reasons: tuple[str, ...]
    """Why the segment began, (N,). See `core.trajectory.BoundaryReason`."""
    token_row: Indices
    """Index of the row, (P,), ascending."""
    token_turn: Indices
    """Index of the turn, (P,)."""
    token_ids: Indices
    """Token ids, (P,)."""
    span_kind: Codes
    """Code of `core.rows.SPAN_CODES`, (P,). `-1` means that the token is in no span."""
    behavior_logprobs: Floats
    """Logprob under the distribution that the token was sampled from, (P,). NaN means unknown."""
    entropy: Floats
    """Entropy in nats at sampling, (P,). NaN means unknown."""
    rollout_stats: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    """Usage and other statistics of each rollout by name, such as `tool_calls`, (R,). NaN means unknown."""

    @property
    def num_groups(self) -> int:
        return len(self.group_keys)

    @property
    def num_rollouts(self) -> int:
        return len(self.run_ids)

    @property
    def num_turns(self) -> int:
        return len(self.turn_rollout)

    @property
    def num_rows(self) -> int:
        return len(self.row_keys)

    @property
    def num_tokens(self) -> int:
        return len(self.token_row)

    @property
    def token_rollout(self) -> Indices:
        """Return the index of each token's rollout, (P,)."""
        return self.row_rollout[self.token_row]

    def select_rows(self, rows: Indices) -> "TrainingBatch":
        """Return the same groups, rollouts and turns with only these rows, in this order.

        A row that is listed twice appears twice.
        """
        starts = np.searchsorted(self.token_row, np.arange(self.num_rows + 1))
        tokens = expand_ranges(starts[rows], starts[rows + 1])
        counts = starts[rows + 1] - starts[rows]
        new_index = np.full(self.num_rows + 1, -1, np.int64)  # the last entry is for turns without a row
        new_index[rows] = np.arange(len(rows))
        row_list: list[int] = rows.tolist()
        return replace(
            self,
            turn_row=new_index[self.turn_row],
            row_keys=tuple(self.row_keys[n] for n in row_list),
            row_rollout=self.row_rollout[rows],
            row_segment=self.row_segment[rows],
            row_boundary_reasons=tuple(self.row_boundary_reasons[n] for n in row_list),
            token_row=np.repeat(np.arange(len(rows)), counts),
            token_turn=self.token_turn[tokens],
            token_ids=self.token_ids[tokens],
            span_kind=self.span_kind[tokens],
            behavior_logprobs=self.behavior_logprobs[tokens],
            entropy=self.entropy[tokens],
        )

    def token_indices(self, rows: Indices) -> Indices:
        """Return the indices of these rows' tokens in this batch, in the order of `select_rows(rows)`."""
        starts = np.searchsorted(self.token_row, np.arange(self.num_rows + 1))
        return expand_ranges(starts[rows], starts[rows + 1])


def expand_ranges(starts: Indices, ends: Indices) -> Indices:
    """Return start, start + 1, ..., end - 1 of each pair, concatenated."""
    counts = ends - starts
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)


def build_training_batch(
    groups: Sequence[RolloutGroup], rollout_stats: Mapping[str, Sequence[float]] | None = None
) -> TrainingBatch:
    """Build the arrays of groups, in the given order.

    `rollout_stats` has one entry per rollout. Raises MixedPoliciesError.
    """
    for group in groups:
        _check_single_policy(group)
    samples = [sample for group in groups for sample in group.rollouts]
    rows = [row for sample in samples for row in sample.rows]
    row_rollout = np.repeat(np.arange(len(samples)), [len(s.rows) for s in samples]).astype(np.int64)
    turn_row, turn_rollout, order = _turn_order(rows, row_rollout)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    firsts = np.cumsum([0, *(len(row.turns) for row in rows)])
    masks = [row.loss_mask for row in rows]
    counts = [int(mask.sum()) for mask in masks]
    turn_in_row = _concatenate([r.turn_index[m].astype(np.int64) for r, m in zip(rows, masks, strict=True)], np.int64)
    token_turn = position[np.repeat(firsts[:-1], counts).astype(np.int64) + turn_in_row]
    return TrainingBatch(
        group_keys=tuple(g.key for g in groups),
        task_keys=tuple(g.task for g in groups),
        run_ids=tuple(str(s.metadata.run_id) for s in samples),
        rollout_group=np.repeat(np.arange(len(groups)), [len(g.rollouts) for g in groups]).astype(np.int64),
        reward=np.array([np.nan if s.metadata.reward is None else s.metadata.reward for s in samples], np.float64),
        outcome=np.array([OUTCOME_CODES.get(s.metadata.outcome or "", UNKNOWN_OUTCOME_CODE) for s in samples], np.int8),
        replayed=np.array([s.replayed for s in samples], np.bool_),
        policy_versions=tuple(next(iter(_iter_policies(s)), "") for s in samples),
        turn_rollout=turn_rollout[order],
        turn_row=turn_row[order],
        turn_number=_turn_column(rows, "turn", np.int64)[order],
        turn_seq=_turn_column(rows, "seq", np.int64)[order],
        turn_ends_run=_turn_column(rows, "is_final", np.bool_)[order],
        turn_token_counts=np.bincount(token_turn, minlength=len(order)).astype(np.int64),
        turn_state=_number_states(rows)[order],
        row_keys=tuple(row.key for row in rows),
        row_rollout=row_rollout,
        row_segment=np.array([row.segment_info.idx for row in rows], np.int64),
        row_boundary_reasons=tuple(row.segment_info.boundary_reason for row in rows),
        token_row=np.repeat(np.arange(len(rows)), counts).astype(np.int64),
        token_turn=token_turn,
        token_ids=_concatenate([r.token_ids[m] for r, m in zip(rows, masks, strict=True)], np.int64),
        span_kind=_concatenate([r.span_kind[m] for r, m in zip(rows, masks, strict=True)], np.int8),
        behavior_logprobs=_concatenate([r.behavior_logprobs[m] for r, m in zip(rows, masks, strict=True)], np.float64),
        entropy=_concatenate([r.entropy[m] for r, m in zip(rows, masks, strict=True)], np.float64),
        rollout_stats={name: np.array(values, np.float64) for name, values in (rollout_stats or {}).items()},
    )


def _turn_order(rows: Sequence[TrainingRow], row_rollout: Indices) -> tuple[Indices, Indices, Indices]:
    """Return the row and rollout of each turn, and the order that sorts each rollout's turns by `seq`."""
    turn_row = np.repeat(np.arange(len(rows)), [len(row.turns) for row in rows]).astype(np.int64)
    turn_rollout = row_rollout[turn_row]
    return turn_row, turn_rollout, np.lexsort((_turn_column(rows, "seq", np.int64), turn_rollout))


def _number_states(rows: Sequence[TrainingRow]) -> Indices:
    """Return a number for the state key of each turn, in order of first appearance. An empty key is -1."""
    numbers: dict[str, int] = {"": UNKNOWN_STATE}
    keys = chain.from_iterable(row.turns.state_key for row in rows)
    return np.array([numbers.setdefault(key, len(numbers) - 1) for key in keys], np.int64)


def _turn_column(rows: Sequence[TrainingRow], name: str, dtype: Any) -> npt.NDArray[Any]:
    return np.array(list(chain.from_iterable(getattr(row.turns, name) for row in rows)), dtype)


def _concatenate(arrays: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(arrays).astype(dtype) if arrays else np.empty(0, dtype)


def _check_single_policy(group: RolloutGroup) -> None:
    policies = sorted({policy for sample in group.rollouts if not sample.replayed for policy in _iter_policies(sample)})
    if len(policies) > 1:
        raise MixedPoliciesError(f"group {group.key} has turns of several policies: {' and '.join(policies)}")


def _iter_policies(rollout: TrainingRollout) -> Iterator[str]:
    """Yield the policy of each turn that has trained tokens."""
    for row in rollout.rows:
        for nth in np.unique(row.turn_index[row.loss_mask]):
            yield row.turns.policy[nth]

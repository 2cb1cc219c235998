"""Stored rollouts as flat arrays: groups, rollouts, turns, rows, and the tokens that a policy is trained on.

The only home of that layout. A token here is one that the policy sampled and that may be trained; prompts,
observations and padding are not in a batch at all, so that no estimator can give them weight. Needs numpy; knows no
table and no torch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from offing.core.episode import Episode
from offing.core.errors import OffingError
from offing.core.rows import TrainRow
from offing.core.trajectory import Outcome

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Bits = npt.NDArray[np.bool_]

OUTCOMES = {outcome.value: code for code, outcome in enumerate(Outcome)}
"""What the numbers of `Batch.outcome` stand for."""

UNKNOWN_OUTCOME = -1


class MixedPolicies(OffingError):
    """A group holds turns of more than one policy version; its statistics would compare what cannot be compared."""

    code = "mixed_policies"


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One rollout and its rows of tokens; a rollout without rows still counts in the statistics of its group."""

    episode: Episode
    rows: tuple[TrainRow, ...]
    replayed: bool = False
    """Taken from an earlier group of the same task, and so of another policy version than its group."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The rollouts of one task under one policy version."""

    key: str
    task: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Whole groups as arrays. Q groups, R rollouts, T turns, N rows, P tokens; an index array points one level up."""

    group: tuple[str, ...]
    """(Q,) keys."""
    task: tuple[str, ...]
    """(Q,) keys of the tasks."""
    rollout: tuple[str, ...]
    """(R,) run ids."""
    rollout_group: Places
    """(R,) index of the group."""
    reward: Floats
    """(R,) as settled. NaN: not scored."""
    outcome: Codes
    """(R,) `OUTCOMES`; -1: not known."""
    replayed: Bits
    """(R,) see `Sample.replayed`."""
    policy: tuple[str, ...]
    """(R,) NAME@VERSION that sampled it. Empty: it has no trained token."""
    turn_rollout: Places
    """(T,) index of the rollout. Turns of a rollout follow one another in their own order."""
    turn_row: Places
    """(T,) index of the row that holds it; -1 when a selection left the row out."""
    turn_number: Places
    """(T,) of the graph's loop, from 1. 0: outside the loop."""
    turn_seq: Places
    """(T,) of its step."""
    turn_done: Bits
    """(T,) the role ended the run with it."""
    turn_tokens: Places
    """(T,) tokens that were there to be trained, whatever a selection then left out. 0: it is context alone."""
    row: tuple[str, ...]
    """(N,) keys: run, segment, part."""
    row_rollout: Places
    """(N,) index of the rollout."""
    row_segment: Places
    """(N,) segment of its run."""
    row_fracture: tuple[str, ...]
    """(N,) `core.trajectory.Fracture`: why the segment began."""
    token_row: Places
    """(P,) index of the row; ascending."""
    token_turn: Places
    """(P,) index of the turn."""
    token_id: Places
    """(P,)"""
    kind: Codes
    """(P,) `core.rows.SPAN_CODES`; -1: in no span."""
    behaviour: Floats
    """(P,) log-probability under the distribution that it was sampled from. NaN: not known."""
    entropy: Floats
    """(P,) nats, at sampling. NaN: not known."""
    facts: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    """(R,) each: a rollout's cost ledger and what else is known of it, such as `tool_calls`. NaN: not known."""

    @property
    def groups(self) -> int:
        return len(self.group)

    @property
    def rollouts(self) -> int:
        return len(self.rollout)

    @property
    def turns(self) -> int:
        return len(self.turn_rollout)

    @property
    def rows(self) -> int:
        return len(self.row)

    @property
    def tokens(self) -> int:
        return len(self.token_row)

    @property
    def token_rollout(self) -> Places:
        """(P,)"""
        return self.row_rollout[self.token_row]

    def only(self, rows: Places) -> "Batch":
        """The same groups, rollouts and turns with these rows, in this order; a row named twice is there twice."""
        starts = np.searchsorted(self.token_row, np.arange(self.rows + 1))
        tokens = spread(starts[rows], starts[rows + 1])
        counts = starts[rows + 1] - starts[rows]
        place = np.full(self.rows + 1, -1, np.int64)  # the last for turns that are in no row
        place[rows] = np.arange(len(rows))
        named: list[int] = rows.tolist()
        return replace(
            self,
            turn_row=place[self.turn_row],
            row=tuple(self.row[n] for n in named),
            row_rollout=self.row_rollout[rows],
            row_segment=self.row_segment[rows],
            row_fracture=tuple(self.row_fracture[n] for n in named),
            token_row=np.repeat(np.arange(len(rows)), counts),
            token_turn=self.token_turn[tokens],
            token_id=self.token_id[tokens],
            kind=self.kind[tokens],
            behaviour=self.behaviour[tokens],
            entropy=self.entropy[tokens],
        )

    def tokens_of(self, rows: Places) -> Places:
        """Where the tokens of these rows are in this batch's arrays, in the order of `only(rows)`."""
        starts = np.searchsorted(self.token_row, np.arange(self.rows + 1))
        return spread(starts[rows], starts[rows + 1])


def spread(starts: Places, ends: Places) -> Places:
    """start, start + 1, ... end - 1 of each pair, end to end."""
    counts = ends - starts
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)


def batch_of(groups: Sequence[Group], facts: Mapping[str, Sequence[float]] | None = None) -> Batch:
    """Groups as arrays, in the order given; `facts` have an entry a rollout. Raises MixedPolicies."""
    for group in groups:
        _refuse_mixed(group)
    samples = [sample for group in groups for sample in group.samples]
    rows = [row for sample in samples for row in sample.rows]
    row_rollout = np.repeat(np.arange(len(samples)), [len(s.rows) for s in samples]).astype(np.int64)
    turn_row, turn_rollout, order = _turn_order(rows, row_rollout)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    firsts = np.cumsum([0, *(len(row.turns) for row in rows)])
    masks = [row.loss_mask for row in rows]
    counts = [int(mask.sum()) for mask in masks]
    turn_in_row = _joined([r.turn_index[m].astype(np.int64) for r, m in zip(rows, masks, strict=True)], np.int64)
    token_turn = place[np.repeat(firsts[:-1], counts).astype(np.int64) + turn_in_row]
    return Batch(
        group=tuple(g.key for g in groups),
        task=tuple(g.task for g in groups),
        rollout=tuple(str(s.episode.run) for s in samples),
        rollout_group=np.repeat(np.arange(len(groups)), [len(g.samples) for g in groups]).astype(np.int64),
        reward=np.array([np.nan if s.episode.reward is None else s.episode.reward for s in samples], np.float64),
        outcome=np.array([OUTCOMES.get(s.episode.outcome or "", UNKNOWN_OUTCOME) for s in samples], np.int8),
        replayed=np.array([s.replayed for s in samples], np.bool_),
        policy=tuple(next(iter(_policies(s)), "") for s in samples),
        turn_rollout=turn_rollout[order],
        turn_row=turn_row[order],
        turn_number=_of_turns(rows, "number", np.int64)[order],
        turn_seq=_of_turns(rows, "seq", np.int64)[order],
        turn_done=_of_turns(rows, "done", np.bool_)[order],
        turn_tokens=np.bincount(token_turn, minlength=len(order)).astype(np.int64),
        row=tuple(row.key for row in rows),
        row_rollout=row_rollout,
        row_segment=np.array([row.head.idx for row in rows], np.int64),
        row_fracture=tuple(row.head.fracture for row in rows),
        token_row=np.repeat(np.arange(len(rows)), counts).astype(np.int64),
        token_turn=token_turn,
        token_id=_joined([r.token_ids[m] for r, m in zip(rows, masks, strict=True)], np.int64),
        kind=_joined([r.span_kind[m] for r, m in zip(rows, masks, strict=True)], np.int8),
        behaviour=_joined([r.behaviour_logprobs[m] for r, m in zip(rows, masks, strict=True)], np.float64),
        entropy=_joined([r.entropy[m] for r, m in zip(rows, masks, strict=True)], np.float64),
        facts={name: np.array(values, np.float64) for name, values in (facts or {}).items()},
    )


def _turn_order(rows: Sequence[TrainRow], row_rollout: Places) -> tuple[Places, Places, Places]:
    """Row and rollout of each turn, and the order that puts the turns of a rollout by their seq."""
    turn_row = np.repeat(np.arange(len(rows)), [len(row.turns) for row in rows]).astype(np.int64)
    turn_rollout = row_rollout[turn_row]
    return turn_row, turn_rollout, np.lexsort((_of_turns(rows, "seq", np.int64), turn_rollout))


def _of_turns(rows: Sequence[TrainRow], name: str, dtype: Any) -> npt.NDArray[Any]:
    return np.array(list(chain.from_iterable(getattr(row.turns, name) for row in rows)), dtype)


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)


def _refuse_mixed(group: Group) -> None:
    found = sorted({policy for sample in group.samples if not sample.replayed for policy in _policies(sample)})
    if len(found) > 1:
        raise MixedPolicies(f"group {group.key} holds turns of {' and '.join(found)}")


def _policies(sample: Sample) -> Iterator[str]:
    """Of the turns that have trained tokens."""
    for row in sample.rows:
        for nth in np.unique(row.turn_index[row.loss_mask]):
            yield row.turns.policy[nth]

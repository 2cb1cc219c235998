"""Layout of rows for a forward pass: inputs, positions that are read, and micro-batches.

What is read at a token was computed from the tokens before it. The input therefore ends with the
last token that something is read after. Lengths are explicit everywhere; no token id means padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.tokens import SpanKind
from offing.core.training_rows import SPAN_CODES, TrainingRow
from offing_trainer.batch import Floats, Indices

NO_POSITION = -1


@dataclass(frozen=True, slots=True, eq=False)
class RowLayout:
    """Layout of one row. Positions are indices of `token_ids`.

    What is read at position p belongs to the token at p + 1.
    """

    token_ids: Indices
    """Input token ids, (L,)."""
    read_positions: Indices
    """Positions at which trained tokens are read, (P,)."""
    targets: Indices
    """The trained tokens, (P,)."""
    temperature: Floats
    """Sampling temperature of each token, (P,). 1 if it is unknown or 0 (greedy)."""
    turn_start: Indices
    """Position of the last token before the policy's tokens of a turn, (T,).
    `-1` means that none of them is trained.
    """
    decision_end: Indices
    """Position of the last token of a turn's subgoal, (T,); without one, of its switch; else `turn_start`."""


@dataclass(frozen=True, slots=True, eq=False)
class MicroBatch:
    """Rows that are forwarded together: B sequences of L tokens.

    `read_positions` and the other positions are flat indices.
    """

    row_indices: Indices
    """Indices of the rows, in the order of all arrays here."""
    token_ids: Indices
    """Input token ids, (B, L). 0 after the end of a row, where causal attention does not look."""
    position_ids: Indices | None
    """Position ids, (B, L). `None` means 0, 1, ... in every sequence."""
    read_positions: Indices
    targets: Indices
    temperature: Floats | None
    """`None` means 1 everywhere."""
    turn_start: Indices
    decision_end: Indices


def build_layout(row: TrainingRow) -> RowLayout:
    """Build the layout of a row. Raises InvalidInput if it trains its first token, which has no context."""
    trained = np.flatnonzero(row.loss_mask)
    if len(trained) and trained[0] == 0:
        raise InvalidInput("rows", f"{row.key} trains its first token", "Add the prompt to the row.")
    turns = row.turn_index[trained].astype(np.int64)
    before = _turn_starts(row, trained, turns)
    decided = _decision_ends(row, before)
    end = max(int(trained[-1]) if len(trained) else 1, int(decided.max(initial=0)) + 1)
    temperatures = np.array([t or 1.0 for t in row.turns.temperature], np.float64)
    return RowLayout(
        token_ids=row.token_ids[:end].astype(np.int64),
        read_positions=trained - 1,
        targets=row.token_ids[trained].astype(np.int64),
        temperature=temperatures[turns],
        turn_start=before,
        decision_end=decided,
    )


def _turn_starts(row: TrainingRow, trained: Indices, turns: Indices) -> Indices:
    before = np.full(len(row.turns), NO_POSITION, np.int64)
    turn_ids, first = np.unique(turns, return_index=True)
    before[turn_ids] = trained[first] - 1
    return before


def _decision_ends(row: TrainingRow, turn_start: Indices) -> Indices:
    decided = turn_start.copy()
    for kind in (SpanKind.SWITCH, SpanKind.KEPT, SpanKind.SUBGOAL):
        inside = np.flatnonzero(row.span_kind == SPAN_CODES[kind.value])
        decided[row.turn_index[inside]] = inside  # a later position of the same turn overwrites an earlier one
    return np.where(turn_start == NO_POSITION, NO_POSITION, decided)


def split_micro_batches(rows: Sequence[RowLayout], max_tokens: int, *, packing: bool = False) -> list[Indices]:
    """Split rows into micro-batches of at most `max_tokens`, including padding, the longest rows first.

    No row is cut. A row that is longer has its own micro-batch.
    """
    lengths = np.array([len(row.token_ids) for row in rows], np.int64)
    parts: list[list[int]] = []
    packed_tokens = 0
    for n in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[n])
        cost = packed_tokens + size if packing else (len(parts[-1]) + 1) * int(lengths[parts[-1][0]]) if parts else 0
        if not parts or cost > max_tokens:
            parts.append([])
            packed_tokens = 0
        parts[-1].append(n)
        packed_tokens += size
    return [np.array(part, np.int64) for part in parts]


def join_rows(rows: Sequence[RowLayout], row_indices: Indices, *, packing: bool = False) -> MicroBatch:
    """Join rows into one micro-batch: padded side by side, or with `packing` concatenated."""
    index_list: list[int] = row_indices.tolist()
    own = [rows[n] for n in index_list]
    lengths = np.array([len(row.token_ids) for row in own], np.int64)
    starts = np.cumsum(lengths) - lengths if packing else np.arange(len(own)) * int(lengths.max(initial=0))
    ids, positions = _pack_rows(own) if packing else (_pad_rows(own, lengths), None)
    temperature = np.concatenate([row.temperature for row in own])
    return MicroBatch(
        row_indices=row_indices,
        token_ids=ids,
        position_ids=positions,
        read_positions=_offset_positions([row.read_positions for row in own], starts),
        targets=np.concatenate([row.targets for row in own]),
        temperature=None if bool((temperature == 1.0).all()) else temperature,
        turn_start=_offset_positions([row.turn_start for row in own], starts),
        decision_end=_offset_positions([row.decision_end for row in own], starts),
    )


def _pad_rows(rows: Sequence[RowLayout], lengths: Indices) -> Indices:
    ids = np.zeros((len(rows), int(lengths.max(initial=0))), np.int64)
    for n, row in enumerate(rows):
        ids[n, : len(row.token_ids)] = row.token_ids
    return ids


def _pack_rows(rows: Sequence[RowLayout]) -> tuple[Indices, Indices]:
    ids = np.concatenate([row.token_ids for row in rows])[None]
    return ids, np.concatenate([np.arange(len(row.token_ids)) for row in rows])[None]


def _offset_positions(positions: Sequence[Indices], offsets: Indices) -> Indices:
    """Convert positions within rows to positions within the micro-batch. -1 is kept."""
    moved = [
        np.where(at == NO_POSITION, NO_POSITION, at + start)
        for at, start in zip(positions, offsets.tolist(), strict=True)
    ]
    return np.concatenate(moved)

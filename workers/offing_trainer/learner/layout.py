"""Rows as they are forwarded: which tokens go in, where something is read, and which rows share a micro-batch.

The only home of these places. Pure numpy. What is read at a token was computed from the tokens before it, so the input
ends with the last token that anything is read after. Lengths are explicit everywhere; no id means padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.rows import SPAN_CODES, TrainRow
from offing.core.tokens import SpanKind
from offing_trainer.batch import Floats, Places

NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Laid:
    """One row. Places are indices of `ids`; what is read at place p is about the token at p + 1."""

    ids: Places
    """(L,) that go in."""
    at: Places
    """(P,) where trained tokens are read."""
    wanted: Places
    """(P,) the trained tokens."""
    temperature: Floats
    """(P,) that each was sampled at. 1 where it was not said, and for the likeliest token (temperature 0)."""
    before: Places
    """(T,) the last token before what the policy wrote in a turn. -1: it wrote nothing that is trained."""
    decided: Places
    """(T,) the last token of a turn's subgoal, else of its switch, else as `before`."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows that are forwarded together; B sequences of L tokens, of which `at` and the like are flat indices."""

    rows: Places
    """Which rows, in the order of everything here."""
    ids: Places
    """(B, L); 0 behind the end of a row, where causal attention lets nobody look."""
    positions: Places | None
    """(B, L). None: 0, 1, … in every sequence."""
    at: Places
    wanted: Places
    temperature: Floats | None
    """None: 1 everywhere."""
    before: Places
    decided: Places


def laid(row: TrainRow) -> Laid:
    """Raises InvalidInput for a row that trains its first token: nothing comes before it."""
    trained = np.flatnonzero(row.loss_mask)
    if len(trained) and trained[0] == 0:
        raise InvalidInput("rows", f"{row.key} trains its first token", "Give the row its prompt.")
    turns = row.turn_index[trained].astype(np.int64)
    before = _before(row, trained, turns)
    decided = _decided(row, before)
    end = max(int(trained[-1]) if len(trained) else 1, int(decided.max(initial=0)) + 1)
    heat = np.array([t or 1.0 for t in row.turns.temperature], np.float64)
    return Laid(
        ids=row.token_ids[:end].astype(np.int64),
        at=trained - 1,
        wanted=row.token_ids[trained].astype(np.int64),
        temperature=heat[turns],
        before=before,
        decided=decided,
    )


def _before(row: TrainRow, trained: Places, turns: Places) -> Places:
    before = np.full(len(row.turns), NOWHERE, np.int64)
    found, first = np.unique(turns, return_index=True)
    before[found] = trained[first] - 1
    return before


def _decided(row: TrainRow, before: Places) -> Places:
    decided = before.copy()
    for kind in (SpanKind.SWITCH, SpanKind.KEPT, SpanKind.SUBGOAL):
        inside = np.flatnonzero(row.span_kind == SPAN_CODES[kind.value])
        decided[row.turn_index[inside]] = inside  # a later place of the same turn is written over an earlier one
    return np.where(before == NOWHERE, NOWHERE, decided)


def cut(rows: Sequence[Laid], most: int, *, packing: bool = False) -> list[Places]:
    """Rows by length, the longest first, in parts of at most `most` tokens with their padding; each row whole."""
    lengths = np.array([len(row.ids) for row in rows], np.int64)
    parts: list[list[int]] = []
    taken = 0
    for n in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[n])
        cost = taken + size if packing else (len(parts[-1]) + 1) * int(lengths[parts[-1][0]]) if parts else 0
        if not parts or cost > most:
            parts.append([])
            taken = 0
        parts[-1].append(n)
        taken += size
    return [np.array(part, np.int64) for part in parts]


def together(rows: Sequence[Laid], which: Places, *, packing: bool = False) -> Part:
    """The rows `which` as one part: beside one another, or end to end."""
    listed: list[int] = which.tolist()
    mine = [rows[n] for n in listed]
    lengths = np.array([len(row.ids) for row in mine], np.int64)
    starts = np.cumsum(lengths) - lengths if packing else np.arange(len(mine)) * int(lengths.max(initial=0))
    ids, positions = _end_to_end(mine) if packing else (_beside(mine, lengths), None)
    heat = np.concatenate([row.temperature for row in mine])
    return Part(
        rows=which,
        ids=ids,
        positions=positions,
        at=_moved([row.at for row in mine], starts),
        wanted=np.concatenate([row.wanted for row in mine]),
        temperature=None if bool((heat == 1.0).all()) else heat,
        before=_moved([row.before for row in mine], starts),
        decided=_moved([row.decided for row in mine], starts),
    )


def _beside(rows: Sequence[Laid], lengths: Places) -> Places:
    ids = np.zeros((len(rows), int(lengths.max(initial=0))), np.int64)
    for n, row in enumerate(rows):
        ids[n, : len(row.ids)] = row.ids
    return ids


def _end_to_end(rows: Sequence[Laid]) -> tuple[Places, Places]:
    ids = np.concatenate([row.ids for row in rows])[None]
    return ids, np.concatenate([np.arange(len(row.ids)) for row in rows])[None]


def _moved(places: Sequence[Places], starts: Places) -> Places:
    """Places within rows as places within the part; -1 stays."""
    moved = [np.where(at == NOWHERE, NOWHERE, at + start) for at, start in zip(places, starts.tolist(), strict=True)]
    return np.concatenate(moved)

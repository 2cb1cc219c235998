"""The per-token and per-turn columns of a row, by name and type: what Parquet and JSON rows have in common."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from offing.core.packed import Turns
from offing.core.rows import TrainRow
from offing.exports.plain import episode_columns, episode_of, head_columns, head_of

TOKENS: dict[str, Any] = {
    "token_ids": np.int32,
    "loss_mask": np.bool_,
    "behaviour_logprobs": np.float32,
    "entropy": np.float32,
    "turn_index": np.int16,
    "span_kind": np.int8,
}
"""Arrays of one entry a token."""

TURNS = {f.name: f"turn_{f.name}" for f in fields(Turns)}
"""Lists of one entry a turn, by field of `Turns`."""

WHOLE = ("part", "tokenizer_sha256", "template_sha256")


def scalar_columns(row: TrainRow) -> dict[str, Any]:
    """All but what belongs to tokens or turns."""
    return {**episode_columns(row.episode), **head_columns(row.head), **{name: getattr(row, name) for name in WHOLE}}


def row_of(columns: Mapping[str, Any]) -> TrainRow:
    """A row from values by column; arrays may be lists, and null stands for NaN."""
    return TrainRow(
        episode=episode_of(columns),
        head=head_of(columns),
        turns=Turns(**{name: tuple(columns[column]) for name, column in TURNS.items()}),
        **{name: columns[name] for name in WHOLE},
        **{name: _array(columns[name], kind) for name, kind in TOKENS.items()},
    )


def _array(values: Any, kind: Any) -> Any:
    return np.array(values, dtype=kind)

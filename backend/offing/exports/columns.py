"""Per-token and per-call columns of a training row, with their types.

Parquet and JSON rows share them.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from offing.core.packed_segment import PackedTurns
from offing.core.training_rows import TrainingRow
from offing.exports.row_values import (
    segment_info_columns,
    segment_info_from_columns,
    trajectory_metadata_columns,
    trajectory_metadata_from_columns,
)

TOKEN_COLUMNS: dict[str, Any] = {
    "token_ids": np.int32,
    "loss_mask": np.bool_,
    "behavior_logprobs": np.float32,
    "entropy": np.float32,
    "turn_index": np.int16,
    "span_kind": np.int8,
}
"""Columns with one entry per token."""

ROLE_CALL_COLUMNS = {f.name: f"role_call_{f.name}" for f in fields(PackedTurns)}
"""Columns with one entry per role call, by field of `PackedTurns`."""

UNSPLIT_FIELDS = ("part", "tokenizer_sha256", "template_sha256")


def scalar_columns(row: TrainingRow) -> dict[str, Any]:
    """Return the columns that hold one value per row, without those per token or per role call."""
    return {
        **trajectory_metadata_columns(row.metadata),
        **segment_info_columns(row.segment_info),
        **{name: getattr(row, name) for name in UNSPLIT_FIELDS},
    }


def row_from_columns(columns: Mapping[str, Any]) -> TrainingRow:
    """Build a row from its columns. Arrays may be lists; null is read as NaN."""
    return TrainingRow(
        metadata=trajectory_metadata_from_columns(columns),
        segment_info=segment_info_from_columns(columns),
        turns=PackedTurns(**{name: tuple(columns[column]) for name, column in ROLE_CALL_COLUMNS.items()}),
        **{name: columns[name] for name in UNSPLIT_FIELDS},
        **{name: _build_array(columns[name], kind) for name, kind in TOKEN_COLUMNS.items()},
    )


def _build_array(values: Any, kind: Any) -> Any:
    return np.array(values, dtype=kind)

"""Training rows as Tinker-style datums.

A datum pairs each input token with its target token and the values of that target. Loss inputs
are shifted by one: entry n is about token n + 1. The trainer adds the advantages.
"""

from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from offing.core.training_rows import TrainingRow
from offing.exports.columns import ROLE_CALL_COLUMNS, scalar_columns
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.json_lines import JsonLinesSink


def create_sink(file: BinaryIO, _: ExportOptions) -> Sink:
    return JsonLinesSink(file, _build_documents)


def _build_documents(row: TrainingRow) -> Iterable[dict[str, Any]]:
    yield {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": _contiguous(row.token_ids[:-1])}]},
        "loss_fn_inputs": {
            "target_tokens": _build_tensor(row.token_ids[1:], "int64"),
            "logprobs": _build_tensor(row.behavior_logprobs[1:], "float32"),
            "mask": _build_tensor(row.loss_mask[1:].astype(np.float32), "float32"),
        },
        "offing": {
            **scalar_columns(row),
            **{column: getattr(row.turns, name) for name, column in ROLE_CALL_COLUMNS.items()},
            "turn_index": _contiguous(row.turn_index[1:]),
            "span_kind": _contiguous(row.span_kind[1:]),
        },
    }


def _build_tensor(values: Any, dtype: str) -> dict[str, Any]:
    return {"data": _contiguous(values), "dtype": dtype, "shape": [len(values)]}


def _contiguous(values: Any) -> Any:
    """Return a contiguous copy if needed, because the serializer requires contiguous arrays."""
    return np.ascontiguousarray(values)


FORMAT = Format("tinker", RecordUnit.ROW, "Tinker-style datums", create_sink)

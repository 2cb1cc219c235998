"""Rows as Tinker-style datums: inputs, and for each the token that followed it with what is known of it.

Shifted by one against a row: entry n of every loss input is about token n + 1. Advantages are the trainer's to add.
"""

from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from offing.core.rows import TrainRow
from offing.exports.columns import TURNS, scalar_columns
from offing.exports.format import Options, Sink
from offing.exports.lines import Lines


def open_sink(file: BinaryIO, _: Options) -> Sink:
    return Lines(file, _documents)


def _documents(row: TrainRow) -> Iterable[dict[str, Any]]:
    yield {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": _listed(row.token_ids[:-1])}]},
        "loss_fn_inputs": {
            "target_tokens": _tensor(row.token_ids[1:], "int64"),
            "logprobs": _tensor(row.behaviour_logprobs[1:], "float32"),
            "mask": _tensor(row.loss_mask[1:].astype(np.float32), "float32"),
        },
        "offing": {
            **scalar_columns(row),
            **{column: getattr(row.turns, name) for name, column in TURNS.items()},
            "turn_index": _listed(row.turn_index[1:]),
            "span_kind": _listed(row.span_kind[1:]),
        },
    }


def _tensor(values: Any, dtype: str) -> dict[str, Any]:
    return {"data": _listed(values), "dtype": dtype, "shape": [len(values)]}


def _listed(values: Any) -> Any:
    """As the serialiser wants it: without gaps in memory."""
    return np.ascontiguousarray(values)

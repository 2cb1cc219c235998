"""Training rows as verl's tensor columns, without padding.

A driver converts them to a `DataProto` for `TrainingWorker`. Unmodified verl reads prompts
instead; `verl_prompts` exports those. The prompt of a row is everything before its first sampled
token. The reward is stored at the last sampled token of each row, as verl's reward managers do.
A rollout without a reward has no `token_level_rewards`, which is different from zero.
"""

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from offing.core.training_rows import TrainingRow
from offing.core.trajectory import BoundaryReason
from offing.exports.arrow import pa
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.parquet import COST_TYPES, ParquetSink, build_list_column, non_null_list
from offing.exports.row_values import ACCEPTED_COLUMN, COST_COLUMNS

LIST_COLUMNS = {
    "prompts": pa.int32(),
    "responses": pa.int32(),
    "input_ids": pa.int32(),
    "attention_mask": pa.int8(),
    "position_ids": pa.int32(),
    "response_mask": pa.int8(),
    "rollout_log_probs": pa.float32(),
    "token_level_rewards": pa.float32(),
}

SCHEMA = pa.schema(
    [
        *(pa.field(name, non_null_list(kind)) for name, kind in LIST_COLUMNS.items()),
        *(pa.field(name, pa.string()) for name in ("uid", "run_id", "role", "outcome", "data_source")),
        *(pa.field(name, pa.int32()) for name in ("segment_idx", "part")),
        pa.field("policies", pa.list_(pa.string())),
        pa.field(ACCEPTED_COLUMN, pa.bool_()),
        *(pa.field(column, COST_TYPES.get(name, pa.int64())) for name, column in COST_COLUMNS.items()),
    ],
    metadata={"offing.format": "verl-1"},
)


def create_sink(file: BinaryIO, _: ExportOptions) -> Sink:
    return ParquetSink(file, SCHEMA, build_record_batch)


def build_record_batch(rows: Sequence[TrainingRow]) -> Any:
    """Convert rows to an Arrow record batch.

    `uid` is the group, so that verl's group estimators find its members. A run without a group
    has its own `uid`.
    """
    tensors = [build_tensors(row) for row in rows]
    columns = [build_list_column([t[name] for t in tensors], kind) for name, kind in LIST_COLUMNS.items()]
    columns += [
        pa.array([str(row.metadata.group_id or row.metadata.run_id) for row in rows]),
        pa.array([str(row.metadata.run_id) for row in rows]),
        pa.array([row.segment_info.role for row in rows]),
        pa.array([row.metadata.outcome for row in rows], pa.string()),
        pa.array([row.metadata.dataset for row in rows]),
        pa.array([row.segment_info.idx for row in rows], pa.int32()),
        pa.array([row.part for row in rows], pa.int32()),
        pa.array([list(row.turns.policy) for row in rows], pa.list_(pa.string())),
        pa.array([row.segment_info.boundary_reason != BoundaryReason.REJECTED for row in rows]),
        *(
            pa.array([getattr(row.metadata.cost, name, None) for row in rows], SCHEMA.field(c).type)
            for name, c in COST_COLUMNS.items()
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def build_tensors(row: TrainingRow) -> dict[str, Any]:
    """Return the arrays of a row by verl's names."""
    length, first = len(row), int(np.argmax(row.loss_mask))
    mask = row.loss_mask[first:]
    rewards = None
    if row.metadata.reward is not None:
        rewards = np.zeros(length - first, np.float32)
        rewards[np.flatnonzero(mask)[-1]] = row.metadata.reward
    return {
        "prompts": row.token_ids[:first],
        "responses": row.token_ids[first:],
        "input_ids": row.token_ids,
        "attention_mask": np.ones(length, np.int8),
        "position_ids": np.arange(length, dtype=np.int32),
        "response_mask": mask.astype(np.int8),
        "rollout_log_probs": row.behavior_logprobs[first:],
        "token_level_rewards": rewards,
    }


FORMAT = Format("verl", RecordUnit.ROW, "verl's tensor columns in Parquet", create_sink, streams_lines=False)

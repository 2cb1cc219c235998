"""Rows as verl's tensor columns, without padding: what a driver turns into a `DataProto` for `TrainingWorker`.

Stock verl reads prompts, not these rows; see `verl_prompts` for those. A row's prompt is all before its first sampled
token. The reward stands at the last sampled token of each row, as verl's reward managers put it; a rollout that has no
reward has no `token_level_rewards`, which is not zero.
"""

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from offing.core.rows import TrainRow
from offing.core.trajectory import Fracture
from offing.exports.arrow import pa
from offing.exports.format import Options, Sink
from offing.exports.parquet import COST_TYPES, ParquetSink, filled, lists
from offing.exports.plain import ACCEPTED, COST

LISTS = {
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
        *(pa.field(name, filled(kind)) for name, kind in LISTS.items()),
        *(pa.field(name, pa.string()) for name in ("uid", "run_id", "role", "outcome", "data_source")),
        *(pa.field(name, pa.int32()) for name in ("segment", "part")),
        pa.field("policies", pa.list_(pa.string())),
        pa.field(ACCEPTED, pa.bool_()),
        *(pa.field(column, COST_TYPES.get(name, pa.int64())) for name, column in COST.items()),
    ],
    metadata={"offing.format": "verl-1"},
)


def open_sink(file: BinaryIO, _: Options) -> Sink:
    return ParquetSink(file, SCHEMA, batch_of)


def batch_of(rows: Sequence[TrainRow]) -> Any:
    """`uid` is the group, so that verl's group estimators find its members; a run without one stands alone."""
    tensors = [tensors_of(row) for row in rows]
    columns = [lists([t[name] for t in tensors], kind) for name, kind in LISTS.items()]
    columns += [
        pa.array([str(row.episode.group or row.episode.run) for row in rows]),
        pa.array([str(row.episode.run) for row in rows]),
        pa.array([row.head.role for row in rows]),
        pa.array([row.episode.outcome for row in rows], pa.string()),
        pa.array([row.episode.dataset for row in rows]),
        pa.array([row.head.idx for row in rows], pa.int32()),
        pa.array([row.part for row in rows], pa.int32()),
        pa.array([list(row.turns.policy) for row in rows], pa.list_(pa.string())),
        pa.array([row.head.fracture != Fracture.REJECTED for row in rows]),
        *(
            pa.array([getattr(row.episode.cost, name, None) for row in rows], SCHEMA.field(c).type)
            for name, c in COST.items()
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def tensors_of(row: TrainRow) -> dict[str, Any]:
    """One row's arrays by verl's names."""
    length, first = len(row), int(np.argmax(row.loss_mask))
    mask = row.loss_mask[first:]
    rewards = None
    if row.episode.reward is not None:
        rewards = np.zeros(length - first, np.float32)
        rewards[np.flatnonzero(mask)[-1]] = row.episode.reward
    return {
        "prompts": row.token_ids[:first],
        "responses": row.token_ids[first:],
        "input_ids": row.token_ids,
        "attention_mask": np.ones(length, np.int8),
        "position_ids": np.arange(length, dtype=np.int32),
        "response_mask": mask.astype(np.int8),
        "rollout_log_probs": row.behaviour_logprobs[first:],
        "token_level_rewards": rewards,
    }

"""One training step as rows for another trainer, with an advantage and a weight for each token."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.training_rows import TrainingRow
from offing.exports.arrow import pa, pq
from offing.exports.parquet import build_list_column, non_null_list
from offing_trainer.batch import Floats, RolloutGroup, TrainingRollout
from offing_trainer.bridges.loss_spec import EXTERNAL_COLUMNS
from offing_trainer.bridges.step_file import FORMAT, METADATA_KEY, ExportedRow, ExportedStep
from offing_trainer.config import LearnerConfig
from offing_trainer.pipeline import Pipeline, compute_required_columns
from offing_trainer.plugin import PluginState
from offing_trainer.prepared_step import PreparedStep, build_step_input
from offing_trainer.training_step import apply_view, compute_advantages, compute_token_weights

LIST_COLUMNS = {
    "token_ids": pa.int32(),
    "loss_mask": pa.int8(),
    "behavior_logprobs": pa.float32(),
    "advantages": pa.float32(),
    "token_weights": pa.float32(),
}

SCALAR_COLUMNS = {
    "key": pa.string(),
    "run_id": pa.string(),
    "group_id": pa.string(),
    "optimizer_step": pa.int32(),
    "version_lag": pa.int32(),
    "temperature": pa.float64(),
}

SCHEMA = pa.schema(
    [
        *(pa.field(n, kind) for n, kind in SCALAR_COLUMNS.items()),
        *(pa.field(n, non_null_list(kind)) for n, kind in LIST_COLUMNS.items()),
    ]
)


def prepare_step(
    pipeline: Pipeline,
    learner_config: LearnerConfig,
    groups: Sequence[RolloutGroup],
    state: PluginState,
    rng: np.random.Generator,
    *,
    rollout_stats: Mapping[Any, Mapping[str, float]] | None = None,
    replay_candidates: Mapping[str, TrainingRollout] | None = None,
    progress: float = 0.0,
) -> PreparedStep:
    """Prepare a step up to its token weights without any policy's weights.

    Columns that the other trainer will compute are NaN. The pipeline must be accepted by
    `build_loss_spec`.
    """
    viewed_groups = apply_view(
        pipeline, groups, state, rng, rollout_stats=rollout_stats, replay_candidates=replay_candidates
    )
    prepared_step = compute_advantages(
        pipeline, viewed_groups, {}, rng, progress=progress, learner_config=learner_config
    )
    late = compute_required_columns(pipeline, learner_config.mode).after_selection & EXTERNAL_COLUMNS
    unknown = np.full(prepared_step.batch.select_rows(prepared_step.active_rows).num_tokens, np.nan)
    return compute_token_weights(pipeline, prepared_step, dict.fromkeys(late, unknown))


def iter_exported_rows(prepared_step: PreparedStep, policy: str) -> Iterator[ExportedRow]:
    """Yield the rows with a gradient of every optimizer step.

    `policy` is the NAME@VERSION to train.
    """
    for nth, rows in enumerate(prepared_step.optimizer_steps):
        live = np.flatnonzero(np.isin(rows, prepared_step.active_rows))
        step_input = build_step_input(prepared_step, rows, prepared_step.step_states[nth])
        tokens = step_input.batch.token_indices(live)
        ends = np.cumsum([int(row.loss_mask.sum()) for row in prepared_step.step_rows(nth)])[:-1]
        advantages, weights = (
            np.split(one[tokens], ends) for one in (step_input.advantage, prepared_step.token_weights[nth])
        )
        for row, advantage, weight in zip(prepared_step.step_rows(nth), advantages, weights, strict=True):
            yield _build_exported_row(row, nth, advantage, weight, policy)


def _build_exported_row(
    row: TrainingRow, optimizer_step: int, advantage: Floats, weight: Floats, policy: str
) -> ExportedRow:
    if row.loss_mask[0]:
        raise InvalidInput("data", f"row {row.key} begins with a sampled token", "Exclude its run.")
    return ExportedRow(
        key=row.key,
        run_id=str(row.metadata.run_id),
        group_id=str(row.metadata.group_id or row.metadata.run_id),
        optimizer_step=optimizer_step,
        version_lag=_version_lag(row, policy),
        temperature=_sampling_temperature(row),
        token_ids=row.token_ids,
        loss_mask=row.loss_mask,
        behavior_logprobs=row.behavior_logprobs,
        advantages=_scatter_to_row(row, advantage),
        token_weights=_scatter_to_row(row, weight),
    )


def _scatter_to_row(row: TrainingRow, trained: Floats) -> Any:
    values = np.zeros(len(row), np.float32)
    values[row.loss_mask] = trained
    return values


def _trained_turns(row: TrainingRow) -> list[int]:
    """Return the turns that have trained tokens."""
    return np.unique(row.turn_index[row.loss_mask]).tolist()


def _sampling_temperature(row: TrainingRow) -> float:
    """Return the sampling temperature of a row.

    It is 1 if the temperature is unknown or 0 (greedy), as in the learner.
    """
    temperatures = {row.turns.temperature[turn] or 1.0 for turn in _trained_turns(row)}
    if len(temperatures) > 1:
        listed = " and ".join(f"{one:g}" for one in sorted(temperatures))
        problem = f"row {row.key} was sampled at temperatures {listed}; other trainers support one temperature per row"
        raise InvalidInput("data", problem, "Exclude such runs, or train with `offing train`.")
    return temperatures.pop() if temperatures else 1.0


def _version_lag(row: TrainingRow, policy: str) -> int:
    name, _, current = policy.rpartition("@")
    sampled = [row.turns.policy[turn].rpartition("@") for turn in _trained_turns(row)]
    lags = [int(current) - int(version) for whose, _, version in sampled if whose == name and version.isdigit()]
    return max(lags) if len(lags) == len(sampled) and lags else -1


def write_step(path: Path, exported_step: ExportedStep) -> None:
    """Write the step atomically: the file gets its final name only when it is complete."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    about = {"format": FORMAT, **{n: v for n, v in _file_metadata(exported_step).items() if n != "rows"}}
    schema = SCHEMA.with_metadata({METADATA_KEY: json.dumps(about).encode()})
    columns = [pa.array([getattr(row, n) for row in exported_step.rows], kind) for n, kind in SCALAR_COLUMNS.items()]
    columns += [
        build_list_column([_to_column_values(getattr(row, n)) for row in exported_step.rows], kind)
        for n, kind in LIST_COLUMNS.items()
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), aside, compression="zstd")
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.replace(path)


def _file_metadata(exported_step: ExportedStep) -> dict[str, Any]:
    names = ("step", "policy", "policy_sha256", "tokenizer_sha256", "learner", "optimizer_steps")
    return {**{name: getattr(exported_step, name) for name in names}, "loss_spec": asdict(exported_step.loss_spec)}


def _to_column_values(array: Any) -> Any:
    return array.astype(np.int8) if array.dtype == np.bool_ else array

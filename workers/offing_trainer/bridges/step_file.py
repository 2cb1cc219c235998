"""The file format of an exported training step, shared by the exporter and the other trainer.

It imports only numpy and pyarrow and nothing else of Offing, so that it works in an environment in
which Offing is not installed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FORMAT = "offing-steps-1"

METADATA_KEY = b"offing.steps"
"""Key of the file's metadata: the fields of `ExportedStep` other than its rows, as JSON."""

END_FILE = "end.json"
"""This file exists when no more steps will follow."""

Floats = npt.NDArray[np.float32]

LIST_COLUMNS = ("token_ids", "loss_mask", "behavior_logprobs", "advantages", "token_weights")


@dataclass(frozen=True, slots=True)
class LossSpec:
    """The loss: sum over tokens of weight * (surrogate + kl_coefficient * kl - entropy_coefficient * H).

    The sum is not divided by anything.
    """

    surrogate: Literal["ppo-clip", "reinforce", "cross-entropy"]
    ratio_to: Literal["behavior", "start", "none"]
    """What ratios are relative to.
    `behavior` uses the logprobs as sampled, `start` those under the weights at the start of the step.
    `none` means that no ratio is used.
    """
    clip_low: float = 0.0
    """A ratio is clipped to the range from 1 - clip_low to 1 + clip_high."""
    clip_high: float = 0.0
    dual_clip: float | None = None
    """Maximum loss of a token with a negative advantage, in multiples of |A|. `None` means no limit."""
    kl_estimator: Literal["k1", "k2", "k3"] | None = None
    """Estimator of the KL divergence from the initial policy. `None` means that there is no KL term."""
    kl_coefficient: float = 0.0
    kl_max_value: float | None = None
    """Limit of a token's k3. A token beyond it has no gradient. `None` means no limit."""
    entropy_coefficient: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ExportedRow:
    """One sequence of one optimizer step. Arrays have one entry per token, 0 where not trained.

    Their length is L.
    """

    key: str
    """Run, segment and part. The same row can be in several optimizer steps."""
    run_id: str
    group_id: str
    optimizer_step: int
    """Index of the optimizer step within the training step, from 0."""
    version_lag: int
    """How many versions the sampling policy is older than the trained one. `-1` means unknown."""
    temperature: float
    """Temperature at which the tokens were sampled."""
    token_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.bool_]
    """Never true at the first token, which nothing predicts."""
    behavior_logprobs: Floats
    advantages: Floats
    token_weights: Floats
    """Weights for the whole optimizer step."""

    def __len__(self) -> int:
        return len(self.token_ids)


def zero_weight_row(row: ExportedRow) -> ExportedRow:
    """Return the row with all weights set to 0, for trainers that need a fixed number of rows."""
    return replace(row, token_weights=np.zeros_like(row.token_weights))


@dataclass(frozen=True, slots=True, eq=False)
class ExportedStep:
    """A training step: the loss, the learner settings, and the rows that have a gradient."""

    step: int
    """Number of the training step, from 1."""
    policy: str
    """NAME@VERSION of the initial policy."""
    policy_sha256: str
    tokenizer_sha256: str
    loss_spec: LossSpec
    learner: Mapping[str, Any]
    """learning_rate, betas, epsilon, weight_decay, max_grad_norm, warmup_steps."""
    optimizer_steps: int
    rows: tuple[ExportedRow, ...]

    def list_rows(self, optimizer_step: int) -> tuple[ExportedRow, ...]:
        return tuple(row for row in self.rows if row.optimizer_step == optimizer_step)


def step_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:06d}.parquet"


def list_step_files(folder: Path) -> list[Path]:
    """Return the complete step files in order.

    A file gets its final name only when it is complete.
    """
    return sorted(folder.glob("step-*.parquet"))


def has_ended(folder: Path) -> bool:
    return (folder / END_FILE).is_file()


def read_step(path: Path) -> ExportedStep:
    """Read a step file. Raises ValueError for another format or version."""
    table: Any = import_module("pyarrow.parquet").read_table(path)
    metadata: dict[str, Any] = json.loads(_read_metadata(table.schema.metadata))
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} does not have the format {FORMAT}: {metadata.get('format', 'no format')}")
    arrays = {name: _split_list_column(table.column(name)) for name in LIST_COLUMNS}
    scalars = table.drop_columns(list(LIST_COLUMNS)).to_pylist()
    rows = [
        _build_row(columns, {name: arrays[name][nth] for name in LIST_COLUMNS}) for nth, columns in enumerate(scalars)
    ]
    return ExportedStep(
        step=metadata["step"],
        policy=metadata["policy"],
        policy_sha256=metadata["policy_sha256"],
        tokenizer_sha256=metadata["tokenizer_sha256"],
        loss_spec=LossSpec(**metadata["loss_spec"]),
        learner=metadata["learner"],
        optimizer_steps=metadata["optimizer_steps"],
        rows=tuple(rows),
    )


def _read_metadata(metadata: Mapping[bytes, bytes] | None) -> bytes:
    return (metadata or {}).get(METADATA_KEY, b"{}")


def _build_row(columns: Mapping[str, Any], arrays: Mapping[str, Any]) -> ExportedRow:
    return ExportedRow(**columns, **{**arrays, "loss_mask": arrays["loss_mask"].astype(np.bool_)})


def _split_list_column(column: Any) -> Sequence[Any]:
    """Return a list column as one numpy array per row."""
    arrays: list[Any] = []
    for chunk in column.chunks:
        ends = chunk.offsets.to_numpy() - chunk.offsets[0].as_py()
        arrays += np.split(chunk.flatten().to_numpy(zero_copy_only=False), ends[1:-1])
    return arrays

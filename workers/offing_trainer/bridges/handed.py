"""A step that was handed over, as its file says it. The only home of that file's shape; both sides import it.

Imports numpy and pyarrow and nothing of ours, so that it works in an environment in which Offing is not installed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FORMAT = "handed-1"

ABOUT = b"offing.handed"
"""Entry of the file's metadata: what `Handed` has beside its rows, as JSON."""

END = "end.json"
"""Is there when no step follows any more."""

Floats = npt.NDArray[np.float32]

LISTS = ("token_ids", "loss_mask", "behaviour_logprobs", "advantages", "weights")


@dataclass(frozen=True, slots=True)
class Terms:
    """What is minimised: sum over tokens of weight * (surrogate + kl_coefficient * kl - entropy * H).

    Nothing is left to divide by.
    """

    surrogate: Literal["ppo-clip", "reinforce", "cross-entropy"]
    anchor: Literal["behaviour", "start", "none"]
    """Whose log-probabilities a ratio is to: those sampled at, those of the weights that the step begins with, or no
    ratio is taken."""
    low: float = 0.0
    """A ratio may fall to 1 - low, and rise to 1 + high."""
    high: float = 0.0
    dual: float | None = None
    """Most that a token with a negative advantage can cost, in its advantage. None: any amount."""
    kl: Literal["k1", "k2", "k3"] | None = None
    """Estimator of the divergence from the policy that training begins with. None: it is not held on to."""
    kl_coefficient: float = 0.0
    entropy: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class HandedRow:
    """One sequence in one optimiser step. Arrays have length L, one entry a token; 0 where `loss_mask` is false."""

    key: str
    """Run, segment and part; the same row can be in several optimiser steps."""
    run: str
    group: str
    optimiser_step: int
    """From 0 within the step."""
    lag: int
    """Versions that the policy which sampled it was older than the one that is trained. -1: not known."""
    temperature: float
    """That its tokens were sampled at."""
    token_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.bool_]
    """Never true at the first token, which nothing predicts."""
    behaviour_logprobs: Floats
    advantages: Floats
    weights: Floats
    """Of the whole optimiser step."""

    def __len__(self) -> int:
        return len(self.token_ids)


def weightless(row: HandedRow) -> HandedRow:
    """The same row where it moves nothing, for trainers that want a number of rows."""
    return replace(row, weights=np.zeros_like(row.weights))


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """A step: what to minimise, how to learn, and the rows that have a gradient."""

    step: int
    """From 1."""
    policy: str
    """NAME@VERSION to begin with."""
    policy_sha256: str
    tokenizer_sha256: str
    terms: Terms
    learner: Mapping[str, Any]
    """learning_rate, betas, epsilon, weight_decay, gradient_clip, warmup."""
    optimiser_steps: int
    rows: tuple[HandedRow, ...]

    def rows_of(self, optimiser_step: int) -> tuple[HandedRow, ...]:
        return tuple(row for row in self.rows if row.optimiser_step == optimiser_step)


def step_file(folder: Path, step: int) -> Path:
    return folder / f"step-{step:06d}.parquet"


def steps_in(folder: Path) -> list[Path]:
    """Whole steps, in their order. A file has its name only when it is whole."""
    return sorted(folder.glob("step-*.parquet"))


def ended(folder: Path) -> bool:
    return (folder / END).is_file()


def read_step(path: Path) -> Handed:
    """Raises ValueError for a file of another kind or version."""
    table: Any = import_module("pyarrow.parquet").read_table(path)
    about: dict[str, Any] = json.loads(_said(table.schema.metadata))
    if about.get("format") != FORMAT:
        raise ValueError(f"{path} is no step of the format {FORMAT}: {about.get('format', 'it says none')}")
    arrays = {name: _split(table.column(name)) for name in LISTS}
    plain = table.drop_columns(list(LISTS)).to_pylist()
    rows = [_row(columns, {name: arrays[name][nth] for name in LISTS}) for nth, columns in enumerate(plain)]
    return Handed(
        step=about["step"],
        policy=about["policy"],
        policy_sha256=about["policy_sha256"],
        tokenizer_sha256=about["tokenizer_sha256"],
        terms=Terms(**about["terms"]),
        learner=about["learner"],
        optimiser_steps=about["optimiser_steps"],
        rows=tuple(rows),
    )


def _said(metadata: Mapping[bytes, bytes] | None) -> bytes:
    return (metadata or {}).get(ABOUT, b"{}")


def _row(columns: Mapping[str, Any], arrays: Mapping[str, Any]) -> HandedRow:
    return HandedRow(**columns, **{**arrays, "loss_mask": arrays["loss_mask"].astype(np.bool_)})


def _split(column: Any) -> Sequence[Any]:
    """A list column as one numpy array a row."""
    found: list[Any] = []
    for chunk in column.chunks:
        ends = chunk.offsets.to_numpy() - chunk.offsets[0].as_py()
        found += np.split(chunk.flatten().to_numpy(zero_copy_only=False), ends[1:-1])
    return found

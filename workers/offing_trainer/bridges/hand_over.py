"""A step of training as rows for another trainer: credit and weights token by token. Pure, but for a file's writing."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from offing.core.errors import InvalidInput
from offing.core.rows import TrainRow
from offing.exports.arrow import pa, pq
from offing.exports.parquet import filled, lists
from offing_trainer.batch import Floats, Group, Sample
from offing_trainer.bridges.handed import ABOUT, FORMAT, Handed, HandedRow
from offing_trainer.bridges.terms import THEIRS
from offing_trainer.chain import Chain, needed_columns
from offing_trainer.config import LearnerConfig
from offing_trainer.seam import State
from offing_trainer.step import Prepared, step_given
from offing_trainer.update import measured, prepared, viewed

LISTS = {
    "token_ids": pa.int32(),
    "loss_mask": pa.int8(),
    "behaviour_logprobs": pa.float32(),
    "advantages": pa.float32(),
    "weights": pa.float32(),
}

PLAIN = {
    "key": pa.string(),
    "run": pa.string(),
    "group": pa.string(),
    "optimiser_step": pa.int32(),
    "lag": pa.int32(),
    "temperature": pa.float64(),
}

SCHEMA = pa.schema(
    [*(pa.field(n, kind) for n, kind in PLAIN.items()), *(pa.field(n, filled(kind)) for n, kind in LISTS.items())]
)


def ready_of(
    chain: Chain,
    how: LearnerConfig,
    groups: Sequence[Group],
    state: State,
    rng: np.random.Generator,
    *,
    facts: Mapping[Any, Mapping[str, float]] | None = None,
    earlier: Mapping[str, Sample] | None = None,
    progress: float = 0.0,
) -> Prepared:
    """A step up to its weights, without any policy's weights: what the other trainer will compute stands as NaN.

    The chain must be one that `terms_of` lets through.
    """
    seen = viewed(chain, groups, state, rng, facts=facts, earlier=earlier)
    chosen = prepared(chain, seen, {}, rng, progress=progress, learner=how)
    late = needed_columns(chain, how.mode).late & THEIRS
    unknown = np.full(chosen.batch.only(chosen.live).tokens, np.nan)
    return measured(chain, chosen, dict.fromkeys(late, unknown))


def handed_rows(ready: Prepared, policy: str) -> Iterator[HandedRow]:
    """The rows of every optimiser step that have a gradient. `policy`: NAME@VERSION that is to be trained."""
    for nth, rows in enumerate(ready.steps):
        live = np.flatnonzero(np.isin(rows, ready.live))
        given = step_given(ready, rows, ready.surveyed[nth])
        tokens = given.batch.tokens_of(live)
        ends = np.cumsum([int(row.loss_mask.sum()) for row in ready.rows_of(nth)])[:-1]
        advantages, weights = (np.split(one[tokens], ends) for one in (given.advantage, ready.weights[nth]))
        for row, advantage, weight in zip(ready.rows_of(nth), advantages, weights, strict=True):
            yield _handed(row, nth, advantage, weight, policy)


def _handed(row: TrainRow, nth: int, advantage: Floats, weight: Floats, policy: str) -> HandedRow:
    if row.loss_mask[0]:
        raise InvalidInput("data", f"row {row.key} begins with a sampled token", "Leave out its run.")
    return HandedRow(
        key=row.key,
        run=str(row.episode.run),
        group=str(row.episode.group or row.episode.run),
        optimiser_step=nth,
        lag=_lag(row, policy),
        temperature=_temperature(row),
        token_ids=row.token_ids,
        loss_mask=row.loss_mask,
        behaviour_logprobs=row.behaviour_logprobs,
        advantages=_laid(row, advantage),
        weights=_laid(row, weight),
    )


def _laid(row: TrainRow, trained: Floats) -> Any:
    laid = np.zeros(len(row), np.float32)
    laid[row.loss_mask] = trained
    return laid


def _turns(row: TrainRow) -> list[int]:
    """Those that have trained tokens."""
    return np.unique(row.turn_index[row.loss_mask]).tolist()


def _temperature(row: TrainRow) -> float:
    """1 where it was not said, and for the likeliest token, as our learner takes them."""
    found = {row.turns.temperature[turn] or 1.0 for turn in _turns(row)}
    if len(found) > 1:
        told = " and ".join(f"{one:g}" for one in sorted(found))
        problem = f"row {row.key} was sampled at temperatures {told}; other trainers know one a row"
        raise InvalidInput("data", problem, "Leave out such runs, or train here with `offing train`.")
    return found.pop() if found else 1.0


def _lag(row: TrainRow, policy: str) -> int:
    name, _, current = policy.rpartition("@")
    sampled = [row.turns.policy[turn].rpartition("@") for turn in _turns(row)]
    lags = [int(current) - int(version) for whose, _, version in sampled if whose == name and version.isdigit()]
    return max(lags) if len(lags) == len(sampled) and lags else -1


def write_step(path: Path, handed: Handed) -> None:
    """The file has its name only when it is whole."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    about = {"format": FORMAT, **{n: v for n, v in _about(handed).items() if n != "rows"}}
    schema = SCHEMA.with_metadata({ABOUT: json.dumps(about).encode()})
    columns = [pa.array([getattr(row, n) for row in handed.rows], kind) for n, kind in PLAIN.items()]
    columns += [lists([_plain(getattr(row, n)) for row in handed.rows], kind) for n, kind in LISTS.items()]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), aside, compression="zstd")
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.replace(path)


def _about(handed: Handed) -> dict[str, Any]:
    names = ("step", "policy", "policy_sha256", "tokenizer_sha256", "learner", "optimiser_steps")
    return {**{name: getattr(handed, name) for name in names}, "terms": asdict(handed.terms)}


def _plain(array: Any) -> Any:
    return array.astype(np.int8) if array.dtype == np.bool_ else array

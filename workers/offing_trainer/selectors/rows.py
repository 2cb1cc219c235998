"""Selectors of rows after advantages are computed. Dropped rows still count in the statistics."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from offing_trainer.batch import OUTCOME_CODES, Indices
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, PluginState, RowSelectorInput, empty_state


class DpMultipleOptions(PluginOptions):
    multiple: Annotated[int, Field(ge=1)] = 1
    """Number of data-parallel ranks that rows are split over."""
    unit: Literal["step", "group"] = "step"
    """The unit that is reduced to a multiple."""


class OverlongOptions(PluginOptions):
    outcomes: tuple[Literal["answered", "no_answer", "truncated", "violated"], ...] = ("truncated",)
    """Outcomes that are not trained."""


class InformedOptions(PluginOptions):
    min_advantage: Annotated[float, Field(ge=0)] = 0.0
    """Advantages up to this absolute value count as zero."""


def dp_multiple(options: DpMultipleOptions, inputs: RowSelectorInput) -> tuple[Indices, PluginState]:
    """Drop rows at random until their number is a multiple of `multiple`.

    Fewer rows than `multiple` leave none.
    """
    rows = np.arange(inputs.batch.num_rows)
    if options.unit == "step":
        return _drop_to_multiple(rows, options.multiple, inputs.rng), empty_state()
    group = inputs.batch.rollout_group[inputs.batch.row_rollout]
    parts = [
        _drop_to_multiple(rows[group == nth], options.multiple, inputs.rng) for nth in range(inputs.batch.num_groups)
    ]
    return np.sort(np.concatenate([rows[:0], *parts])), empty_state()


def overlong(options: OverlongOptions, inputs: RowSelectorInput) -> tuple[Indices, PluginState]:
    """Drop truncated rollouts, as the overlong filtering of SUPO and DAPO does."""
    cut = np.isin(inputs.batch.outcome, [OUTCOME_CODES[name] for name in options.outcomes])
    return np.flatnonzero(~cut[inputs.batch.row_rollout]), empty_state()


def informed(options: InformedOptions, inputs: RowSelectorInput) -> tuple[Indices, PluginState]:
    """Select rows with an advantage, so that the others do not count in averages either."""
    credited = np.abs(inputs.advantage) > options.min_advantage
    return np.flatnonzero(
        np.bincount(inputs.batch.token_row[credited], minlength=inputs.batch.num_rows) > 0
    ), empty_state()


def _drop_to_multiple(rows: Indices, multiple: int, rng: np.random.Generator) -> Indices:
    return np.sort(rng.choice(rows, len(rows) // multiple * multiple, replace=False)) if len(rows) else rows


DP_MULTIPLE = Plugin(
    "dp-multiple",
    PluginKind.SELECTOR,
    "IterResearch (EAPO), arXiv 2511.07327: adaptive downsampling",
    dp_multiple,
    DpMultipleOptions,
    stage="rows",
    uses_rng=True,
)
OVERLONG = Plugin(
    "overlong",
    PluginKind.SELECTOR,
    "SUPO, arXiv 2510.06727: overlong masking",
    overlong,
    OverlongOptions,
    stage="rows",
)
INFORMED = Plugin(
    "informed", PluginKind.SELECTOR, "Offing: rows with an advantage", informed, InformedOptions, stage="rows"
)

"""Rows that are trained, once their advantages are known: what is left out still counted in the statistics."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from offing_trainer.batch import OUTCOMES, Places
from offing_trainer.seam import Options, Plugin, RowsGiven, Seam, State, no_state


class DpMultiple(Options):
    size: Annotated[int, Field(ge=1)] = 1
    """Ranks that rows are dealt out to."""
    per: Literal["step", "group"] = "step"
    """What is cut to a multiple."""


class Overlong(Options):
    outcomes: tuple[Literal["answered", "done", "truncated", "violated"], ...] = ("truncated",)
    """Endings that are not trained."""


class Informed(Options):
    epsilon: Annotated[float, Field(ge=0)] = 0.0
    """An advantage no larger is none."""


def dp_multiple(options: DpMultiple, given: RowsGiven) -> tuple[Places, State]:
    """floor(n / size) size of n rows, dropped uniformly; fewer than `size`: none."""
    rows = np.arange(given.batch.rows)
    if options.per == "step":
        return _cut(rows, options.size, given.rng), no_state()
    group = given.batch.rollout_group[given.batch.row_rollout]
    parts = [_cut(rows[group == nth], options.size, given.rng) for nth in range(given.batch.groups)]
    return np.sort(np.concatenate([rows[:0], *parts])), no_state()


def overlong(options: Overlong, given: RowsGiven) -> tuple[Places, State]:
    """Rollouts that a limit cut off are masked: SUPO's and DAPO's overlong filtering."""
    cut = np.isin(given.batch.outcome, [OUTCOMES[name] for name in options.outcomes])
    return np.flatnonzero(~cut[given.batch.row_rollout]), no_state()


def informed(options: Informed, given: RowsGiven) -> tuple[Places, State]:
    """Rows that have credit, so that the others do not take part in averages either."""
    credited = np.abs(given.advantage) > options.epsilon
    return np.flatnonzero(np.bincount(given.batch.token_row[credited], minlength=given.batch.rows) > 0), no_state()


def _cut(rows: Places, size: int, rng: np.random.Generator) -> Places:
    return np.sort(rng.choice(rows, len(rows) // size * size, replace=False)) if len(rows) else rows


PLUGINS = (
    Plugin(
        "dp-multiple",
        Seam.SELECT,
        "IterResearch (EAPO), arXiv 2511.07327: adaptive downsampling",
        dp_multiple,
        DpMultiple,
        stage="rows",
        draws=True,
    ),
    Plugin("overlong", Seam.SELECT, "SUPO, arXiv 2510.06727: overlong masking", overlong, Overlong, stage="rows"),
    Plugin("informed", Seam.SELECT, "Offing: rows with an advantage", informed, Informed, stage="rows"),
)

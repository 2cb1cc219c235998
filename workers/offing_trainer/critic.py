"""What critics are asked to say, and what it costs them to say otherwise.

The only home of the value loss and of reading critics' columns. Knows no network: values come as arrays, derivatives go
back as arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from offing.core.errors import InvalidInput
from offing_trainer.batch import Bits, Floats
from offing_trainer.seam import Columns


@dataclass(frozen=True, slots=True, eq=False)
class ValueLoss:
    """A sum to be made smaller, and its derivative by each value of each head."""

    value: float
    dvalues: Mapping[str, Floats]
    """By head, (turns,)"""
    figures: Mapping[str, float]
    """Sums a head: `HEAD/asked`, `HEAD/clipped`, `HEAD/squared_error`, and what explained variance is made of."""


def value_loss(
    values: Mapping[str, Floats],
    targets: Mapping[str, Floats],
    before: Columns,
    *,
    per_turn: float,
    clip: float | None = 0.5,
    coefficients: Mapping[str, float] | None = None,
) -> ValueLoss:
    """Half the squared error of each head, weighed `per_turn`; the larger of plain and clipped, as in PPO.

    All arrays have an entry a turn. A target that is NaN is not asked for. `before`: what the critic said when the step
    began; values further from it than `clip` gain nothing by being right. `clip` None: no clipping. `coefficients`: a
    head's own, else 1.
    """
    parts = {head: _head_loss(values[head], target, before.get(head), clip) for head, target in targets.items()}
    scale = {head: per_turn * (coefficients or {}).get(head, 1.0) for head in parts}
    return ValueLoss(
        float(sum(scale[head] * losses.sum() for head, (losses, _, _) in parts.items())),
        {head: scale[head] * slopes for head, (_, slopes, _) in parts.items()},
        {f"{head}/{name}": figure for head, (_, _, found) in parts.items() for name, figure in found.items()},
    )


def _head_loss(
    values: Floats, target: Floats, before: Floats | None, clip: float | None
) -> tuple[Floats, Floats, dict[str, float]]:
    asked = ~np.isnan(target)
    error = np.where(asked, values - np.where(asked, target, 0.0), 0.0)
    losses, slopes, clipped = 0.5 * error**2, error, np.zeros(len(values), np.bool_)
    if clip is not None and before is not None:
        held = before + np.clip(values - before, -clip, clip)
        other = np.where(asked, held - np.where(asked, target, 0.0), 0.0)
        clipped = other**2 > error**2
        losses = np.where(clipped, 0.5 * other**2, losses)
        slopes = np.where(clipped & (np.abs(values - before) > clip), 0.0, slopes)
    return losses, slopes, _figures(error, target[asked], asked, clipped)


def _figures(error: Floats, targets: Floats, asked: Bits, clipped: Bits) -> dict[str, float]:
    return {
        "asked": float(asked.sum()),
        "clipped": float(clipped.sum()),
        "squared_error": float((error**2).sum()),
        "error": float(error.sum()),
        "target": float(targets.sum()),
        "target_squared": float((targets**2).sum()),
    }


def explained_variance(figures: Mapping[str, float], head: str) -> float | None:
    """Share of the targets' variance that the head explains. None: nothing varied, or nothing was asked."""
    count = figures[f"{head}/asked"]
    if not count:
        return None
    spread = figures[f"{head}/target_squared"] - figures[f"{head}/target"] ** 2 / count
    missed = figures[f"{head}/squared_error"] - figures[f"{head}/error"] ** 2 / count
    return None if spread <= 1e-12 * count else 1.0 - missed / spread


def said(name: str, column: Floats, where: Bits) -> Floats:
    """A critic's column where it is read, 0 elsewhere. Raises InvalidInput where it has no value there."""
    missing = int(np.isnan(column[where]).sum())
    if missing:
        raise InvalidInput(name, f"the critic says nothing at {missing} turns", "Value every turn before advantages.")
    return np.where(where, column, 0.0)

"""The value loss of critics, and reading of their columns.

Values come as arrays, and gradients are returned as arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from offing.core.errors import InvalidInput
from offing_trainer.batch import Bits, Floats
from offing_trainer.plugin import Columns


@dataclass(frozen=True, slots=True, eq=False)
class ValueLoss:
    """A value loss to minimize, with its gradient by each value of each head."""

    value: float
    value_grads: Mapping[str, Floats]
    """Gradients by head, (turns,)."""
    metrics: Mapping[str, float]
    """Sums for each head:
    `HEAD/target_count`, `HEAD/clipped`, `HEAD/squared_error`, and the sums for the explained variance.
    """


def compute_value_loss(
    values: Mapping[str, Floats],
    targets: Mapping[str, Floats],
    old_values: Columns,
    *,
    turn_weight: float,
    clip: float | None = 0.5,
    coefficients: Mapping[str, float] | None = None,
) -> ValueLoss:
    """Compute half the squared error of each head, the larger of unclipped and clipped, as in PPO.

    All arrays have one entry per turn. A NaN target is ignored. Each turn has the weight `turn_weight`.
    `old_values` are the values at the start of the step: a value further from them than `clip` has no
    gradient where the clipped loss is larger. A `clip` of `None` means no clipping. `coefficients`
    holds the coefficient of each head; the default is 1.
    """
    parts = {head: _head_loss(values[head], target, old_values.get(head), clip) for head, target in targets.items()}
    scale = {head: turn_weight * (coefficients or {}).get(head, 1.0) for head in parts}
    return ValueLoss(
        float(sum(scale[head] * losses.sum() for head, (losses, _, _) in parts.items())),
        {head: scale[head] * slopes for head, (_, slopes, _) in parts.items()},
        {
            f"{head}/{name}": value
            for head, (_, _, head_metrics) in parts.items()
            for name, value in head_metrics.items()
        },
    )


def _head_loss(
    values: Floats, target: Floats, old_values: Floats | None, clip: float | None
) -> tuple[Floats, Floats, dict[str, float]]:
    has_target = ~np.isnan(target)
    error = np.where(has_target, values - np.where(has_target, target, 0.0), 0.0)
    losses, gradients, clipped = 0.5 * error**2, error, np.zeros(len(values), np.bool_)
    if clip is not None and old_values is not None:
        clipped_values = old_values + np.clip(values - old_values, -clip, clip)
        clipped_error = np.where(has_target, clipped_values - np.where(has_target, target, 0.0), 0.0)
        clipped = clipped_error**2 > error**2
        losses = np.where(clipped, 0.5 * clipped_error**2, losses)
        gradients = np.where(clipped & (np.abs(values - old_values) > clip), 0.0, gradients)
    return losses, gradients, _critic_sums(error, target[has_target], has_target, clipped)


def _critic_sums(error: Floats, targets: Floats, has_target: Bits, clipped: Bits) -> dict[str, float]:
    return {
        "target_count": float(has_target.sum()),
        "clipped": float(clipped.sum()),
        "squared_error": float((error**2).sum()),
        "error": float(error.sum()),
        "target": float(targets.sum()),
        "target_squared": float((targets**2).sum()),
    }


def explained_variance(sums: Mapping[str, float], head: str) -> float | None:
    """Return the fraction of the targets' variance that the head explains.

    `None` means that there are no targets or that they do not vary.
    """
    count = sums[f"{head}/target_count"]
    if not count:
        return None
    spread = sums[f"{head}/target_squared"] - sums[f"{head}/target"] ** 2 / count
    residual = sums[f"{head}/squared_error"] - sums[f"{head}/error"] ** 2 / count
    return None if spread <= 1e-12 * count else 1.0 - residual / spread


def read_value_column(name: str, column: Floats, mask: Bits) -> Floats:
    """Return a critic's column where `mask` is true, and 0 elsewhere.

    Raises InvalidInput if a value is missing where it is read.
    """
    missing = int(np.isnan(column[mask]).sum())
    if missing:
        raise InvalidInput(
            name,
            f"the critic has no value at {missing} turns",
            "Compute the values of all turns before the advantages.",
        )
    return np.where(mask, column, 0.0)

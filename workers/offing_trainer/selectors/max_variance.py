"""D3S, upper level: trains only rollouts at both ends of the advantages, more as training progresses."""

import numpy as np
from pydantic import Field

from offing_trainer.batch import Floats, Indices
from offing_trainer.grouped_statistics import count_by_index, mean_by_index
from offing_trainer.plugin import Plugin, PluginKind, PluginOptions, PluginState, RowSelectorInput, empty_state


class MaxVarianceOptions(PluginOptions):
    fraction: float = Field(default=0.5, gt=0, le=1)
    """Fraction of the step's rollouts at the start of the training."""
    final_fraction: float = Field(default=1.0, gt=0, le=1)
    """Fraction at the end of the training. It changes linearly in between."""


def max_variance(options: MaxVarianceOptions, inputs: RowSelectorInput) -> tuple[Indices, PluginState]:
    """Select all rows of the selected rollouts. Their advantages are not standardized again."""
    batch = inputs.batch
    advantage = mean_by_index(inputs.advantage, batch.token_rollout, batch.num_rollouts)
    trained_rollouts = np.flatnonzero(count_by_index(batch.token_rollout, batch.num_rollouts))
    fraction = (1 - inputs.progress) * options.fraction + inputs.progress * options.final_fraction
    max_rollouts = int(np.ceil(fraction * len(trained_rollouts)))
    names = np.array(batch.run_ids)[trained_rollouts] if len(trained_rollouts) else np.empty(0, np.str_)
    order = trained_rollouts[np.lexsort((names, advantage[trained_rollouts]))]
    is_selected = np.zeros(batch.num_rollouts, np.bool_)
    is_selected[select_max_variance(advantage, order, max_rollouts)] = True
    return np.flatnonzero(is_selected[batch.row_rollout]), empty_state()


def select_max_variance(values: Floats, order: Indices, max_count: int) -> Indices:
    """Return the `max_count` items of `order`, ascending by value, that have maximum variance.

    They are some items from its start and the rest from its end. No other choice of the same size has a
    larger variance. Among equal choices, the one with most items from the end is taken.
    """
    n = len(order)
    if max_count >= n:
        return order
    ascending = values[order]
    total, squares = (np.concatenate(([0.0], np.cumsum(part))) for part in (ascending, ascending**2))
    low: Indices = np.arange(max_count + 1)
    first = n - (max_count - low)
    mean = (total[low] + total[n] - total[first]) / max_count
    spread = (squares[low] + squares[n] - squares[first]) / max_count - mean**2
    best = int(np.argmax(spread > spread.max() - 1e-12))
    return np.concatenate((order[:best], order[n - (max_count - best) :]))


PLUGIN = Plugin(
    "max-variance",
    PluginKind.SELECTOR,
    "D3S: the N_pos largest and N_neg smallest advantages, N relaxed with progress",
    max_variance,
    MaxVarianceOptions,
    stage="rows",
)

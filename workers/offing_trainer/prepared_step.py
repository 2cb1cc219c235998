"""A training step between groups and losses: viewed groups, then prepared arrays.

`training_step` builds these values. The ledger reasons of rollouts are defined here, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from offing.core.training_rows import TrainingRow
from offing_trainer.batch import Floats, Indices, RolloutGroup, TrainingBatch
from offing_trainer.config import LearnerConfig
from offing_trainer.plugin import COLUMNS, Columns, PluginState, Rewards, StepStatisticsInput

USED, ZERO_ADVANTAGE, TRUNCATED, UNSELECTED, ZERO_WEIGHT = (
    "used",
    "zero_advantage",
    "truncated",
    "unselected",
    "zero_weight",
)
NO_TOKENS, INCOMPLETE_GROUP, INFRA_ERROR = "no_tokens", "incomplete_group", "infra_error"
"""Why a rollout was used or not: the reasons in the ledger."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewedGroups:
    """Groups of a step after the view."""

    groups: tuple[RolloutGroup, ...]
    batch: TrainingBatch
    rows: tuple[TrainingRow, ...]
    """Rows of the batch, (N,)."""
    state: PluginState
    ledger_reasons: Mapping[str, str]
    """Ledger reasons by run id, of rollouts that are already excluded."""
    metrics: Mapping[str, float]
    """Metrics of the usable groups, selected or not."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedStep:
    """A step with its advantages."""

    batch: TrainingBatch
    """Only the rows that are trained. A row that is trained twice appears twice."""
    rows: tuple[TrainingRow, ...]
    """Rows of the batch, (N,)."""
    active_rows: Indices
    """Rows that have to be forwarded. The others have no gradient and only count in averages."""
    rewards: Rewards
    advantage: Floats
    """Token advantages, (P,)."""
    value_targets: Mapping[str, Floats]
    """Value targets of critics. See `Advantage.value_targets`."""
    optimizer_steps: tuple[Indices, ...]
    """Rows of each optimizer step, including inactive ones."""
    columns: Columns
    """Known columns of the batch's tokens, turns and rollouts."""
    progress: float
    learner_config: LearnerConfig
    state: PluginState
    """State after the step."""
    ledger_reasons: Mapping[str, str]
    """Ledger reason of each rollout, by run id."""
    metrics: Mapping[str, float]
    token_weights: tuple[Floats, ...] = ()
    """Token weights of each optimizer step. Empty before `compute_token_weights`."""
    step_states: tuple[PluginState, ...] = ()
    """State that the losses of each optimizer step use."""

    @property
    def list_active_rows(self) -> tuple[TrainingRow, ...]:
        """Return the rows for which columns are computed after the selection."""
        return take_rows(self.rows, self.active_rows)

    def step_rows(self, optimizer_step: int) -> tuple[TrainingRow, ...]:
        """Return the rows that an optimizer step forwards."""
        return take_rows(self.rows, active_rows_of_step(self, optimizer_step))


def build_step_input(prepared_step: PreparedStep, rows: Indices, state: PluginState) -> StepStatisticsInput:
    tokens = prepared_step.batch.token_indices(rows)
    columns = {name: column[tokens] if is_per_token(name) else column for name, column in prepared_step.columns.items()}
    return StepStatisticsInput(
        prepared_step.batch.select_rows(rows), prepared_step.advantage[tokens], columns, prepared_step.progress, state
    )


def is_per_token(column: str) -> bool:
    """Return whether a column has one entry per token."""
    return COLUMNS[column].startswith("(P,)")


def take_rows(rows: Sequence[TrainingRow], indices: Indices) -> tuple[TrainingRow, ...]:
    numbers: list[int] = indices.tolist()
    return tuple(rows[n] for n in numbers)


def active_rows_of_step(prepared_step: PreparedStep, optimizer_step: int) -> Indices:
    rows = prepared_step.optimizer_steps[optimizer_step]
    return rows[np.isin(rows, prepared_step.active_rows)]

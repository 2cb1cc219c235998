"""A step of training on its way from groups to losses: the values that its parts hand on.

The only home of what became of a rollout, and of a step's arrays cut to some rows. `update` makes these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from offing.core.rows import TrainRow
from offing_trainer.batch import Batch, Floats, Group, Places
from offing_trainer.config import LearnerConfig
from offing_trainer.seam import COLUMNS, Columns, Rewards, State, SurveyGiven

KEPT, ZERO, CUT, UNSELECTED, RATIO = "kept", "zero_advantage", "truncated", "unselected", "ratio"
NO_TOKENS, SHORT, FAULT = "no_tokens", "short_group", "infra_error"
"""What became of a rollout, as the ledger says it."""


@dataclass(frozen=True, slots=True, eq=False)
class Viewed:
    """What a view shows of a step's groups."""

    groups: tuple[Group, ...]
    batch: Batch
    rows: tuple[TrainRow, ...]
    """(N,) of the batch."""
    state: State
    fates: Mapping[str, str]
    """By run id: the rollouts that are out already."""
    figures: Mapping[str, float]
    """Of the groups that stood, chosen or not."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A step with its credit."""

    batch: Batch
    """With the rows that are trained alone; one that is trained twice is there twice."""
    rows: tuple[TrainRow, ...]
    """(N,) of the batch."""
    live: Places
    """Rows that need to be forwarded at all. The others have no gradient, and count only where averages are taken."""
    rewards: Rewards
    advantage: Floats
    """(P,)"""
    targets: Mapping[str, Floats]
    """Of critics, see `Advantage.targets`."""
    steps: tuple[Places, ...]
    """Rows of each optimiser step, those that are not live too."""
    columns: Columns
    """Of the batch's tokens, turns and rollouts, as far as they are known."""
    progress: float
    learner: LearnerConfig
    state: State
    """As the step leaves it."""
    fates: Mapping[str, str]
    """By run id: what became of each rollout that was given."""
    figures: Mapping[str, float]
    weights: tuple[Floats, ...] = ()
    """Of each optimiser step, a token of its rows. Empty before `measured`."""
    surveyed: tuple[State, ...] = ()
    """State as each step's losses see it."""

    @property
    def live_rows(self) -> tuple[TrainRow, ...]:
        """What late columns are computed for."""
        return rows_at(self.rows, self.live)

    def rows_of(self, step: int) -> tuple[TrainRow, ...]:
        """What an optimiser step forwards."""
        return rows_at(self.rows, live_in(self, step))


def step_given(ready: Prepared, rows: Places, state: State) -> SurveyGiven:
    tokens = ready.batch.tokens_of(rows)
    columns = {name: column[tokens] if a_token(name) else column for name, column in ready.columns.items()}
    return SurveyGiven(ready.batch.only(rows), ready.advantage[tokens], columns, ready.progress, state)


def a_token(column: str) -> bool:
    """Whether a column has an entry a token."""
    return COLUMNS[column].startswith("(P,)")


def rows_at(rows: Sequence[TrainRow], places: Places) -> tuple[TrainRow, ...]:
    numbers: list[int] = places.tolist()
    return tuple(rows[n] for n in numbers)


def live_in(ready: Prepared, step: int) -> Places:
    rows = ready.steps[step]
    return rows[np.isin(rows, ready.live)]

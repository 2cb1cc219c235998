"""What a job needs from a trainer, independent of its pipeline. This module does not import torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from offing.storage.pool import Database
from offing.storage.training_groups import GroupSummary
from offing_trainer.job.group_loader import LoadedGroups

PhaseCallback = Callable[[str], None]
"""Called with the name of the job's current phase."""


@dataclass(frozen=True, slots=True)
class TrainingStepResult:
    """Result of a training step."""

    metrics: Mapping[str, float]
    ledger_reasons: Mapping[UUID, str]
    """Ledger reason of each rollout that was read."""
    state: Mapping[str, Any]


class JobTrainer(Protocol):
    """A learner with its pipeline. All methods except `load_groups` are called from one thread."""

    def load(self, folder: Path | None) -> None:
        """Load a checkpoint. `None` loads the initial policy."""
        ...

    async def load_groups(
        self, database: Database, tenant_id: UUID, summaries: Sequence[GroupSummary], state: Mapping[str, Any]
    ) -> LoadedGroups:
        """Load the groups in the form that the pipeline trains: recorded tokens, or text for SFT."""
        ...

    def train_step(
        self, groups: LoadedGroups, state: Mapping[str, Any], step: int, progress: float, on_phase: PhaseCallback
    ) -> TrainingStepResult:
        """Update the weights from a step's groups. `on_phase` is called with the current phase."""
        ...

    def save(self, folder: Path, moments_of: Path | None = None) -> None:
        """Save a checkpoint. `moments_of` is an earlier one whose optimizer moments it shares; `None` writes them."""
        ...

    def export_policy(self, folder: Path) -> None: ...

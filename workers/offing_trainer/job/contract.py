"""What a job needs of the weights that it trains, whatever chain moves them. Knows no torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead
from offing_trainer.job.reading import Read

Said = Callable[[str], None]
"""Hears of what is done at the moment."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """What came of a step's groups."""

    metrics: Mapping[str, float]
    reasons: Mapping[UUID, str]
    """Of each rollout that was read."""
    state: Mapping[str, Any]


class Trainee(Protocol):
    """Weights with the chain that trains them. All but `read` is called from one and the same thread."""

    def load(self, folder: Path | None) -> None:
        """A checkpoint; None: the policy that it began with."""
        ...

    async def read(
        self, database: Database, tenant: UUID, heads: Sequence[GroupHead], state: Mapping[str, Any]
    ) -> Read:
        """The groups as what its chain trains on: recorded tokens, or text to imitate."""
        ...

    def step(self, read: Read, state: Mapping[str, Any], step: int, progress: float, said: Said) -> Stepped:
        """Move the weights by a step's groups; `said` hears of what is done at the moment."""
        ...

    def save(self, folder: Path) -> None: ...

    def export(self, folder: Path) -> None: ...

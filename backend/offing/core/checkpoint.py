"""Checkpoints of a graph as values: what a rule that decides about them and a store that keeps them hand each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

BEGINS = "begins"
"""In the metadata of a checkpoint: its run has not begun, and will with the state that this one has for it."""


@dataclass(frozen=True, slots=True)
class TaskWrite:
    """One write of a task to a channel, which the next checkpoint takes in."""

    task_id: str
    idx: int
    """Position among the writes of the task. Negative for LangGraph's special channels."""
    task_path: str
    channel: str
    value: Any

    @property
    def key(self) -> tuple[str, int]:
        """What tells it apart from the other writes at its checkpoint."""
        return self.task_id, self.idx

    @property
    def order(self) -> tuple[str, str, int]:
        """LangGraph's order of the writes of one superstep."""
        return self.task_path, self.task_id, self.idx


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint as a store returns it."""

    ns: str
    id: str
    parent: str | None
    """Id of the checkpoint that it follows. `None` means that it is the first."""
    run_id: UUID | None
    """The run that wrote it. `None` where the store has only one run."""
    checkpoint: Mapping[str, Any]
    """LangGraph's checkpoint, with its channel values."""
    metadata: Mapping[str, Any]
    writes: tuple[TaskWrite, ...]
    """Writes that belong to the next checkpoint, in LangGraph's order."""

    @property
    def of_run(self) -> UUID | None:
        """The run that began before it. `None` if that is not known, or none had."""
        return None if BEGINS in self.metadata else self.run_id

    @property
    def superstep(self) -> int:
        return int(self.metadata.get("step", -1))


@dataclass(frozen=True, slots=True)
class UpgradedCheckpoint:
    """A checkpoint as another version of the graph has it. Its id is that of the one that it stands in for."""

    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]
    delta: tuple[str, ...]
    """Channels that are rebuilt from earlier checkpoints."""

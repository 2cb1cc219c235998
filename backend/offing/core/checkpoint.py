"""Checkpoints of a graph as plain values, exchanged between the checkpointer and the checkpoint store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

RUN_START_KEY = "run_start"
"""Key in the metadata of a checkpoint that was written before its run began.

The run will begin with the state that this checkpoint holds for it.
"""


@dataclass(frozen=True, slots=True)
class TaskWrite:
    """One write of a task to a channel. The next checkpoint applies it."""

    task_id: str
    idx: int
    """Position among the writes of the task. Negative for LangGraph's special channels."""
    task_path: str
    channel: str
    value: Any

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the write among all writes at its checkpoint."""
        return self.task_id, self.idx

    @property
    def sort_key(self) -> tuple[str, str, int]:
        """Sort key that gives LangGraph's order of the writes of one superstep."""
        return self.task_path, self.task_id, self.idx


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint as a store returns it."""

    ns: str
    id: str
    parent_id: str | None
    """Id of the checkpoint before this one. `None` means that it is the first."""
    run_id: UUID | None
    """Id of the run that wrote the checkpoint.

    `None` means that the store has only one run, or that the run was deleted.
    """
    checkpoint: Mapping[str, Any]
    """LangGraph's checkpoint with its channel values."""
    metadata: Mapping[str, Any]
    writes: tuple[TaskWrite, ...]
    """Writes that belong to the next checkpoint, in LangGraph's order."""

    @property
    def preceding_run_id(self) -> UUID | None:
        """Id of the run that began before this checkpoint.

        `None` means that no run had begun, or that the run is unknown.
        """
        return None if RUN_START_KEY in self.metadata else self.run_id

    @property
    def superstep(self) -> int:
        return int(self.metadata.get("step", -1))


@dataclass(frozen=True, slots=True)
class UpgradedCheckpoint:
    """A checkpoint converted to another version of the graph.

    It keeps the id of the checkpoint that it replaces.
    """

    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]
    delta_channels: tuple[str, ...]
    """Channels that are rebuilt from earlier checkpoints."""

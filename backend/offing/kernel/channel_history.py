"""What LangGraph rebuilds a DeltaChannel from: its last stored value, and the writes of tasks since."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import DeltaChannelHistory

from offing.core.checkpoint import TaskWrite


class ChannelWalk:
    """Collects what channels are rebuilt from, from the newest ancestor to the oldest."""

    def __init__(self, channels: Sequence[str]) -> None:
        self.open = list(channels)
        """Channels for which no stored value was found yet."""
        self._writes: dict[str, list[list[TaskWrite]]] = {channel: [] for channel in channels}
        self._seeds: dict[str, Any] = {}

    def take(self, checkpoint: Mapping[str, Any], writes: Sequence[TaskWrite]) -> None:
        """Take the values of a checkpoint and what tasks wrote at it."""
        for channel in self.open:
            mine = {write.key: write for write in writes if write.channel == channel}
            self._writes[channel].append(sorted(mine.values(), key=lambda write: write.order))
        values = checkpoint["channel_values"]
        self._seeds |= {channel: values[channel] for channel in self.open if channel in values}
        self.open = [channel for channel in self.open if channel not in values]

    def found(self) -> dict[str, DeltaChannelHistory]:
        return {channel: self._history(channel) for channel in self._writes}

    def _history(self, channel: str) -> DeltaChannelHistory:
        writes = [write for several in reversed(self._writes[channel]) for write in several]
        history: DeltaChannelHistory = {"writes": [(write.task_id, write.channel, write.value) for write in writes]}
        return {**history, "seed": self._seeds[channel]} if channel in self._seeds else history

"""The values from which LangGraph rebuilds a DeltaChannel: its last stored value and later writes."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import DeltaChannelHistory

from offing.core.checkpoint import TaskWrite


class ChannelHistoryCollector:
    """Collects the values from which channels are rebuilt, from the newest ancestor to the oldest."""

    def __init__(self, channels: Sequence[str]) -> None:
        self.open_channels = list(channels)
        """Channels for which no stored value was found yet."""
        self._writes: dict[str, list[list[TaskWrite]]] = {channel: [] for channel in channels}
        self._seeds: dict[str, Any] = {}

    def add_checkpoint(self, checkpoint: Mapping[str, Any], writes: Sequence[TaskWrite]) -> None:
        """Add the values of a checkpoint and the task writes at that checkpoint."""
        for channel in self.open_channels:
            mine = {write.key: write for write in writes if write.channel == channel}
            self._writes[channel].append(sorted(mine.values(), key=lambda write: write.sort_key))
        values = checkpoint["channel_values"]
        self._seeds |= {channel: values[channel] for channel in self.open_channels if channel in values}
        self.open_channels = [channel for channel in self.open_channels if channel not in values]

    def build_histories(self) -> dict[str, DeltaChannelHistory]:
        return {channel: self._build_history(channel) for channel in self._writes}

    def _build_history(self, channel: str) -> DeltaChannelHistory:
        writes = [write for several in reversed(self._writes[channel]) for write in several]
        history: DeltaChannelHistory = {"writes": [(write.task_id, write.channel, write.value) for write in writes]}
        return {**history, "seed": self._seeds[channel]} if channel in self._seeds else history

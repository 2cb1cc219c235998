"""Values that LangGraph keeps for one invocation and does not save, such as model call counters.

For its author, a run is one invocation. For LangGraph, each slice is one. So the value of such a
channel is saved with the checkpoints of the run if it is plain data, and dropped in the next run of
the thread.
"""

from collections.abc import Mapping
from typing import Any, Self, cast

from langgraph.channels.untracked_value import UntrackedValue

RUN_KEY, VALUE_KEY = "offing_run", "value"


class InvocationValue(UntrackedValue[Any]):
    """An `UntrackedValue` of one run.

    Its checkpoint names the run, and another run starts without a value.
    """

    __slots__ = ("run",)

    def __init__(self, typ: Any, guard: bool, run: str) -> None:
        super().__init__(typ, guard)
        self.run = run

    def copy(self) -> Self:
        twin = self.from_checkpoint(None)
        twin.value = self.value
        return twin

    def checkpoint(self) -> Any:
        if self.is_available() and _is_json(self.value):
            return {RUN_KEY: self.run, VALUE_KEY: self.value}
        return super().checkpoint()

    def from_checkpoint(self, checkpoint: Any) -> Self:
        copied = self.__class__(self.typ, self.guard, self.run)
        copied.key = self.key
        if isinstance(checkpoint, Mapping) and checkpoint.get(RUN_KEY) == self.run:  # pyright: ignore[reportUnknownMemberType]
            copied.value = cast(Mapping[str, Any], checkpoint)[VALUE_KEY]
        return copied


def is_invocation_value(value: object) -> bool:
    """Return whether a channel value of a checkpoint was saved for one run."""
    return isinstance(value, Mapping) and set(cast(Mapping[str, Any], value)) == {RUN_KEY, VALUE_KEY}


def build_run_channels(channels: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return the channels of a graph, bound to a run."""
    return {name: _bind_to_run(channel, name, run) for name, channel in channels.items()}


def _bind_to_run(channel: Any, name: str, run: str) -> Any:
    if not isinstance(channel, UntrackedValue):
        return channel
    bound = InvocationValue(channel.typ, channel.guard, run)  # pyright: ignore[reportUnknownMemberType]
    bound.key = name
    return bound


def _is_json(value: object) -> bool:
    """Return whether a value is JSON. Other values, such as a shell session, exist in this process only."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _is_json(v) for k, v in cast(Mapping[object, object], value).items())
    if isinstance(value, list):
        return all(map(_is_json, cast(list[object], value)))
    return value is None or isinstance(value, bool | int | float | str)

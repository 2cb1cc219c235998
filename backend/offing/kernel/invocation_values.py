"""Values that LangGraph keeps for one invocation and does not save, such as the counters of a limit on model calls.

A run is one invocation for its author, and several for LangGraph: each slice is one. So what such a channel holds is
saved with the run's checkpoints where it is plain data, and is gone with the next run of the thread.
"""

from collections.abc import Mapping
from typing import Any, Self, cast

from langgraph.channels.untracked_value import UntrackedValue

RUN, VALUE = "offing_run", "value"


class InvocationValue(UntrackedValue[Any]):
    """`UntrackedValue` for one run: its checkpoint names the run, and another run begins without a value."""

    __slots__ = ("run",)

    def __init__(self, typ: Any, guard: bool, run: str) -> None:
        super().__init__(typ, guard)
        self.run = run

    def copy(self) -> Self:
        twin = self.from_checkpoint(None)
        twin.value = self.value
        return twin

    def checkpoint(self) -> Any:
        if self.is_available() and _is_plain(self.value):
            return {RUN: self.run, VALUE: self.value}
        return super().checkpoint()

    def from_checkpoint(self, checkpoint: Any) -> Self:
        found = self.__class__(self.typ, self.guard, self.run)
        found.key = self.key
        if isinstance(checkpoint, Mapping) and checkpoint.get(RUN) == self.run:  # pyright: ignore[reportUnknownMemberType]
            found.value = cast(Mapping[str, Any], checkpoint)[VALUE]
        return found


def is_invocation_value(saved: object) -> bool:
    """Whether a channel value of a checkpoint was saved for one run."""
    return isinstance(saved, Mapping) and set(cast(Mapping[str, Any], saved)) == {RUN, VALUE}


def channels_for(channels: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return a graph's channels as a run has them."""
    return {name: _for_run(channel, name, run) for name, channel in channels.items()}


def _for_run(channel: Any, name: str, run: str) -> Any:
    if not isinstance(channel, UntrackedValue):
        return channel
    kept = InvocationValue(channel.typ, channel.guard, run)  # pyright: ignore[reportUnknownMemberType]
    kept.key = name
    return kept


def _is_plain(value: object) -> bool:
    """Whether it is JSON. Anything else lives in this process alone, as a session of a shell does."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _is_plain(v) for k, v in cast(Mapping[object, object], value).items())
    if isinstance(value, list):
        return all(map(_is_plain, cast(list[object], value)))
    return value is None or isinstance(value, bool | int | float | str)

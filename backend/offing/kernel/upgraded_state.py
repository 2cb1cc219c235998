"""The last checkpoint of a run, with its state as another version of its graph has it.

Where the run stands stays: its checkpoint keeps its id, its superstep and the channels that say what comes next. From
those LangGraph makes the ids of tasks, interrupts and called subgraphs, and the journal the keys of calls.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from offing.core.checkpoint import StoredCheckpoint, UpgradedCheckpoint
from offing.kernel.checkpointer import COUNTERS
from offing.kernel.invocation_values import is_invocation_value

CONTROL = ("branch:", "join:", "__")
"""How names of channels begin that say where a graph stands. All others are its state."""


def is_state(channel: str) -> bool:
    return not channel.startswith(CONTROL)


def _is_upgraded(channel: str, value: object) -> bool:
    """Counters of one run, such as those of a limit on model calls, are LangGraph's own and stay as they are."""
    return is_state(channel) and not is_invocation_value(value)


def rebuilt_channels(stored: StoredCheckpoint) -> list[str]:
    """Channels whose values LangGraph rebuilds from what tasks wrote at earlier checkpoints."""
    known, counted = stored.checkpoint, _counted(stored)
    return [name for name in counted if name in known["channel_versions"] and name not in known["channel_values"]]


def _counted(stored: StoredCheckpoint) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], stored.metadata.get(COUNTERS) or {})


def rebuilt(channel: DeltaChannel[Any], history: DeltaChannelHistory) -> Any:
    """The value of a channel, rebuilt as LangGraph does."""
    made: DeltaChannel[Any] = channel.from_checkpoint(history.get("seed", channel.value))
    made.replay_writes(history["writes"])
    return made.get()


def state_of(stored: StoredCheckpoint, rebuilt_values: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a run by its keys. `rebuilt_values`: of the channels that are not in the checkpoint itself."""
    values = {**stored.checkpoint["channel_values"], **rebuilt_values}
    plain = {name: value.value if isinstance(value, DeltaSnapshot) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if _is_upgraded(name, value)}


def upgraded_checkpoint(
    stored: StoredCheckpoint,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    serde: SerializerProtocol,
    next_version: Callable[[Any, None], Any],
) -> UpgradedCheckpoint:
    """Put the state `after` into the checkpoint whose state is `before`."""
    changed = [name for name in after if name not in before or not _is_same(serde, before[name], after[name])]
    removed = [name for name in before if name not in after]
    still_rebuilt = {name for name in rebuilt_channels(stored) if name in after and name not in changed}
    found: Mapping[str, Any] = stored.checkpoint["channel_values"]
    values = {name: value for name, value in found.items() if not _is_upgraded(name, value)}
    values |= {name: value for name, value in after.items() if name not in still_rebuilt}
    versions = _versions(stored.checkpoint, changed, removed, next_version)
    checkpoint = {**stored.checkpoint, **versions, "channel_values": values}
    counted = {name: count for name, count in _counted(stored).items() if name in still_rebuilt}
    metadata = {name: value for name, value in stored.metadata.items() if name != COUNTERS}
    return UpgradedCheckpoint(checkpoint, metadata | ({COUNTERS: counted} if counted else {}), tuple(still_rebuilt))


def _versions(
    checkpoint: Mapping[str, Any],
    changed: Sequence[str],
    removed: Sequence[str],
    next_version: Callable[[Any, None], Any],
) -> dict[str, Any]:
    """A new version for each changed channel, which whoever had seen the one before has seen, too.

    A channel that is not set has no version, or LangGraph would rebuild its value from earlier checkpoints.
    """
    old: Mapping[str, Any] = checkpoint["channel_versions"]
    new = dict.fromkeys(changed, next_version(max(old.values(), default=None), None))
    seen = {
        node: {name: new[name] if name in new and old.get(name) == version else version for name, version in of.items()}
        for node, of in checkpoint["versions_seen"].items()
    }
    kept = {name: version for name, version in old.items() if name not in removed}
    return {"channel_versions": kept | new, "versions_seen": seen}


def _is_same(serde: SerializerProtocol, one: Any, other: Any) -> bool:
    return serde.dumps_typed(one) == serde.dumps_typed(other)

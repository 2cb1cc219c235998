"""The last checkpoint of a run with its state upgraded to another version of its graph.

The position of the run stays the same: the checkpoint keeps its id, its superstep and the channels
that determine the next nodes. From these, LangGraph derives the ids of tasks, interrupts and
subgraphs, and the journal derives the call keys.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot  # pyright: ignore[reportPrivateUsage]

from offing.core.checkpoint import StoredCheckpoint, UpgradedCheckpoint
from offing.kernel.checkpointer import DELTA_COUNTERS_KEY
from offing.kernel.invocation_values import is_invocation_value

CONTROL_PREFIXES = ("branch:", "join:", "__")
"""Name prefixes of the channels that define the position of a graph. All other channels are its state."""


def is_state_channel(channel: str) -> bool:
    return not channel.startswith(CONTROL_PREFIXES)


def _is_upgradable(channel: str, value: object) -> bool:
    """Return whether an upgrade applies to a channel.

    Counters of one run, such as model call limits, belong to LangGraph and stay unchanged.
    """
    return is_state_channel(channel) and not is_invocation_value(value)


def list_rebuilt_channels(stored: StoredCheckpoint) -> list[str]:
    """Return the channels that LangGraph rebuilds from task writes at earlier checkpoints."""
    checkpoint, counted = stored.checkpoint, _get_delta_counters(stored)
    return [
        name for name in counted if name in checkpoint["channel_versions"] and name not in checkpoint["channel_values"]
    ]


def _get_delta_counters(stored: StoredCheckpoint) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], stored.metadata.get(DELTA_COUNTERS_KEY) or {})


def rebuild_channel(channel: DeltaChannel[Any], history: DeltaChannelHistory) -> Any:
    """Rebuild the value of a channel in the same way as LangGraph."""
    rebuilt: DeltaChannel[Any] = channel.from_checkpoint(history.get("seed", channel.value))
    rebuilt.replay_writes(history["writes"])
    return rebuilt.get()


def extract_state(stored: StoredCheckpoint, rebuilt_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a run by its keys.

    `rebuilt_values` are the values of channels that are not in the checkpoint itself.
    """
    values = {**stored.checkpoint["channel_values"], **rebuilt_values}
    plain = {name: value.value if isinstance(value, DeltaSnapshot) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if _is_upgradable(name, value)}


def upgrade_checkpoint(
    stored: StoredCheckpoint,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    serde: SerializerProtocol,
    next_version: Callable[[Any, None], Any],
) -> UpgradedCheckpoint:
    """Replace the state `before` of a checkpoint by the state `after`."""
    changed = [name for name in after if name not in before or not _is_same(serde, before[name], after[name])]
    removed = [name for name in before if name not in after]
    still_rebuilt = {name for name in list_rebuilt_channels(stored) if name in after and name not in changed}
    stored_values: Mapping[str, Any] = stored.checkpoint["channel_values"]
    values = {name: value for name, value in stored_values.items() if not _is_upgradable(name, value)}
    values |= {name: value for name, value in after.items() if name not in still_rebuilt}
    versions = _build_versions(stored.checkpoint, changed, removed, next_version)
    checkpoint = {**stored.checkpoint, **versions, "channel_values": values}
    counted = {name: count for name, count in _get_delta_counters(stored).items() if name in still_rebuilt}
    metadata = {name: value for name, value in stored.metadata.items() if name != DELTA_COUNTERS_KEY}
    return UpgradedCheckpoint(
        checkpoint, metadata | ({DELTA_COUNTERS_KEY: counted} if counted else {}), tuple(still_rebuilt)
    )


def _build_versions(
    checkpoint: Mapping[str, Any],
    changed: Sequence[str],
    removed: Sequence[str],
    next_version: Callable[[Any, None], Any],
) -> dict[str, Any]:
    """Build a new version for each changed channel.

    Nodes that had seen the old version have seen the new one.

    An unset channel has no version. Otherwise LangGraph would rebuild its value from earlier
    checkpoints.
    """
    old: Mapping[str, Any] = checkpoint["channel_versions"]
    new = dict.fromkeys(changed, next_version(max(old.values(), default=None), None))
    seen_versions = {
        node: {name: new[name] if name in new and old.get(name) == version else version for name, version in of.items()}
        for node, of in checkpoint["versions_seen"].items()
    }
    versions = {name: version for name, version in old.items() if name not in removed}
    return {"channel_versions": versions | new, "versions_seen": seen_versions}


def _is_same(serde: SerializerProtocol, one: Any, other: Any) -> bool:
    return serde.dumps_typed(one) == serde.dumps_typed(other)

"""Events of a thread's stream as the thread-centric protocol shows them, and which of them a client wants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from offing.bus.stream_messages import KeptEvent
from offing.kernel.thread_events import CUSTOM, ENDS, INPUT_REQUESTED, LIFECYCLE, MESSAGES, SHARED_MODES, THREAD_EVENT

CHANNELS = frozenset({"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"})

COURSE = frozenset({"lifecycle", "input"})
"""The channels of a client that follows only the course of the runs."""

SEQ_STEP = 1024
"""Numbers of events in a millisecond, so that the number of an event fits into JavaScript's integers until 2248."""

INTERRUPT_KEY = "__interrupt__"


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The events that a client subscribed to."""

    channels: frozenset[str]
    """`custom:NAME` means the events of one name, `custom` those of all."""
    namespaces: tuple[tuple[str, ...], ...] | None = None
    """Prefixes of namespaces. `None` means all."""
    depth: int | None = None
    """Maximum number of levels below a prefix. `None` means all."""

    def accepts(self, event: Mapping[str, Any]) -> bool:
        return self._has_channel(_find_channel(event)) and self._has_namespace(event["params"]["namespace"])

    def _has_channel(self, channel: str) -> bool:
        return channel in self.channels or (channel.startswith(CUSTOM) and "custom" in self.channels)

    def _has_namespace(self, namespace: Sequence[str]) -> bool:
        if not self.namespaces:
            return True
        return any(
            _begins_with(namespace, prefix) and (self.depth is None or len(namespace) - len(prefix) <= self.depth)
            for prefix in self.namespaces
        )


def _find_channel(event: Mapping[str, Any]) -> str:
    if event["method"] == "input.requested":
        return "input"
    if event["method"] == "custom" and (name := event["params"]["data"].get("name")):
        return f"{CUSTOM}{name}"
    return event["method"]


def _begins_with(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    """Return whether a namespace begins with a prefix, whose parts may lack the id after the colon."""
    return len(prefix) <= len(namespace) and all(
        part == name or (":" not in name and part.partition(":")[0] == name)
        for part, name in zip(namespace, prefix, strict=False)
    )


def is_end(event: Mapping[str, Any]) -> bool:
    """Return whether an event tells that a run ended."""
    params = event["params"]
    return event["method"] == "lifecycle" and not params["namespace"] and params["data"].get("event") in ENDS


def find_seq(id: str) -> int:
    """Return the number of an event by its place in the stream. Later events have higher ones."""
    milliseconds, _, place = id.partition("-")
    return int(milliseconds) * SEQ_STEP + min(int(place or 0), SEQ_STEP - 1)


def find_id(seq: int) -> str:
    """Return the place in the stream of an event by its number."""
    return f"{seq // SEQ_STEP}-{seq % SEQ_STEP}"


def render_entry(entry: KeptEvent) -> Iterator[dict[str, Any]]:
    """Return the protocol's events of one event of a stream."""
    name, *namespace = entry.event.event.split("|")
    for place, (method, data, more) in enumerate(_convert(name, entry.event.data)):
        params = {"namespace": namespace, "timestamp": int(entry.id.partition("-")[0]), **more, "data": data}
        event_id = f"{entry.id}.{place}" if place else entry.id
        yield {"type": "event", "event_id": event_id, "seq": find_seq(entry.id), "method": method, "params": params}


def _convert(name: str, data: bytes) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Return methods, data and further parameters. Nothing for what only the older protocol shows."""
    if name == MESSAGES:
        wrapped = orjson.loads(data)
        yield "messages", wrapped["data"], {} if wrapped["node"] is None else {"node": wrapped["node"]}
    elif name in (LIFECYCLE, INPUT_REQUESTED):
        yield name.removeprefix(THREAD_EVENT), orjson.loads(data), {}
    elif name.startswith(f"{THREAD_EVENT}{CUSTOM}"):
        yield "custom", _name_custom(orjson.loads(data), name.removeprefix(f"{THREAD_EVENT}{CUSTOM}")), {}
    elif name in SHARED_MODES:
        for converted in _convert_shared(name, orjson.loads(data)):
            yield name, converted, {}


def _convert_shared(mode: str, data: Any) -> Iterator[Any]:
    match mode:
        case "values":
            yield _without_interrupts(data)
        case "updates":
            for node, values in cast(dict[str, Any], _without_interrupts(data)).items():
                yield {"node": node, "values": values}
        case "checkpoints":
            yield _describe_checkpoint(data)
        case "custom":
            name = cast(Mapping[str, Any], data).get("name") if isinstance(data, Mapping) else None
            yield _name_custom(data, name if isinstance(name, str) else None)
        case _:
            yield data


def _without_interrupts(values: Any) -> Any:
    if not isinstance(values, dict) or INTERRUPT_KEY not in values:
        return values  # pyright: ignore[reportUnknownVariableType]
    return {key: value for key, value in cast(dict[str, Any], values).items() if key != INTERRUPT_KEY}


def _name_custom(data: Any, name: str | None) -> dict[str, Any]:
    """Return what a graph wrote, with its name. The keys of an object are also there directly, as clients read them."""
    keys = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    return {**keys, **({} if name is None else {"name": name}), "payload": data}


def _describe_checkpoint(data: Mapping[str, Any]) -> dict[str, Any]:
    metadata: Mapping[str, Any] = data.get("metadata") or {}
    described: dict[str, Any] = {
        "id": _read_configurable(data.get("config")).get("checkpoint_id"),
        "parent_id": _read_configurable(data.get("parent_config")).get("checkpoint_id"),
        "step": metadata.get("step"),
        "source": metadata.get("source"),
    }
    return {name: value for name, value in described.items() if value is not None}


def _read_configurable(config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (config or {}).get("configurable") or {}

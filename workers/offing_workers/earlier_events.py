"""What earlier claims of a run streamed beyond the checkpoint from which the latest claim continues.

A claim executes the supersteps after its checkpoint again. Events that come out the same are not sent again. What
models wrote in these supersteps is withdrawn: it is deleted from the stream, and clients that have it are told to drop
it.
"""

import re
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from langchain_core.messages import RemoveMessage

from offing.bus.run_streams import KeptEvent
from offing.kernel.thread_events import LIFECYCLE, MESSAGES

TASK_ID_PATTERN = re.compile(r":[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""The id of a task in a namespace. It may differ when the task runs again."""

VOLATILE_KEYS = frozenset({"timestamp", "run_attempt", "__metadata__"})
"""Keys of events that differ when the same comes again."""

POSITION_MODES = frozenset({"values", "checkpoints", "tasks", "debug"})
"""Modes whose events LangGraph repeats when it continues from a checkpoint."""

WRITTEN_MODES = ("messages", MESSAGES, "events")
"""What models write while they write it."""

WITHDRAWN = "withdrawn"
"""The finish reason of a message that is withdrawn."""


@dataclass(slots=True)
class EarlierEvents:
    """The events of earlier claims that a claim may send again. A first claim has none."""

    position: int
    """The superstep of the checkpoint from which the claim continues, or less if it begins anew."""
    unmatched: dict[bytes, deque[KeptEvent]] = field(
        default_factory=lambda: defaultdict[bytes, deque[KeptEvent]](deque)
    )
    """By what they tell, oldest first."""
    written: list[KeptEvent] = field(default_factory=list[KeptEvent])
    """What models wrote after the checkpoint, oldest first."""
    recorded: bytes = b""
    """JSON of events whose messages are not withdrawn."""
    last_values: KeptEvent | None = None
    """The last state of a superstep that is not executed again. `None` means none, or that it was compared."""
    has_start: bool = False
    """Whether clients were told that the run began."""
    _step: int = -1
    """The superstep before which all have ended."""

    def take(self, name: str, data: bytes) -> bool:
        """Return whether clients have this event already. Each event is taken once."""
        if name == LIFECYCLE:  # clients drop what models wrote when a run begins
            return self.has_start and not self.written and b'"running"' in data
        if name == "values" and self.last_values is not None:
            last, self.last_values = self.last_values.event, None  # LangGraph begins with the checkpoint's state
            if last.step == self.position or _identify(name, last.data) == _identify(name, data):
                return True
        if not self.unmatched or _is_written(name):
            return False
        entries = self.unmatched.get(_identify(name, data))
        return bool(entries and entries.popleft())

    def end_supersteps(self, step: int) -> list[str]:
        """Forget the events of the supersteps before this one. Return the ids of those that did not come again.

        Events of subgraphs are not among these: a subgraph continues from its own checkpoint.
        """
        if step <= self._step:
            return []
        self._step = step
        ended = [entry for entries in self.unmatched.values() for entry in entries if entry.event.step < step]
        if ended:
            for entries in self.unmatched.values():
                while entries and entries[0].event.step < step:
                    entries.popleft()
            self.unmatched = {identity: entries for identity, entries in self.unmatched.items() if entries}
        return [one.id for one in ended if one.event.step > self.position and "|" not in one.event.event]

    def list_withdrawn_ids(self) -> list[str]:
        """Return the ids of the events whose messages are withdrawn."""
        return [entry.id for entry in self._list_withdrawn()]

    def describe_withdrawals(self) -> Iterator[tuple[str, Any]]:
        """Return the events that make clients drop what models wrote."""
        open_messages = dict[tuple[str, str], tuple[str, Any]]()
        for entry in self._list_withdrawn():
            name, data = entry.event.event, orjson.loads(entry.event.data)
            for id in _list_message_ids(entry):
                if name.startswith(MESSAGES):
                    _follow_message(open_messages, name, id, data)
                elif name.startswith("messages/"):
                    event_name = f"messages/partial{name.removeprefix(name.partition('|')[0])}"
                    open_messages[(event_name, id)] = event_name, [RemoveMessage(id)]
                else:
                    open_messages[(name, id)] = name, [RemoveMessage(id), data[1]]
        yield from open_messages.values()

    def _list_withdrawn(self) -> list[KeptEvent]:
        """Return what models wrote, without the messages that are recorded."""
        ids_by_entry = [(entry, _list_message_ids(entry)) for entry in self.written]
        ids = {id for _, own in ids_by_entry for id in own}
        recorded = {id for id in ids if f'"{id}"'.encode() in self.recorded}
        return [entry for entry, own in ids_by_entry if recorded.isdisjoint(own)]


async def collect_earlier_events(
    newest_first: AsyncIterator[KeptEvent], position: int, *, was_lost: bool
) -> EarlierEvents:
    """Collect the events of earlier claims beyond a checkpoint.

    If the last claim was not lost, the results of tasks that ended after the checkpoint are stored, and their messages
    are not withdrawn.
    """
    entries, has_values = deque[KeptEvent](), False
    async for entry in newest_first:
        entries.appendleft(entry)
        has_values = has_values or (entry.event.event == "values" and entry.event.step <= position)
        if has_values and entry.event.step < position:
            return _sort_out(entries, position, was_lost=was_lost, has_start=True)
    return _sort_out(entries, position, was_lost=was_lost, has_start=any(e.event.event == LIFECYCLE for e in entries))


def _sort_out(entries: Iterable[KeptEvent], position: int, *, was_lost: bool, has_start: bool) -> EarlierEvents:
    sorted_out, results = EarlierEvents(position, has_start=has_start), list[bytes]()
    for entry in entries:
        name, step = entry.event.event, entry.event.step
        mode, is_beyond = name.partition("|")[0], step > position
        if name == "values" and not is_beyond:
            sorted_out.last_values, sorted_out.recorded = entry, entry.event.data
        if _is_written(name):
            sorted_out.written += [entry] if is_beyond else []
        elif name == LIFECYCLE or (name == "values" and step == position):
            continue
        elif is_beyond or (step == position and mode in POSITION_MODES and "|" not in name):
            sorted_out.unmatched[_identify(name, entry.event.data)].append(entry)
            results += [entry.event.data] if mode in ("tasks", "updates") else []
    if not was_lost:
        sorted_out.recorded += b"".join(results)
    return sorted_out


def _is_written(name: str) -> bool:
    return name.startswith(WRITTEN_MODES)


def _list_message_ids(entry: KeptEvent) -> list[str]:
    name, data = entry.event.event, orjson.loads(entry.event.data)
    if name.startswith(MESSAGES):
        ids = [data["data"].get("message_id")]
    elif name.startswith("messages/metadata"):
        ids = list(data)
    else:
        messages = cast(list[Any], data) if isinstance(data, list) else []
        ids = [cast(dict[str, Any], one).get("id") for one in messages if isinstance(one, dict)]
    return [str(id) for id in ids if id]


def _follow_message(events: dict[tuple[str, str], tuple[str, Any]], name: str, id: str, data: Any) -> None:
    """Note the end of a message that has begun. One that has ended needs none."""
    fields = cast(dict[str, Any], data["data"])
    if fields.get("event") == "message-start":
        end = {"event": "message-finish", "message_id": id, "run_id": fields.get("run_id")}
        reason = {"reason": WITHDRAWN, "metadata": {"finish_reason": WITHDRAWN}}
        events[(name, id)] = name, {"node": data["node"], "data": end | reason}
    elif fields.get("event") in ("message-finish", "error"):
        events.pop((name, id), None)


def _identify(name: str, data: bytes) -> bytes:
    """Return what an event tells, in a form that is the same when it comes again."""
    value = orjson.loads(data)
    content = _find_checkpoint_id(value) or orjson.dumps(_without_volatile(value), option=orjson.OPT_SORT_KEYS)
    return TASK_ID_PATTERN.sub("", name).encode() + b"\0" + content


def _find_checkpoint_id(value: Any) -> bytes:
    """Return the id of the checkpoint that an event describes. Empty means that it describes none.

    The description differs when the checkpoint is read again.
    """
    fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    described = fields.get("payload") if fields.get("type") == "checkpoint" else fields
    config = cast(dict[str, Any], described).get("config") if isinstance(described, dict) else None
    configurable = cast(dict[str, Any], config).get("configurable") if isinstance(config, dict) else None
    id = cast(dict[str, Any], configurable).get("checkpoint_id") if isinstance(configurable, dict) else None
    return str(id or "").encode()


def _without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {key: _without_volatile(one) for key, one in fields.items() if key not in VOLATILE_KEYS}
    return [_without_volatile(one) for one in cast(list[Any], value)] if isinstance(value, list) else value

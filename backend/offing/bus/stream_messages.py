"""Events in the stream of a thread, and the messages that bring new ones to readers.

A message says after which event its events stand, so that a reader that has that event needs not read the stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

FIRST_ID = "0"
"""The id before the first event of every stream."""

MAX_MESSAGE_BYTES = 8192
"""Bytes of events up to which a message contains them. A reader that lags keeps up to 256 messages."""

RUN_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event of a run as its clients get it."""

    event: str
    """Its name: a stream mode, with the namespace of a subgraph after a vertical bar."""
    data: bytes
    """JSON."""
    step: int = 0
    """The superstep of the run's own graph that had begun last."""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event in a stream."""

    id: str
    """Its place in the stream: milliseconds and a number."""
    event: StreamEvent
    run_id: UUID
    claim: int = 0
    """The number of the claim that sent it. 0 means that it came from no claim."""


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """Events that were appended together."""

    previous_id: str
    """The event before them. Empty means that it is unknown."""
    events: Sequence[KeptEvent]
    """Empty means that they are too large for a message."""

    def follows(self, last_id: str) -> bool:
        """Return whether the stream has no other event between `last_id` and the end of this message."""
        is_known = bool(self.previous_id and self.events)
        return is_known and parse_position(self.previous_id) <= parse_position(last_id)


def parse_position(id: str) -> tuple[int, int]:
    """Return the id of an event as numbers, in the order of the stream."""
    milliseconds, _, number = id.partition("-")
    return int(milliseconds), int(number or 0)


def parse_message(data: bytes) -> StreamMessage:
    """Parse what the script `APPEND` publishes: a line of JSON, the id of the run, and the data of the events.

    Raises ValueError, KeyError or TypeError for anything else.
    """
    head, _, body = data.partition(b"\n")
    document: Any = orjson.loads(head)
    previous, claim, events = document["previous"], document["claim"], document["events"]
    if not isinstance(previous, str) or type(claim) is not int:
        raise TypeError("a message of a stream needs a previous event and a claim")
    if previous:
        parse_position(previous)
    start, entries = RUN_ID_BYTES, list[KeptEvent]()
    for id, name, step, size in events:
        parse_position(id)
        event = StreamEvent(name, body[start : start + size], step)
        entries.append(KeptEvent(id, event, UUID(bytes=body[:RUN_ID_BYTES]), claim))
        start += size
    if entries and start != len(body):
        raise ValueError("a message of a stream has another length than it says")
    return StreamMessage(previous, entries)

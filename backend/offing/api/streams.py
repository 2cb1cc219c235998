"""Encode feeds as server-sent events, parse the cursors to resume from, and drop clients that read too slowly."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, ExitStack, aclosing
from functools import lru_cache
from uuid import UUID

import orjson
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from offing.api import serializers
from offing.api.feed import (
    DraftFeedEvent,
    EndFeedEvent,
    FeedEvent,
    KeepAlive,
    LiveFeedEvent,
    RunEventFeed,
    RunFeedEvent,
    StepFeedEvent,
)
from offing.api.serialized_once import SerializedOnce
from offing.core.answer_draft import DraftChange, DraftPart
from offing.core.errors import InvalidInput, OffingError, Unauthorized
from offing.services.run_summaries import LiveStatus

log = logging.getLogger(__name__)

SEND_TIMEOUT_SECONDS = 20.0
"""A client that reads nothing for this long is disconnected. It can reconnect with its last event id."""

MAX_RUNS_PER_STREAM = 50

MAX_SEQ = 2**62

_texts = SerializedOnce(max_bytes=8 << 20)
"""Steps and states that several followers get."""

MAX_SHARED_DRAFTS = 32
"""Number of draft events whose texts are kept for other followers. One may have the whole text of an answer."""

StreamCursor = dict[UUID, int] | None
"""The last step sent of each of several runs. `None` means a stream of one run, whose events do not name it."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """A response that sends a feed. Events of one run are bare; events of several runs name their run."""

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[FeedEvent], first: FeedEvent, stream_slot: ExitStack, cursor: StreamCursor = None
    ) -> None:
        """Send `first`, then `events`. `first` was read before, so that an error can still become an error response.

        `stream_slot` is closed when the stream ends.
        """
        self._chunks, self._stream_slot = _encode_events(events, first, cursor), stream_slot
        super().__init__(self._chunks, headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stream_slot:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                await _send_chunk(send, chunk)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_chunk(send: Send, chunk: bytes) -> None:
    try:
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except TimeoutError as error:
        log.info("event stream closed, because its client does not read")
        raise ClientDisconnect from error


async def open_event_stream(
    feed: RunEventFeed, stream_slot: AbstractContextManager[None], cursor: StreamCursor = None
) -> EventStream:
    """Return the response for a feed that holds `stream_slot` until it ends.

    Raises the errors of the slot and of the first event.
    """
    with ExitStack() as until_opened:
        until_opened.enter_context(stream_slot)
        events = feed.events()
        first = await anext(events)
        return EventStream(events, first, until_opened.pop_all(), cursor)


async def _encode_events(
    events: AsyncGenerator[FeedEvent], first: FeedEvent, cursor: StreamCursor
) -> AsyncGenerator[bytes]:
    burst: list[bytes] = []
    async with aclosing(events):
        yield encode_event(first, cursor)
        try:
            async for event in events:
                burst.append(encode_event(event, cursor))
                if not (isinstance(event, StepFeedEvent) and event.is_followed):
                    yield b"".join(burst)
                    burst.clear()
        except Unauthorized:
            return  # the key or session has ended in the meantime; the next request gets the error
        except OffingError as error:
            log.warning("event stream ended early; its client can reconnect with its last id: %s", error)


def encode_event(event: FeedEvent, cursor: StreamCursor) -> bytes:
    """Return an event as bytes of a server-sent event, and update `cursor` with each step."""
    several = cursor is not None
    match event:
        case StepFeedEvent(run, step):
            if cursor is not None:
                cursor[run] = step.seq
            id = str(step.seq) if cursor is None else render_cursor(cursor)
            data = _texts.get(step, lambda: _dump_json(serializers.serialize_step(run, step)))
            return b"id: %s\nevent: step\ndata: %s\n\n" % (id.encode(), data)
        case RunFeedEvent(run, detail):
            data = _texts.get(detail, lambda: _dump_json(serializers.serialize_run_detail(detail)))
            named = b'{"run_id":"%s",%s' % (str(run).encode(), data[1:])
            return b"event: run\ndata: %s\n\n" % (named if several else data)
        case LiveFeedEvent(run, live):
            data = _dump_live_status(live)
            named = b'{"run_id":"%s","live":%s}' % (str(run).encode(), data)
            return b"event: live\ndata: %s\n\n" % (named if several else data)
        case DraftFeedEvent(run, change):
            return _encode_draft(run, change)
        case EndFeedEvent(run):
            return b'event: end\ndata: {"run_id":"%s"}\n\n' % str(run).encode()
        case KeepAlive():
            return b": still here\n\n"


@lru_cache(maxsize=256)
def _dump_live_status(live: LiveStatus | None) -> bytes:
    out = serializers.serialize_live_status(live)
    return b"null" if out is None else _dump_json(out)


@lru_cache(maxsize=MAX_SHARED_DRAFTS)
def _encode_draft(run_id: UUID, change: DraftChange) -> bytes:
    if isinstance(change, DraftPart):
        return b"event: draft\ndata: %s\n\n" % _dump_json(serializers.serialize_draft(run_id, change))
    return b"event: draft_end\ndata: %s\n\n" % orjson.dumps({"run_id": str(run_id), "call_id": change.call_id})


def _dump_json(model: BaseModel) -> bytes:
    return model.model_dump_json().encode()


def render_cursor(cursor: Mapping[UUID, int]) -> str:
    return ",".join(f"{run}:{seq}" for run, seq in cursor.items())


def parse_cursor(cursor: str, field: str = "cursor") -> dict[UUID, int]:
    """Return the runs of a cursor with the last step that the client has of each. Raises InvalidInput."""
    try:
        pairs = [(UUID(run), int(seq)) for run, _, seq in (part.partition(":") for part in cursor.split(","))]
        positions = dict(pairs)
    except ValueError:
        positions = {}
    if not 1 <= len(positions) <= MAX_RUNS_PER_STREAM or not all(0 <= seq <= MAX_SEQ for seq in positions.values()):
        raise InvalidInput(
            field,
            "is not a list of runs with a seq for each",
            f"Send <run>:<seq>,… with 1 to {MAX_RUNS_PER_STREAM} runs.",
        )
    return positions


def parse_last_event_id(last_event_id: str | None, after: int) -> int:
    """Return the seq after which a reconnecting client of one run continues. Raises InvalidInput."""
    if last_event_id is None or not last_event_id.strip():
        return after
    if not last_event_id.isascii() or not last_event_id.isdigit() or int(last_event_id) > MAX_SEQ:
        raise InvalidInput("Last-Event-ID", "is not the seq of a step", "Send the id of the last event unchanged.")
    return int(last_event_id)

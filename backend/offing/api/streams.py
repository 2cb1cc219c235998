"""Feeds as server-sent events: their encoding, places to resume from, and a response that no slow client holds up."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, ExitStack, aclosing
from uuid import UUID

import orjson
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from offing.api import wire
from offing.api.feed import Beat, EndSeen, Event, Feed, LiveSeen, RunSeen, StepSeen
from offing.core.errors import InvalidInput, OffingError, Unauthorised

log = logging.getLogger(__name__)

SEND_SECONDS = 20.0
"""A client that takes no byte for so long is dropped; it can come back with its last id."""

MOST_RUNS = 50

MOST_SEQ = 2**62

Places = dict[UUID, int] | None
"""The last step told of each of several runs. None: a stream of one run, whose events do not name it."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Sends a feed as it comes. The events of one run are bare; those of several name their run (`several`)."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[Event], first: Event, counted: ExitStack, places: Places = None) -> None:
        """`first`: taken from the feed before, so that a refusal is a response by itself. `counted` ends with us."""
        self._chunks, self._counted = _encoded(events, first, places), counted
        super().__init__(self._chunks, headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._counted:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                await _sent(send, chunk)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _sent(send: Send, chunk: bytes) -> None:
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except TimeoutError as error:
        log.info("event stream dropped: its client takes nothing")
        raise ClientDisconnect from error


async def opened(feed: Feed, counted: AbstractContextManager[None], places: Places = None) -> EventStream:
    """The response for a feed, which is `counted` until it ends. Raises what counting or the first event raises."""
    with ExitStack() as until_opened:
        until_opened.enter_context(counted)
        events = feed.events()
        first = await anext(events)
        return EventStream(events, first, until_opened.pop_all(), places)


async def _encoded(events: AsyncGenerator[Event], first: Event, places: Places) -> AsyncGenerator[bytes]:
    async with aclosing(events):
        yield encode(first, places)
        try:
            async for event in events:
                yield encode(event, places)
        except Unauthorised:
            return  # the key or session was ended meanwhile; coming back says so
        except OffingError as error:
            log.warning("event stream ended early; its client can come back with its last id: %s", error)


def encode(event: Event, places: Places) -> bytes:
    """An event on the wire. `places` is brought up to date with each step."""
    several = places is not None
    match event:
        case StepSeen(run, step):
            if places is not None:
                places[run] = step.seq
            id = str(step.seq) if places is None else cursor_of(places)
            return b"id: %s\nevent: step\ndata: %s\n\n" % (id.encode(), _json(wire.step_out(run, step)))
        case RunSeen(run, detail):
            data = _json(wire.detail_out(detail))
            named = b'{"run_id":"%s",%s' % (str(run).encode(), data[1:])
            return b"event: run\ndata: %s\n\n" % (named if several else data)
        case LiveSeen(run, live):
            out = wire.live_out(live)
            data = b"null" if out is None else _json(out)
            named = b'{"run_id":"%s","live":%s}' % (str(run).encode(), data)
            return b"event: live\ndata: %s\n\n" % (named if several else data)
        case EndSeen(run):
            return b'event: end\ndata: {"run_id":"%s"}\n\n' % str(run).encode()
        case Beat():
            return b": still here\n\n"


def _json(model: BaseModel) -> bytes:
    return orjson.dumps(model.model_dump(mode="json"))


def cursor_of(places: Mapping[UUID, int]) -> str:
    return ",".join(f"{run}:{seq}" for run, seq in places.items())


def places_of(cursor: str, field: str = "cursor") -> dict[UUID, int]:
    """The runs of a cursor and the last step of each that the client has. Raises InvalidInput."""
    try:
        pairs = [(UUID(run), int(seq)) for run, _, seq in (part.partition(":") for part in cursor.split(","))]
        places = dict(pairs)
    except ValueError:
        places = {}
    if not 1 <= len(places) <= MOST_RUNS or not all(0 <= seq <= MOST_SEQ for seq in places.values()):
        raise InvalidInput(
            field, "is not a list of runs with the last step of each", f"Send <run>:<seq>,… of 1 to {MOST_RUNS} runs."
        )
    return places


def seq_of(last_event_id: str | None, after: int) -> int:
    """Where a reconnecting client of one run goes on. Raises InvalidInput."""
    if last_event_id is None or not last_event_id.strip():
        return after
    if not last_event_id.isascii() or not last_event_id.isdigit() or int(last_event_id) > MOST_SEQ:
        raise InvalidInput("Last-Event-ID", "is not the seq of a step", "Send the id of the last event, unchanged.")
    return int(last_event_id)

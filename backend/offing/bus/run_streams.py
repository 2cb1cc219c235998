# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Streams of threads for LangGraph's clients, kept in Redis for an hour after their last event.

The runs of a thread share one stream, in the order in which they run, so that a client can follow one run or the whole
thread. A reader continues after any event that is still kept. Appending is best effort: a worker never fails because of
Redis, and a reader takes the end of a run from Postgres.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

import structlog
from redis.asyncio import Redis

from offing.bus.live import PUBLISH_TIMEOUT_SECONDS, REDIS_ERRORS, stream_channel_name

KEPT_SECONDS = 3600
"""Time for which a stream is kept after its last event."""

MAX_KEPT_EVENTS = 20_000
"""Approximate maximum number of events that are kept of a thread; older ones are dropped."""

RETRY_SECONDS = 0.2
"""Pause before events are sent to Redis again."""

MAX_OUTAGE_SECONDS = 10.0
"""Time for which events wait while Redis is away. The end of a run waits no longer than this, either."""

END_EVENT = "end"
"""Name of the last event of a run in its stream. Clients get one that says how the run ended."""

FIRST_ID = "0"
"""The id before the first event of every stream."""

MAX_CLOCK_DIFFERENCE = timedelta(seconds=30)
"""Difference between the clocks of Postgres and Redis up to which no event of a run is missed."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event of a run as its clients get it."""

    event: str
    """Its name: a stream mode, with the namespace of a subgraph after a vertical bar."""
    data: bytes
    """JSON."""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event in a stream."""

    id: str
    """Its place in the stream: milliseconds and a number."""
    event: StreamEvent
    run_id: UUID


class RunStreams:
    """The streams of runs in Redis. It belongs to one event loop and connects when it is first used."""

    def __init__(self, redis_url: str) -> None:
        self._redis: Redis = Redis.from_url(
            redis_url, socket_connect_timeout=PUBLISH_TIMEOUT_SECONDS, socket_timeout=4 * PUBLISH_TIMEOUT_SECONDS
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._redis.aclose()

    async def append(self, tenant_id: UUID, thread_id: UUID, run_id: UUID, events: Sequence[StreamEvent]) -> bool:
        """Append events and wake the readers. Return whether Redis accepted them."""
        key = _stream_key(tenant_id, thread_id)
        try:
            async with self._redis.pipeline(
                transaction=True
            ) as pipe:  # all of them or none, so that they can be sent again
                for event in events:
                    fields: dict[Any, Any] = {"event": event.event, "data": event.data, "run": run_id.bytes}
                    pipe.xadd(key, fields, maxlen=MAX_KEPT_EVENTS, approximate=True)
                pipe.expire(key, KEPT_SECONDS)
                pipe.publish(stream_channel_name(tenant_id, thread_id), b'{"steps":[]}')
                await pipe.execute()
        except REDIS_ERRORS as error:
            log.warning("events of a stream were not published", run=str(run_id), error=type(error).__name__)
            return False
        return True

    async def append_end(self, tenant_id: UUID, thread_id: UUID, run_id: UUID, events: Sequence[StreamEvent]) -> None:
        """Append the last events of a run whose worker could not, once even if several readers notice it."""
        try:
            is_first = await self._redis.set(_mark_key("ended", tenant_id, run_id), b"1", nx=True, ex=KEPT_SECONDS)
        except REDIS_ERRORS:
            return
        if is_first:
            await self.append(tenant_id, thread_id, run_id, events)

    async def mark_told(self, tenant_id: UUID, run_id: UUID) -> None:
        """Remember that a client which follows only the course of the runs was told of the end of this one."""
        with suppress(*REDIS_ERRORS):
            await self._redis.set(_mark_key("told", tenant_id, run_id), b"1", ex=KEPT_SECONDS)

    async def was_told(self, tenant_id: UUID, run_id: UUID) -> bool:
        try:
            return bool(await self._redis.exists(_mark_key("told", tenant_id, run_id)))
        except REDIS_ERRORS:
            return False

    async def read_after(self, tenant_id: UUID, thread_id: UUID, last_id: str, limit: int = 500) -> list[KeptEvent]:
        """Return the events after `last_id`. None if there are none, or if Redis is unavailable."""
        try:
            rows: Any = await self._redis.xrange(_stream_key(tenant_id, thread_id), min=f"({last_id}", count=limit)
        except REDIS_ERRORS:
            return []
        return [_parse_entry(id, fields) for id, fields in rows]

    async def read_last(self, tenant_id: UUID, thread_id: UUID, limit: int = 50) -> list[KeptEvent]:
        """Return the last events, the latest first. None if there are none, or if Redis is unavailable."""
        try:
            rows: Any = await self._redis.xrevrange(_stream_key(tenant_id, thread_id), count=limit)
        except REDIS_ERRORS:
            return []
        return [_parse_entry(id, fields) for id, fields in rows]

    async def find_last_id(self, tenant_id: UUID, thread_id: UUID) -> str:
        """Return the id of the last event. `FIRST_ID` means that there is none."""
        try:
            rows: Any = await self._redis.xrevrange(_stream_key(tenant_id, thread_id), count=1)
        except REDIS_ERRORS:
            return FIRST_ID
        return rows[0][0].decode() if rows else FIRST_ID

    async def delete(self, tenant_id: UUID, thread_id: UUID, run_id: UUID) -> None:
        """Delete the events of a deleted run."""
        key, last = _stream_key(tenant_id, thread_id), FIRST_ID
        try:
            while batch := await self.read_after(tenant_id, thread_id, last):
                if ids := [entry.id for entry in batch if entry.run_id == run_id]:
                    await self._redis.xdel(key, *ids)
                last = batch[-1].id
        except REDIS_ERRORS as error:
            log.warning("events were not deleted; they expire", run=str(run_id), error=type(error).__name__)


class StreamSender:
    """Sends the events of one claimed run in order, in the background and as few messages as possible.

    While Redis is away, events wait for it. After `MAX_OUTAGE_SECONDS` they are given up.
    """

    def __init__(self, streams: RunStreams, tenant_id: UUID, thread_id: UUID, run_id: UUID) -> None:
        self._streams, self._tenant, self._thread, self._run = streams, tenant_id, thread_id, run_id
        self._waiting: list[StreamEvent] = []
        self._sending: asyncio.Task[None] | None = None

    def send(self, event: StreamEvent) -> None:
        self._waiting.append(event)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_waiting())

    async def flush(self) -> None:
        """Wait until everything was sent, or given up."""
        while self._sending is not None and not self._sending.done():
            await asyncio.wait({self._sending})

    async def _send_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._send_batch(batch)

    async def _send_batch(self, batch: Sequence[StreamEvent]) -> None:
        give_up = asyncio.get_running_loop().time() + MAX_OUTAGE_SECONDS
        while not await self._streams.append(self._tenant, self._thread, self._run, batch):
            if asyncio.get_running_loop().time() > give_up:
                log.warning("events of a stream were given up", run=str(self._run), events=len(batch))
                return
            await asyncio.sleep(RETRY_SECONDS)


def find_position(moment: datetime) -> str:
    """Return an id before every event of a run that was created at this moment, also if the clocks differ a little."""
    return f"{max(0, int((moment - MAX_CLOCK_DIFFERENCE).timestamp() * 1000))}-0"


def _parse_entry(id: bytes, fields: dict[bytes, bytes]) -> KeptEvent:
    return KeptEvent(id.decode(), StreamEvent(fields[b"event"].decode(), fields[b"data"]), UUID(bytes=fields[b"run"]))


def _stream_key(tenant_id: UUID, thread_id: UUID) -> str:
    return f"offing:events:{tenant_id}:{thread_id}"


def _mark_key(mark: str, tenant_id: UUID, run_id: UUID) -> str:
    return f"offing:{mark}:{tenant_id}:{run_id}"

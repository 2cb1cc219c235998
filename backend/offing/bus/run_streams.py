# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Streams of threads for LangGraph's clients, kept in Redis for an hour after their last event.

The runs of a thread share one stream, in the order in which they run, so that a client can follow one run or the whole
thread. A reader continues after any event that is still kept. Appending is best effort: a worker never fails because of
Redis, and a reader takes the end of a run from Postgres.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

import structlog
from redis.asyncio import Redis

from offing.bus.live import PUBLISH_TIMEOUT_SECONDS, REDIS_ERRORS
from offing.bus.live_events import BusEvent, ResyncEvent, stream_channel_name
from offing.bus.stream_fences import APPEND, BEGIN, LAST_BATCH, Appended, Batch, BatchCounter
from offing.bus.stream_messages import (
    FIRST_ID,
    MAX_MESSAGE_BYTES,
    KeptEvent,
    StreamEvent,
    StreamMessage,
    parse_position,
)
from offing.core.run import FencingToken

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

MAX_BATCH_EVENTS = 500
"""Maximum number of events that are appended together. They get the same time."""

PAGE_EVENTS = 500
"""Number of events that are read together."""

MAX_CLOCK_DIFFERENCE = timedelta(seconds=30)
"""Difference between the clocks of Postgres and Redis up to which no event of a run is missed."""

log = structlog.get_logger()


class RunStreams:
    """The streams of runs in Redis. It belongs to one event loop and connects when it is first used."""

    def __init__(self, redis_url: str) -> None:
        self._redis: Redis = Redis.from_url(
            redis_url, socket_connect_timeout=PUBLISH_TIMEOUT_SECONDS, socket_timeout=4 * PUBLISH_TIMEOUT_SECONDS
        )
        self._append, self._begin = self._redis.register_script(APPEND), self._redis.register_script(BEGIN)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._redis.aclose()

    async def append(
        self, tenant_id: UUID, thread_id: UUID, run_id: UUID, events: Sequence[StreamEvent], batch: Batch
    ) -> Appended:
        """Append events and wake the readers, all of them or none. The same batch may be sent again."""
        arguments: list[Any] = [batch.order, batch.bound, KEPT_SECONDS, MAX_KEPT_EVENTS, run_id.bytes, batch.claim]
        arguments += (stream_channel_name(tenant_id, thread_id), MAX_MESSAGE_BYTES)
        for event in events:
            arguments += (event.event, event.data, event.step)
        keys = [_stream_key(tenant_id, thread_id), _fence_key(tenant_id, run_id), _last_key(tenant_id, thread_id)]
        try:
            return Appended(await self._append(keys=keys, args=arguments))
        except REDIS_ERRORS as error:
            log.warning("events of a stream were not published", run=str(run_id), error=type(error).__name__)
            return Appended.UNAVAILABLE

    async def append_end(self, tenant_id: UUID, thread_id: UUID, run_id: UUID, events: Sequence[StreamEvent]) -> None:
        """Append the last events of a run whose worker could not, once even if several readers notice it."""
        await self.append(tenant_id, thread_id, run_id, events, LAST_BATCH)

    async def begin_claim(self, tenant_id: UUID, run_id: UUID, batches: BatchCounter) -> bool:
        """Refuse what earlier claims of a run append from now on. Return whether Redis did so."""
        try:
            await self._begin(keys=[_fence_key(tenant_id, run_id)], args=[batches.first_order, KEPT_SECONDS])
        except REDIS_ERRORS as error:
            log.warning("earlier claims were not kept out of a stream", run=str(run_id), error=type(error).__name__)
            return False
        return True

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

    async def read_backwards(self, tenant_id: UUID, thread_id: UUID, run_id: UUID) -> AsyncIterator[KeptEvent]:
        """Return the events of a run, the latest first. It ends early if Redis is unavailable."""
        edge = "+"
        while page := await self._read_page(tenant_id, thread_id, edge):
            for entry in page:
                if entry.run_id == run_id:
                    yield entry
            edge = f"({page[-1].id}"

    async def _read_page(self, tenant_id: UUID, thread_id: UUID, edge: str) -> list[KeptEvent]:
        try:
            rows: Any = await self._redis.xrevrange(_stream_key(tenant_id, thread_id), max=edge, count=PAGE_EVENTS)
        except REDIS_ERRORS as error:
            log.warning("a stream was not read", thread=str(thread_id), error=type(error).__name__)
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
        last = FIRST_ID
        while batch := await self.read_after(tenant_id, thread_id, last):
            await self.delete_events(tenant_id, thread_id, [entry.id for entry in batch if entry.run_id == run_id])
            last = batch[-1].id

    async def delete_events(self, tenant_id: UUID, thread_id: UUID, ids: Sequence[str]) -> None:
        """Delete events. If Redis is unavailable, they expire."""
        try:
            if ids:
                await self._redis.xdel(_stream_key(tenant_id, thread_id), *ids)
        except REDIS_ERRORS as error:
            log.warning("events were not deleted; they expire", thread=str(thread_id), error=type(error).__name__)


class StreamReader:
    """Reads a stream in order after an event: from its messages as long as these follow each other, else from Redis."""

    def __init__(self, streams: RunStreams, tenant_id: UUID, thread_id: UUID, last_id: str) -> None:
        self._streams, self._tenant, self._thread, self.last_id = streams, tenant_id, thread_id, last_id
        """`last_id` is the id of the last event that was read."""
        self.is_behind = False
        """Whether there may be more events to read at once, without a notice."""

    async def read(self, notice: BusEvent | None) -> list[KeptEvent]:
        """Return the events that are new after a notice of a subscription to the stream (`LiveBus.subscribe_stream`).

        `None` stands for the end of a time without notices.
        """
        match notice:
            case StreamMessage() if notice.follows(self.last_id):
                new = [one for one in notice.events if parse_position(one.id) > parse_position(self.last_id)]
            case StreamMessage() | ResyncEvent() | None:
                new = await self._streams.read_after(self._tenant, self._thread, self.last_id, PAGE_EVENTS)
                self.is_behind = len(new) >= PAGE_EVENTS
            case _:  # news of a run, and not of its stream
                new = []
        self.last_id = new[-1].id if new else self.last_id
        return new


class StreamSender:
    """Sends the events of one claimed run in order, in the background and as few messages as possible.

    While Redis is away, events wait for it. After `MAX_OUTAGE_SECONDS` they are given up. None are sent after a later
    claim of the run has begun.
    """

    def __init__(self, streams: RunStreams, thread_id: UUID, fence: FencingToken) -> None:
        self._streams, self._tenant, self._thread, self._run = streams, fence.tenant_id, thread_id, fence.run_id
        self._batches = BatchCounter(fence.number, fence.epoch)
        self._waiting: list[StreamEvent] = []
        self._sending: asyncio.Task[None] | None = None
        self._total = self._handled = 0
        """Numbers of events that were given, and of those that were sent or given up."""
        self._attempted = asyncio.Event()
        """Is set by each attempt to send."""
        self._result = Appended.ACCEPTED

    def send(self, event: StreamEvent) -> None:
        self._waiting.append(event)
        self._total += 1
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_waiting())

    async def flush(self) -> None:
        """Wait until everything was sent, or given up."""
        while self._sending is not None and not self._sending.done():
            await asyncio.wait({self._sending})

    async def settle(self) -> None:
        """Wait until everything that was given so far was sent, unless Redis is unavailable."""
        total = self._total
        while self._handled < total and self._result is Appended.ACCEPTED and self._sending is not None:
            if self._sending.done():
                return
            self._attempted.clear()
            attempt = asyncio.create_task(self._attempted.wait())
            try:
                await asyncio.wait({self._sending, attempt}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                attempt.cancel()

    async def begin(self) -> bool:
        """Refuse what earlier claims of the run append from now on. Return whether Redis did so."""
        return await self._streams.begin_claim(self._tenant, self._run, self._batches)

    def read_backwards(self) -> AsyncIterator[KeptEvent]:
        """Return the events of the run, the latest first."""
        return self._streams.read_backwards(self._tenant, self._thread, self._run)

    async def delete(self, ids: Sequence[str]) -> None:
        """Delete events from the stream."""
        await self._streams.delete_events(self._tenant, self._thread, ids)

    async def _send_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MAX_BATCH_EVENTS], self._waiting[MAX_BATCH_EVENTS:]
            await self._send_batch(batch)
            self._handled += len(batch)
            self._attempted.set()

    async def _send_batch(self, events: Sequence[StreamEvent]) -> None:
        give_up, batch = asyncio.get_running_loop().time() + MAX_OUTAGE_SECONDS, self._batches.next()
        while (await self._try_batch(events, batch)) is Appended.UNAVAILABLE:
            if asyncio.get_running_loop().time() > give_up:
                log.warning("events of a stream were given up", run=str(self._run), events=len(events))
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _try_batch(self, events: Sequence[StreamEvent], batch: Batch) -> Appended:
        if self._result is not Appended.FENCED:
            self._result = await self._streams.append(self._tenant, self._thread, self._run, events, batch)
            if self._result is Appended.FENCED:
                log.info("a later claim has the stream", run=str(self._run), claim=batch.claim, events=len(events))
        self._attempted.set()
        return self._result


def find_position(moment: datetime) -> str:
    """Return an id before every event of a run that was created at this moment, also if the clocks differ a little."""
    return f"{max(0, int((moment - MAX_CLOCK_DIFFERENCE).timestamp() * 1000))}-0"


def _parse_entry(id: bytes, fields: dict[bytes, bytes]) -> KeptEvent:
    event = StreamEvent(fields[b"event"].decode(), fields[b"data"], int(fields.get(b"step", 0)))
    return KeptEvent(id.decode(), event, UUID(bytes=fields[b"run"]), int(fields.get(b"claim", 0)))


def _stream_key(tenant_id: UUID, thread_id: UUID) -> str:
    return f"offing:events:{tenant_id}:{thread_id}"


def _last_key(tenant_id: UUID, thread_id: UUID) -> str:
    return _mark_key("last-event", tenant_id, thread_id)


def _fence_key(tenant_id: UUID, run_id: UUID) -> str:
    return _mark_key("stream-fence", tenant_id, run_id)


def _mark_key(mark: str, tenant_id: UUID, id: UUID) -> str:
    return f"offing:{mark}:{tenant_id}:{id}"

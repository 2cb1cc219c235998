# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""One subscriber of the live updates, and the connection to Redis that all subscribers of a process share."""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from redis.asyncio.client import PubSub
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError

from offing.bus.live_events import BusEvent, ResyncEvent

MAX_INBOX_EVENTS = 256
"""Events buffered for a slow subscriber. When the buffer is full, one `ResyncEvent` replaces them."""


class Subscriber:
    """The inbox of one subscriber.

    It is an asynchronous iterator that never ends and holds at most `MAX_INBOX_EVENTS` events.
    """

    def __init__(self, resync_interval: Callable[[], float], is_confirmed: Callable[[], bool]) -> None:
        self._tick, self._is_confirmed = resync_interval, is_confirmed
        self._inbox: deque[BusEvent] = deque()
        self._arrived = asyncio.Event()

    @property
    def is_confirmed(self) -> bool:
        """Whether Redis sends all events from now on."""
        return self._is_confirmed()

    def offer(self, event: BusEvent) -> None:
        if len(self._inbox) >= MAX_INBOX_EVENTS:
            self._inbox.clear()
            event = ResyncEvent()
        self._inbox.append(event)
        self._arrived.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> BusEvent:
        return await self.next(math.inf) or ResyncEvent()

    async def next(self, timeout_seconds: float) -> BusEvent | None:
        """Return the next event. If none arrives in time, return a `ResyncEvent` after the resync interval, and `None`
        after `timeout_seconds`, if these are over before it.
        """
        resync_seconds = self._tick()
        if not self._inbox:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(timeout_seconds, resync_seconds)):
                    await self._arrived.wait()
        if self._inbox:
            return self._inbox.popleft()
        return None if timeout_seconds < resync_seconds else ResyncEvent()


class Subscription(PubSub):
    """A subscription that ends when its connection breaks.

    The class of redis-py reconnects in the task that gets the error, and two tasks that
    reconnect at the same time leave a socket open. Here only the listener reconnects, with a new
    subscription.
    """

    async def connect(self) -> None:
        self._require_connection()
        await super().connect()

    async def parse_response(self, block: bool = True, timeout: float = 0) -> Any:  # noqa: ASYNC109  its signature
        self._require_connection()
        return await super().parse_response(block, timeout)

    async def _reconnect(self, conn: AbstractConnection, *_: object, **__: object) -> None:
        await conn.disconnect(nowait=True)

    def _require_connection(self) -> None:
        if self.connection is not None and not self.connection.is_connected:
            raise RedisConnectionError("the connection of the subscription is closed")

"""Dispatch: a Celery message for workers, sent when runs are queued.

It names the task and carries no arguments.
"""

# pyright: reportUnknownMemberType=false
# redis-py's own types are partial.

import asyncio
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import structlog
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from offing.bus.task_message import build_message
from offing.cancellation import cancel_tasks
from offing.clock import new_id

ADVANCE_TASK = "offing.advance"
"""Name of the one Celery task of the workers."""

QUEUE_NAME = "offing"

MAX_RUNS_PER_MESSAGE, MAX_MESSAGES = 8, 16
"""Runs per message, and messages per dispatch. A worker that gets a message claims as many runs as
it has free slots, and several messages reach several workers. More than `MAX_MESSAGES` would
only keep the workers busy with reading.
"""

log = structlog.get_logger()


class RunDispatcher(Protocol):
    """A function that notifies workers of queued runs.

    It never raises if the broker is unavailable, because workers also poll the queue.
    """

    async def __call__(self, run_ids: Iterable[UUID]) -> None: ...


def build_broker_url(redis_url: str) -> str:
    """Return the URL of a Redis server in the form that Celery's transport expects:

    `unix:///path?db=0` becomes `redis+socket://…`.
    """
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    return f"redis+socket://{parts.path}?virtual_host={parse_qs(parts.query).get('db', ['0'])[0]}"


def build_transport_options() -> dict[str, Any]:
    """Return kombu's connection options for workers. All times are in seconds."""
    return {
        "socket_connect_timeout": 2,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 10,
    }


TIMEOUT_SECONDS = 1.0
"""Time after which a dispatch is dropped, because workers also poll the queue."""


class CeleryDispatcher:
    """Puts Celery messages on the queue of the workers, as kombu would.

    It writes them itself, because Celery's publisher blocks a thread and takes a millisecond for each. Runs that are
    dispatched while messages are being sent share the next ones. It belongs to one event loop and connects when it is
    first used.
    """

    def __init__(self, redis_url: str) -> None:
        self._url = redis_url
        self._redis: Redis = Redis.from_url(
            redis_url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 1, (RedisConnectionError,)),  # the first write notices a closed connection
        )
        self._waiting_count = 0
        """Number of runs that no message was published for yet."""
        self._publication: asyncio.Task[None] | None = None

    async def __call__(self, run_ids: Iterable[UUID]) -> None:
        if count := len(tuple(run_ids)):
            self._waiting_count += count
            if self._publication is None or self._publication.done():
                self._publication = asyncio.create_task(self._publish_waiting())
            await asyncio.shield(self._publication)

    async def close(self) -> None:
        """Drop what was not sent yet, and close the connection."""
        if self._publication is not None:
            await cancel_tasks([self._publication])
        await self._redis.aclose()

    async def _publish_waiting(self) -> None:
        while count := self._waiting_count:
            self._waiting_count = 0
            await self._publish(min(MAX_MESSAGES, ceil(count / MAX_RUNS_PER_MESSAGE)))

    async def _publish(self, message_count: int) -> None:
        messages = [build_message(ADVANCE_TASK, QUEUE_NAME, str(new_id())) for _ in range(message_count)]
        try:
            await self._push(messages)
        except (RedisError, OSError) as error:  # the runs are stored, and workers also poll the queue
            log.warning("dispatch not published", error=type(error).__name__)

    async def _push(self, messages: Sequence[bytes]) -> None:
        try:
            await self._redis.lpush(QUEUE_NAME, *messages)  # pyright: ignore[reportGeneralTypeIssues]
        except ResponseError as error:
            await asyncio.to_thread(self._rename_wrong_type, error)
            await self._redis.lpush(QUEUE_NAME, *messages)  # pyright: ignore[reportGeneralTypeIssues]

    def _rename_wrong_type(self, error: ResponseError) -> None:
        from offing.bus.broker import rename_wrong_type  # imports kombu, which this needs only here

        with BlockingRedis.from_url(self._url, socket_timeout=TIMEOUT_SECONDS) as client:
            rename_wrong_type(client, error)

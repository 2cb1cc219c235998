"""Dispatch: a Celery message for workers, sent when runs are queued.

It names the task and carries no arguments.
"""

# pyright: reportUnknownMemberType=false
# Celery ships no types.

import asyncio
from collections.abc import Iterable
from math import ceil
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import structlog

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
    """Return kombu's connection options for publishers and workers. All times are in seconds."""
    return {
        "socket_connect_timeout": 2,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 10,
    }


NO_RETRY_OPTIONS = {"max_retries": 0, "interval_start": 0, "interval_step": 0, "interval_max": 0, "socket_timeout": 1}
"""Publishing is not retried: a dispatch that cannot be sent at once is dropped, because workers
also poll the queue.
"""


class CeleryDispatcher:
    """Publishes the Celery message by task name.

    It runs in a thread, because kombu's connection blocks. Runs that are dispatched meanwhile share the next messages.
    """

    def __init__(self, redis_url: str) -> None:
        from celery import Celery

        from offing.bus.broker import use_transport

        use_transport()
        self._waiting_count = 0
        """Number of runs that no message was published for yet."""
        self._publication: asyncio.Task[None] | None = None
        self._app = Celery("offing", broker=build_broker_url(redis_url), set_as_current=False)
        self._app.conf.update(
            broker_transport_options=build_transport_options() | NO_RETRY_OPTIONS,
            task_ignore_result=True,
            task_serializer="json",
            broker_connection_retry=False,
        )

    async def __call__(self, run_ids: Iterable[UUID]) -> None:
        if count := len(tuple(run_ids)):
            self._waiting_count += count
            if self._publication is None or self._publication.done():
                self._publication = asyncio.create_task(self._publish_waiting())
            await asyncio.shield(self._publication)

    async def _publish_waiting(self) -> None:
        while count := self._waiting_count:
            self._waiting_count = 0
            await asyncio.to_thread(self._publish, min(MAX_MESSAGES, ceil(count / MAX_RUNS_PER_MESSAGE)))

    def _publish(self, message_count: int) -> None:
        try:
            for _ in range(message_count):
                self._app.send_task(ADVANCE_TASK, queue=QUEUE_NAME, retry=False, ignore_result=True)
        except Exception as error:  # kombu may raise anything here; the runs are stored and workers also poll the queue
            log.warning("dispatch not published", error=type(error).__name__)

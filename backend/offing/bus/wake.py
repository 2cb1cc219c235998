"""Notifying workers that runs are queued: a Celery message by task name, which carries nothing."""

# pyright: reportUnknownMemberType=false
# Celery ships no types.

import asyncio
from collections.abc import Iterable
from math import ceil
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import structlog

ADVANCE = "offing.advance"
"""Name of the workers' one task."""

QUEUE = "offing"

RUNS_A_MESSAGE, MOST_MESSAGES = 8, 16
"""A worker that gets a message claims as many runs as it has slots for. Several messages reach several workers; more
than `MOST_MESSAGES` would only keep them reading."""

log = structlog.get_logger()


class Wake(Protocol):
    """Anything that can notify workers of runs. Never raises for an absent broker: workers also check by themselves."""

    async def __call__(self, runs: Iterable[UUID]) -> None: ...


def broker_url(redis_url: str) -> str:
    """The same Redis as Celery's transport spells it: `unix:///path?db=0` becomes `redis+socket://…`."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    return f"redis+socket://{parts.path}?virtual_host={parse_qs(parts.query).get('db', ['0'])[0]}"


def transport_options() -> dict[str, Any]:
    """How kombu talks to Redis, for publishers and workers alike. Seconds."""
    return {
        "socket_connect_timeout": 2,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 10,
    }


AT_ONCE = {"max_retries": 0, "interval_start": 0, "interval_step": 0, "interval_max": 0, "socket_timeout": 1}
"""A hint that cannot be sent at once is dropped; workers also check by themselves."""


class CeleryWake:
    """Publishes by task name, off the event loop, because kombu's connection blocks."""

    def __init__(self, redis_url: str) -> None:
        from celery import Celery

        from offing.bus.broker import use_transport

        use_transport()
        self._app = Celery("offing", broker=broker_url(redis_url), set_as_current=False)
        self._app.conf.update(
            broker_transport_options=transport_options() | AT_ONCE,
            task_ignore_result=True,
            task_serializer="json",
            broker_connection_retry=False,
        )

    async def __call__(self, runs: Iterable[UUID]) -> None:
        if count := len(tuple(runs)):
            await asyncio.to_thread(self._publish, min(MOST_MESSAGES, ceil(count / RUNS_A_MESSAGE)))

    def _publish(self, messages: int) -> None:
        try:
            for _ in range(messages):
                self._app.send_task(ADVANCE, queue=QUEUE, retry=False, ignore_result=True)
        except Exception as error:  # whatever kombu raises, the runs are stored; workers also check by themselves
            log.warning("hint not published", error=type(error).__name__)

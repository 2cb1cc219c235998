"""Telling the worker that holds a run to look at what people want of it; heartbeats find out as well, later."""

# pyright: reportUnknownMemberType=false
# redis-py's own types are partial.

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from offing.bus.skipping import SkippedMessages
from offing.core.errors import Unavailable

CHANNEL = "offing:control"

log = structlog.get_logger()


class Control:
    """Hints about cancel, pause and messages. Best effort both ways."""

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(redis_url, socket_connect_timeout=2, health_check_interval=10)
        self._skipped = SkippedMessages(f"channel {CHANNEL}")

    async def nudge(self, run: UUID) -> None:
        """Ask whoever holds the run to look at it now."""
        try:
            await self._redis.publish(CHANNEL, str(run))
        except (RedisError, OSError) as error:
            log.warning("nudge not published", run=str(run), error=type(error).__name__)

    async def nudges(self) -> AsyncIterator[UUID]:
        """Runs that somebody asked to look at, until the connection breaks, which raises Unavailable."""
        try:
            async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                await pubsub.subscribe(CHANNEL)
                while True:
                    message: dict[str, Any] | None = await pubsub.get_message(timeout=5.0)  # pyright: ignore
                    if message is not None and (run := self._run_of(message["data"])):
                        yield run
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis did not answer: {type(error).__name__}") from error

    def _run_of(self, content: bytes) -> UUID | None:
        """The run that a message names. None: it names none, and is skipped."""
        try:
            return UUID(content.decode())
        except ValueError:  # a UnicodeDecodeError too
            self._skipped.skip("no run's id", content)
            return None

    async def close(self) -> None:
        await self._redis.aclose()

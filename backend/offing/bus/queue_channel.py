"""Notifying all workers at once that runs are queued: published by a worker that was notified and has no free slot."""

# pyright: reportUnknownMemberType=false
# redis-py's own types are partial.

from collections.abc import AsyncIterator
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from offing.core.errors import Unavailable

CHANNEL = "offing:queue"

log = structlog.get_logger()


class QueueChannel:
    """Best effort both ways. What a message contains is not read, so none can be malformed."""

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(redis_url, socket_connect_timeout=2, health_check_interval=10)

    async def publish(self) -> None:
        """Ask every worker with a free slot to check the queue."""
        try:
            await self._redis.publish(CHANNEL, b"")
        except (RedisError, OSError) as error:
            log.warning("workers not notified", error=type(error).__name__)

    async def messages(self) -> AsyncIterator[None]:
        """Once for each message, until the connection breaks, which raises Unavailable."""
        try:
            async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                await pubsub.subscribe(CHANNEL)
                while True:
                    message: dict[str, Any] | None = await pubsub.get_message(timeout=5.0)  # pyright: ignore
                    if message is not None:
                        yield
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis did not answer: {type(error).__name__}") from error

    async def close(self) -> None:
        await self._redis.aclose()

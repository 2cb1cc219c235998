"""A channel that notifies all workers of queued runs.

A worker publishes to it when it gets a dispatch and has no free slot.
"""

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
    """A best-effort publisher and subscriber.

    Messages have no content, so none can be malformed.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(redis_url, socket_connect_timeout=2, health_check_interval=10)

    async def publish(self) -> None:
        """Ask every worker with a free slot to claim queued runs."""
        try:
            await self._redis.publish(CHANNEL, b"")
        except (RedisError, OSError) as error:
            log.warning("workers not notified", error=type(error).__name__)

    async def listen(self) -> AsyncIterator[None]:
        """Yield once per message. Raises `Unavailable` when the connection breaks."""
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

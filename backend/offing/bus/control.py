"""Control notifications, which make a run's worker re-read its control request.

Without one, the worker sees the request at its next heartbeat.
"""

# pyright: reportUnknownMemberType=false
# redis-py's own types are partial.

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from offing.bus.skipped_messages import SkippedMessages
from offing.core.errors import Unavailable

CHANNEL = "offing:control"

log = structlog.get_logger()


class ControlChannel:
    """Publisher and subscriber of notifications about cancel, pause and user messages.

    Sending and receiving are best effort.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(redis_url, socket_connect_timeout=2, health_check_interval=10)
        self._skipped = SkippedMessages(f"channel {CHANNEL}")

    async def notify_control(self, run_id: UUID) -> None:
        """Ask the worker of the run to re-read its control request now."""
        try:
            await self._redis.publish(CHANNEL, str(run_id))
        except (RedisError, OSError) as error:
            log.warning("control notification not published", run=str(run_id), error=type(error).__name__)

    async def listen(self) -> AsyncIterator[UUID]:
        """Yield the id of each run in a notification.

        Raises `Unavailable` when the connection breaks.
        """
        try:
            async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                await pubsub.subscribe(CHANNEL)
                while True:
                    message: dict[str, Any] | None = await pubsub.get_message(timeout=5.0)  # pyright: ignore
                    if message is not None and (run := self._parse_run_id(message["data"])):
                        yield run
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis did not answer: {type(error).__name__}") from error

    def _parse_run_id(self, content: bytes) -> UUID | None:
        """Return the run id in a message.

        `None` means that the message contains no run id; it is skipped.
        """
        try:
            return UUID(content.decode())
        except ValueError:  # includes `UnicodeDecodeError`
            self._skipped.skip("no run id", content)
            return None

    async def close(self) -> None:
        await self._redis.aclose()

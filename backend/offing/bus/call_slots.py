"""Call slots that all processes of an installation share through Redis.

A slot is a lease: its holder renews it, and it ends if the process dies. Waiting calls stand in a queue and ask
repeatedly; one that stops asking loses its place. Within a process, calls first wait for each other, so that at most as
many of them ask Redis as there are slots. If Redis does not answer, the limit holds for each process alone.
"""

# pyright: reportUnknownMemberType=false
# redis-py's own types are partial.

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from offing.cancellation import cancel_tasks, run_to_completion
from offing.models.call_limits import CallLimit
from offing.models.call_slots import LocalCallSlots

WAITING_SECONDS = 10.0
"""Time after which a waiting call that has not asked again loses its place."""
ASK_INTERVAL_SECONDS, MAX_ASK_INTERVAL_SECONDS = 0.1, 1.0
"""Interval at which the first waiting call asks, and that of those far behind it."""
OUTAGE_SECONDS = 3.0
"""Time for which Redis is not asked after it did not answer, so that it does not delay each call."""

ACQUIRE = """
local held, queue, seen = KEYS[1], KEYS[2], KEYS[3]
local token, limit, lease, patience, waited = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
if redis.call('ZSCORE', held, token) then return -1 end
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', now)) do
  redis.call('ZREM', queue, gone)
  redis.call('ZREM', seen, gone)
end
redis.call('ZADD', queue, 'NX', now - waited, token)
local free = math.max(0, limit - redis.call('ZCARD', held))
local ahead = redis.call('ZRANK', queue, token) - free
if ahead < 0 then
  redis.call('ZREM', queue, token)
  redis.call('ZREM', seen, token)
  redis.call('ZADD', held, now + lease, token)
  redis.call('PEXPIRE', held, lease)
  return -1
end
redis.call('ZADD', seen, now + patience, token)
redis.call('PEXPIRE', seen, patience)
redis.call('PEXPIRE', queue, patience)
return ahead
"""
"""Takes a slot and returns -1, or returns how many waiting calls come before this one. Times are in milliseconds.

A client that did not get the reply asks again with the same token, which may have a slot by then.
"""

RENEW = """
local clock = redis.call('TIME')
redis.call('ZADD', KEYS[1], clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[2], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
"""Renews a slot. One that Redis has lost is taken again, because its call still runs."""

log = structlog.get_logger()


class RedisCallSlots:
    """Call slots of all processes that use the same Redis. They belong to one event loop.

    `lease_seconds` is the time after the last renewal when the slot of a dead process is free again. A slot is renewed
    three times as often.
    """

    def __init__(self, redis_url: str, lease_seconds: float) -> None:
        self._redis = Redis.from_url(redis_url, socket_connect_timeout=2, socket_timeout=2, health_check_interval=10)
        self._acquire, self._renew = self._redis.register_script(ACQUIRE), self._redis.register_script(RENEW)
        self._lease_seconds, self._local = lease_seconds, LocalCallSlots()
        self._asked_again_at = 0.0

    @asynccontextmanager
    async def hold(self, limit: CallLimit) -> AsyncGenerator[bool]:
        """See `offing.models.call_slots.CallSlots`."""
        began, token = time.monotonic(), secrets.token_hex(8)
        keys = _list_keys(limit.scope)
        async with self._local.hold(limit) as has_waited:
            renewal: asyncio.Task[None] | None = None
            try:
                has_waited |= await self._wait(keys, token, limit.max_calls, began)
                renewal = asyncio.create_task(self._renew_until_cancelled(keys, token))
                yield has_waited
            finally:
                await run_to_completion(self._release(keys, token, renewal))

    async def close(self) -> None:
        await self._redis.aclose()

    async def _wait(self, keys: list[str], token: str, max_calls: int, began: float) -> bool:
        """Ask until there is a slot. Return whether it was not free at first."""
        has_waited = False
        while (ahead := await self._ask(keys, token, max_calls, began)) >= 0:
            has_waited = True
            await asyncio.sleep(min(ASK_INTERVAL_SECONDS * (ahead + 1), MAX_ASK_INTERVAL_SECONDS))
        return has_waited

    async def _ask(self, keys: list[str], token: str, max_calls: int, began: float) -> int:
        if time.monotonic() < self._asked_again_at:
            return -1
        lease, patience, waited = (
            round(seconds * 1000) for seconds in (self._lease_seconds, WAITING_SECONDS, time.monotonic() - began)
        )
        try:
            return int(await self._acquire(keys=keys, args=[token, max_calls, lease, patience, waited]))
        except (RedisError, OSError) as error:
            self._asked_again_at = time.monotonic() + OUTAGE_SECONDS
            log.warning("limits of calls hold for each process alone", error=type(error).__name__)
            return -1

    async def _renew_until_cancelled(self, keys: list[str], token: str) -> None:
        lease = round(self._lease_seconds * 1000)
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            with suppress(RedisError, OSError):  # the next renewal may succeed
                await self._renew(keys=keys[:1], args=[token, lease])

    async def _release(self, keys: list[str], token: str, renewal: asyncio.Task[None] | None) -> None:
        """Give the slot or the place in the queue back. If Redis does not answer, it ends by itself.

        A renewal that went on would hold the slot for as long as the process lives.
        """
        await cancel_tasks([renewal] if renewal else [])
        if time.monotonic() < self._asked_again_at:
            return
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.zrem(key, token)
                await pipeline.execute()
        except (RedisError, OSError):
            self._asked_again_at = time.monotonic() + OUTAGE_SECONDS


def _list_keys(scope: str) -> list[str]:
    """Return the keys of a limit: held slots by their end, waiting calls by their start, and when those end."""
    name = hashlib.sha256(scope.encode()).hexdigest()[:32]
    return [f"offing:slots:{{{name}}}:{part}" for part in ("held", "queue", "seen")]

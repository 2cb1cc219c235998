# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false, reportIncompatibleMethodOverride=false
# kombu ships no types.
"""kombu's Redis transport, for which nothing in Redis is trusted: no content under our keys ends a worker.

A message that is not ours is skipped before Celery sees it. A key of another type under the queue's name is renamed.
Messages are notifications that are acknowledged on arrival, so neither copies of unacknowledged messages nor a table of
queues are kept in Redis: what is not there can be neither lost nor malformed.
"""

import time
from typing import Any, cast

import structlog
from kombu.transport import TRANSPORT_ALIASES, redis
from redis import Redis
from redis.exceptions import ResponseError

from offing.bus.skipping import SkippedMessages
from offing.bus.task_message import find_defect
from offing.bus.wake import ADVANCE, QUEUE

_skipped = SkippedMessages(f"queue {QUEUE}")

RENAME_OTHER_TYPE = """
    local kind = redis.call('TYPE', KEYS[1]).ok
    if kind == 'list' or kind == 'none' then return false end
    redis.call('RENAME', KEYS[1], KEYS[2])
    return kind
"""
"""At once: several processes meet the key, and what one of them has put in its place by then must not be renamed."""

log = structlog.get_logger()


class _Client(Redis):
    """Answers a blocking read with nothing where what was read is no message of ours."""

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        if command_name != "BRPOP":
            return super().parse_response(connection, command_name, **options)
        try:
            read = super().parse_response(connection, command_name, **options)
        except ResponseError as error:
            rename_wrong_type(self, error)
            return None
        if read and (defect := find_defect(cast(bytes, read[1]), ADVANCE)):
            _skipped.skip(defect, cast(bytes, read[1]))
            return None
        return read


class Channel(redis.Channel):  # pyright: ignore[reportUntypedBaseClass]
    """One queue, whose name is also its exchange's and its routing key."""

    ack_emulation = False

    def get_table(self, exchange: str) -> list[tuple[str, str, str]]:
        return [(exchange, "", exchange)]

    def _queue_bind(self, *_: Any) -> None:
        pass

    def _put(self, queue: str, message: Any, **more: Any) -> None:
        try:
            super()._put(queue, message, **more)
        except ResponseError as error:
            rename_wrong_type(self._create_client(), error)
            super()._put(queue, message, **more)

    def _size(self, queue: str) -> int:
        try:
            return cast(int, super()._size(queue))
        except ResponseError as error:
            rename_wrong_type(self._create_client(), error)
            return cast(int, super()._size(queue))

    def _get_client(self) -> type[Redis]:
        return _Client


class Transport(redis.Transport):  # pyright: ignore[reportUntypedBaseClass]
    Channel = Channel


def use_transport() -> None:
    """Have this transport serve every address of a Redis in this process."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"


def rename_wrong_type(client: Redis, error: ResponseError) -> None:
    """Put what is no list and stands under the queue's keys aside, and say so. Raises any other error again."""
    if not str(error).startswith("WRONGTYPE"):
        raise error
    for step in redis.PRIORITY_STEPS:
        key = f"{QUEUE}{Channel.sep}{step}" if step else QUEUE
        aside = f"{key}:aside:{time.time_ns()}"
        if kind := cast(bytes | None, client.eval(RENAME_OTHER_TYPE, 2, key, aside)):
            found = kind.decode()
            log.warning("a key of another type was in the queue's place; it was renamed", type=found, renamed_to=aside)

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false, reportIncompatibleMethodOverride=false
# kombu ships no types.
"""kombu's Redis transport, hardened against unexpected content in Redis.

No content under Offing's keys can crash a worker. A message that Offing did not write is skipped
before Celery sees it. If a key of another type is stored under the queue's name, the key is
renamed. Messages are notifications that are acknowledged on arrival, so Redis holds neither
copies of unacknowledged messages nor a table of queues: data that is not stored can be neither
lost nor malformed.
"""

import time
from typing import Any, cast

import structlog
from kombu.transport import TRANSPORT_ALIASES, redis
from redis import Redis
from redis.exceptions import ResponseError

from offing.bus.dispatch import ADVANCE_TASK, QUEUE_NAME
from offing.bus.skipped_messages import SkippedMessages
from offing.bus.task_message import find_defect

_skipped = SkippedMessages(f"queue {QUEUE_NAME}")

RENAME_OTHER_TYPE = """
    local kind = redis.call('TYPE', KEYS[1]).ok
    if kind == 'list' or kind == 'none' then return false end
    redis.call('RENAME', KEYS[1], KEYS[2])
    return kind
"""
"""The check and the rename are one atomic script. Several processes find the wrong key at the same
time, and none may rename the list that another one has already created under this name.
"""

log = structlog.get_logger()


class _Client(Redis):
    """A Redis client whose blocking read returns nothing if the message is not one of Offing's."""

    def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        if command_name != "BRPOP":
            return super().parse_response(connection, command_name, **options)
        try:
            read = super().parse_response(connection, command_name, **options)
        except ResponseError as error:
            rename_wrong_type(self, error)
            return None
        if read and (defect := find_defect(cast(bytes, read[1]), ADVANCE_TASK)):
            _skipped.skip(defect, cast(bytes, read[1]))
            return None
        return read


class Channel(redis.Channel):  # pyright: ignore[reportUntypedBaseClass]
    """One queue. Its name is also the name of its exchange and its routing key."""

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
    """Use this transport for all Redis URLs in this process."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"


def rename_wrong_type(client: Redis, error: ResponseError) -> None:
    """Rename keys of the queue that are not lists, and log a warning.

    Raises the error again if it has another cause.
    """
    if not str(error).startswith("WRONGTYPE"):
        raise error
    for step in redis.PRIORITY_STEPS:
        key = f"{QUEUE_NAME}{Channel.sep}{step}" if step else QUEUE_NAME
        aside = f"{key}:aside:{time.time_ns()}"
        if kind := cast(bytes | None, client.eval(RENAME_OTHER_TYPE, 2, key, aside)):
            key_type = kind.decode()
            log.warning("the key of the queue had another type; it was renamed", type=key_type, renamed_to=aside)

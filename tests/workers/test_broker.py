"""What several processes do at once about a key of another type in the queue's place."""

# pyright: reportUnknownMemberType=false

from typing import Any

import pytest
import redis
from redis.exceptions import ResponseError

from offing.bus.broker import rename_wrong_type
from offing.bus.dispatch import QUEUE_NAME

WRONG_TYPE = ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")


def test_a_list_that_another_process_has_made_meanwhile_is_not_renamed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outdated(_: redis.Redis, __: Any) -> bytes:
        return b"string"

    monkeypatch.setattr(redis.Redis, "type", outdated)
    with redis.Redis.from_url(redis_url) as client:
        client.lpush(QUEUE_NAME, b"a message")
        rename_wrong_type(client, WRONG_TYPE)
        assert client.lrange(QUEUE_NAME, 0, -1) == [b"a message"]


def test_a_key_that_another_process_has_renamed_already_is_no_error(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set(QUEUE_NAME, "another user's")
        rename_wrong_type(client, WRONG_TYPE)
        rename_wrong_type(client, WRONG_TYPE)
        (aside,) = client.keys(f"{QUEUE_NAME}:aside:*")
        assert client.get(aside) == b"another user's"

"""The messages that Offing writes are those that Celery and kombu write and read."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Celery has no type annotations.

import asyncio
import base64
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import Celery
from celery.contrib.testing.worker import start_worker

from offing.bus.broker import use_transport
from offing.bus.dispatch import ADVANCE_TASK, QUEUE_NAME, CeleryDispatcher, build_broker_url
from offing.bus.task_message import find_defect
from offing.clock import new_id


@pytest.fixture
def valkey(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as client:
        client.delete(QUEUE_NAME)
        yield client
        client.delete(QUEUE_NAME)


def celery_app(redis_url: str) -> Celery:
    """A Celery app with none of the settings of Offing's workers but the name of the queue."""
    use_transport()
    app = Celery("another", broker=build_broker_url(redis_url), set_as_current=False)
    app.conf.update(task_default_queue=QUEUE_NAME, task_ignore_result=True)
    return app


async def dispatch(redis_url: str, runs: int = 1) -> None:
    dispatcher = CeleryDispatcher(redis_url)
    await dispatcher([new_id() for _ in range(runs)])
    await dispatcher.close()


def read_message(valkey: redis.Redis) -> dict[str, Any]:
    raw: Any = valkey.rpop(QUEUE_NAME)
    assert find_defect(raw, ADVANCE_TASK) is None
    return json.loads(raw)


async def test_a_message_has_the_fields_and_values_of_one_that_celery_publishes(
    redis_url: str, valkey: redis.Redis
) -> None:
    await dispatch(redis_url)
    ours = read_message(valkey)
    await asyncio.to_thread(celery_app(redis_url).send_task, ADVANCE_TASK, ignore_result=True)
    theirs = read_message(valkey)
    assert ours.keys() == theirs.keys()
    assert ours["properties"].keys() == theirs["properties"].keys() - {"reply_to"}
    for message in (ours, theirs):
        arguments, named, _ = json.loads(base64.b64decode(message.pop("body")))
        assert (arguments, named) == ([], {})
        id = message["headers"].pop("id")
        assert message["headers"].pop("root_id") == message["properties"].pop("correlation_id") == id
        assert message["properties"].pop("delivery_tag")
    assert ours["properties"].items() <= theirs["properties"].items()
    assert ours["headers"].items() <= theirs["headers"].items()
    assert (ours["content-type"], ours["content-encoding"]) == (theirs["content-type"], theirs["content-encoding"])


@pytest.fixture
def unchanged_log_level() -> Iterator[None]:
    """Celery's worker sets the level of the root logger, which later tests of this process would keep."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


@pytest.mark.usefixtures("unchanged_log_level")
async def test_a_worker_of_celery_with_its_own_strategy_executes_a_message(redis_url: str, valkey: redis.Redis) -> None:
    app, executed = celery_app(redis_url), threading.Event()
    app.task(name=ADVANCE_TASK)(executed.set)
    worker: Any = start_worker(app, perform_ping_check=False, shutdown_timeout=30)
    with worker:
        await dispatch(redis_url)
        assert await asyncio.to_thread(executed.wait, 30)


async def test_each_eight_runs_of_a_dispatch_share_a_message(redis_url: str, valkey: redis.Redis) -> None:
    await dispatch(redis_url, runs=17)
    assert valkey.llen(QUEUE_NAME) == 3


async def test_a_dispatch_renames_a_key_of_another_type_and_is_sent(redis_url: str, valkey: redis.Redis) -> None:
    valkey.set(QUEUE_NAME, "another user's")
    await dispatch(redis_url)
    assert valkey.llen(QUEUE_NAME) == 1
    (aside,) = valkey.keys(f"{QUEUE_NAME}:aside:*")
    assert valkey.getdel(aside) == b"another user's"


async def test_a_dispatch_after_redis_has_closed_the_connection_is_sent(redis_url: str, valkey: redis.Redis) -> None:
    dispatcher = CeleryDispatcher(redis_url)
    await dispatcher([new_id()])
    valkey.client_kill_filter(_type="normal", skipme=True)
    await dispatcher([new_id()])
    await dispatcher.close()
    assert valkey.llen(QUEUE_NAME) == 2

"""Whatever somebody puts into Redis under our names, a real worker continues with the next valid message."""

# pyright: reportUnknownMemberType=false

import json
from collections.abc import Iterator

import pytest
import redis

from offing.bus.dispatch import QUEUE_NAME
from offing.core.run import Budget, RunStatus
from offing.services.runs import RunRequest
from tests.unit.bus.test_task_message import MALFORMED
from tests.workers.conftest import Platform, SharedServers

ENVIRONMENT = {"OFFING_SWEEP_INTERVAL_SECONDS": "600"}
"""Runs are found by messages alone."""

SECONDS = 20
"""For a run of two turns on a busy machine. A worker whose consumer ended needs longer, if it comes back."""


@pytest.fixture
def valkey(shared_servers: SharedServers) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(shared_servers.redis_url) as client:
        yield client


async def runs(platform: Platform) -> None:
    run = await platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=2)))
    assert (await platform.ended(run.id, SECONDS)).status is RunStatus.DONE


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_message_that_is_not_ours_is_skipped(shared_platform: Platform, valkey: redis.Redis, name: str) -> None:
    valkey.lpush(QUEUE_NAME, MALFORMED[name])
    await runs(shared_platform)


async def test_a_key_of_another_type_under_the_queues_name_is_renamed(
    shared_platform: Platform, valkey: redis.Redis
) -> None:
    valkey.delete(QUEUE_NAME)
    valkey.set(QUEUE_NAME, "another user's")
    await runs(shared_platform)
    (aside,) = valkey.keys(f"{QUEUE_NAME}:aside:*")
    assert valkey.get(aside) == b"another user's"


@pytest.mark.parametrize(
    "key", ["unacked", "unacked_index", "_kombu.binding.offing", "_kombu.binding_permanent.offing"]
)
async def test_what_stands_under_keys_of_celerys_own_does_not_matter(
    shared_platform: Platform, valkey: redis.Redis, key: str
) -> None:
    valkey.delete(key)
    valkey.set(key, "neither a hash nor a set")
    await runs(shared_platform)


async def test_a_watcher_of_control_notifications_skips_what_names_no_run(
    shared_platform: Platform, valkey: redis.Redis
) -> None:
    for content in (b"this is no run", b"\xff\xfe", b"", json.dumps(["x"]).encode(), b"x" * 1_000_000):
        assert valkey.publish("offing:control", content) == 1
        assert valkey.pubsub_numsub("offing:control") == [(b"offing:control", 1)]
    await runs(shared_platform)
    assert valkey.publish("offing:control", b"the watcher still listens") == 1

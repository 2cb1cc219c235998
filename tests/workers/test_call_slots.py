"""Limits of concurrent calls hold across processes, also when a process dies, and calls wait in order."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import redis

from offing.bus.call_slots import RedisCallSlots
from offing.cancellation import cancel_tasks
from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode, RunStatus
from offing.models.call_limits import LIMITS_VARIABLE, CallLimit
from offing.services import providers
from offing.services.providers import ProviderRequest
from offing.services.runs import RunRequest, cancel_run
from offing.storage.metric_queries import list_tenant_metrics
from offing.storage.runs import RunRow
from offing.telemetry.metrics import EngineMetric
from tests.model_provider import Completion, Slow, WireServer
from tests.ports import free_port
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import LEASE
from tests.workers.rollout_batches import Sql

ONE, TWO = CallLimit("shared", 1), CallLimit("shared", 2)

HOLDER = """
import asyncio, sys
from offing.bus.call_slots import RedisCallSlots
from offing.models.call_limits import CallLimit

async def main():
    slots = RedisCallSlots(sys.argv[1], float(sys.argv[2]))
    async with slots.hold(CallLimit("shared", 2)):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""
SLOW = Slow(Completion('{"word": "one"}'), 0.4)


@asynccontextmanager
async def opened(redis_url: str, lease_seconds: float = 2.0) -> AsyncGenerator[RedisCallSlots]:
    slots = RedisCallSlots(redis_url, lease_seconds)
    try:
        yield slots
    finally:
        await slots.close()


async def test_two_pools_share_the_slots_in_the_order_in_which_their_calls_came(redis_url: str) -> None:
    active, most, order = 0, 0, list[int]()

    async def call(slots: RedisCallSlots, number: int) -> bool:
        nonlocal active, most
        async with slots.hold(TWO) as has_waited:
            active, order[len(order) :] = active + 1, [number]
            most = max(most, active)
            await asyncio.sleep(1)
            active -= 1
            return has_waited

    async with opened(redis_url) as one, opened(redis_url) as two:
        calls = list[asyncio.Task[bool]]()
        for number in range(8):
            calls.append(asyncio.create_task(call((one, two)[number % 2], number)))
            await asyncio.sleep(0.15)
        waited = await asyncio.gather(*calls)
    assert (most, order, waited) == (2, [*range(8)], [False, False, *[True] * 6])


async def test_limits_of_other_scopes_and_released_slots_do_not_count(redis_url: str) -> None:
    async with opened(redis_url) as slots, opened(redis_url) as others:
        async with asyncio.timeout(10), slots.hold(ONE), others.hold(CallLimit("another", 1)) as has_waited:
            assert not has_waited
        async with asyncio.timeout(10), others.hold(ONE) as has_waited:
            assert not has_waited
    with redis.Redis.from_url(redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        assert client.keys("offing:slots:*") == []  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=lambda one: one.name)
async def test_the_slot_of_a_process_that_was_killed_or_stopped_is_free_after_its_lease(
    redis_url: str, how: signal.Signals
) -> None:
    arguments = (sys.executable, "-c", HOLDER, redis_url, "2")
    holder = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    assert holder.stdout is not None
    try:
        assert await holder.stdout.readline() == b"held\n"
        async with opened(redis_url) as alive, opened(redis_url) as slots, alive.hold(TWO):
            await asyncio.sleep(2.5)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5), slots.hold(TWO):
                    pytest.fail("both holders are alive and renew their slots")
            holder.send_signal(how)
            began = time.monotonic()
            async with asyncio.timeout(10), slots.hold(TWO) as has_waited:
                assert has_waited
                assert 0.5 < time.monotonic() - began < 6
    finally:
        if how is signal.SIGSTOP:
            holder.kill()
        await holder.wait()


async def test_a_waiting_call_that_is_cancelled_does_not_hold_up_the_others(redis_url: str) -> None:
    async with opened(redis_url, 60) as holding, opened(redis_url, 60) as one, opened(redis_url, 60) as two:
        async with holding.hold(ONE):
            first = asyncio.create_task(one.hold(ONE).__aenter__())
            await asyncio.sleep(0.3)
            second = asyncio.create_task(two.hold(ONE).__aenter__())
            await asyncio.sleep(0.3)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert not second.done()
        async with asyncio.timeout(30):
            assert await second


async def test_no_slot_is_renewed_after_its_call(redis_url: str) -> None:
    async with opened(redis_url, 0.003) as slots:
        for number in range(30):  # each call ends at another moment of a renewal
            async with slots.hold(CallLimit("shared", 30)):
                await asyncio.sleep(0.001 + number / 15_000)
        renewals = asyncio.all_tasks() - {asyncio.current_task()}
        await cancel_tasks(renewals)
    assert not renewals


async def test_slots_that_redis_has_lost_are_counted_again(redis_url: str) -> None:
    async with opened(redis_url, 0.9) as one, opened(redis_url, 0.9) as two, one.hold(ONE):
        with redis.Redis.from_url(redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
            client.flushall()  # pyright: ignore[reportUnknownMemberType]
        await asyncio.sleep(0.5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5), two.hold(ONE):
                pytest.fail("the call in progress has the only slot")


async def test_without_redis_the_limit_holds_for_the_process_alone() -> None:
    async with opened(f"redis://127.0.0.1:{free_port()}/0") as slots:
        async with asyncio.timeout(5), slots.hold(ONE):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3), slots.hold(ONE):
                    pytest.fail("this process has the only slot")
        async with asyncio.timeout(5), slots.hold(ONE) as has_waited:
            assert not has_waited


def asking(model: str, api_base: str = "") -> RunRequest:
    config = EngineConfig(engine="litellm", model=model, api_base=api_base, options={"output_mode": "text"})
    return RunRequest("Count for me", "counting", budget=Budget(max_turns=1), engines={"speaker": config})


async def run_all(platform: Platform, sql: Sql, requests: list[RunRequest]) -> list[RunRow]:
    """The runs once all have ended, which two workers have advanced at the same time."""
    submitted = [await platform.submit(one) for one in requests]
    while len(sql("select distinct worker from app.run where worker is not null")) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    ended = [await platform.ended(one.id) for one in submitted]
    assert {run.status for run in ended} == {RunStatus.DONE}
    return ended


@pytest.mark.parametrize("limit", [1, 2])
async def test_two_workers_together_keep_to_the_limit_of_a_stored_provider_and_record_the_waits(
    platform: Platform, start_worker: StartWorker, sql: Sql, limit: int
) -> None:
    async with WireServer(lambda _: SLOW) as server:
        stored = ProviderRequest("mine", "openai", server.url, "the-stored-key", limit)
        await providers.put_provider(platform.database, platform.tenant, stored)
        for _ in range(2):
            start_worker(OFFING_WORKER_CONCURRENCY="3")
        ended = await run_all(platform, sql, [asking("mine/m")] * 6)
    assert server.most_at_once == limit
    assert len(server.requests) == 6
    waits = [
        step.payload["slot_wait_ms"]
        for run in ended
        for step in await platform.steps(run.id)
        if "slot_wait_ms" in step.payload
    ]
    assert len(waits) >= 3
    assert max(waits) > 300
    async with platform.database.transaction(platform.tenant) as connection:
        rows = [row for row in await list_tenant_metrics(connection) if isinstance(row, EngineMetric)]
    (waited,) = [row for row in rows if row.slot_wait_count]
    assert (waited.role, waited.slot_wait_count) == ("speaker", len(waits))
    assert waited.slot_wait_seconds == pytest.approx(sum(waits) / 1000)


async def test_the_limit_of_an_address_holds_for_engines_that_name_it(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    async with WireServer(lambda _: SLOW) as server:
        for _ in range(2):
            start_worker(OFFING_WORKER_CONCURRENCY="3", **{LIMITS_VARIABLE: f"{server.url}=1"})
        await run_all(platform, sql, [asking(f"openai/{number}", api_base=server.url) for number in range(4)])
    assert server.most_at_once == 1


async def test_the_slot_of_a_killed_worker_is_not_lost(platform: Platform, start_worker: StartWorker) -> None:
    replies = iter([Slow(Completion("late"), 600)])
    async with WireServer(lambda _: next(replies, SLOW)) as server:
        stored = ProviderRequest("mine", "openai", server.url, "the-stored-key", 1)
        await providers.put_provider(platform.database, platform.tenant, stored)
        killed = start_worker()
        first = await platform.submit(asking("mine/m"))
        while not server.requests:  # noqa: ASYNC110  the server has no event for this
            await asyncio.sleep(0.02)
        start_worker()
        killed.kill()
        began = time.monotonic()
        second = await platform.submit(asking("mine/m"))
        for run in (first, second):
            assert (await platform.ended(run.id)).status is RunStatus.DONE
    assert server.gaps[0] > 0.1
    assert time.monotonic() - began < 4 * LEASE + 10


async def test_a_run_that_is_cancelled_while_its_call_waits_ends_at_once(
    platform: Platform, start_worker: StartWorker
) -> None:
    async with WireServer(lambda _: Slow(Completion("late"), 600)) as server:
        stored = ProviderRequest("mine", "openai", server.url, "the-stored-key", 1)
        await providers.put_provider(platform.database, platform.tenant, stored)
        start_worker()
        holding = await platform.submit(asking("mine/m"))
        while not server.requests:  # noqa: ASYNC110  the server has no event for this
            await asyncio.sleep(0.02)
        waiting = await platform.submit(asking("mine/m"))
        await platform.running(waiting.id)
        for run in (waiting, holding):
            await cancel_run(platform.database, platform.notifier, platform.tenant, run.id, CancelMode.DISCARD)
            assert (await platform.ended(run.id, 20)).status is RunStatus.CANCELLED
    assert len(server.requests) == 1

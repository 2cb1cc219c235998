"""Followers of one run share what they read, and never get a state from before an event that has arrived."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from uuid import UUID, uuid4

import pytest

from offing.api import feed
from offing.api.run_reads import SHARED_SECONDS, SharedRunReads
from offing.api.serialized_once import SerializedOnce
from offing.bus.live import LiveBus
from offing.core.errors import NotFound
from offing.storage.pool import Database
from tests.api.conftest import Api


class CountedDatabase(Database):
    """Counts the transactions."""

    count = 0

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False):  # type: ignore[override]
        self.count += 1
        async with super().transaction(tenant_id, pipelined=pipelined) as connection:
            yield connection


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def counted(app_url: str) -> AsyncGenerator[CountedDatabase]:
    async with CountedDatabase(app_url, max_connections=4) as database:
        yield database


async def test_followers_at_the_same_time_share_one_read(api: Api, counted: CountedDatabase) -> None:
    run = await api.submit()
    reads = SharedRunReads(counted, api.hands.live, 3)
    with reads.follow(api.tenant, [run]):
        states = await asyncio.gather(*(reads.get_state(api.tenant, run, float("-inf")) for _ in range(20)))
        pages = await asyncio.gather(*(reads.list_steps(api.tenant, run, 0, 10) for _ in range(20)))
    assert counted.count == 2
    assert all(state is states[0] for state in states)
    assert [step.seq for step in pages[0]] == [1]


async def test_a_state_is_shared_for_a_short_time_unless_an_event_arrives(api: Api, counted: CountedDatabase) -> None:
    run = await api.submit()
    clock, bus = Clock(), api.hands.live
    reads = SharedRunReads(counted, bus, 3, clock)
    async with bus.subscribe(api.tenant, [run]) as events:
        with reads.follow(api.tenant, [run]):
            first = await reads.get_state(api.tenant, run, clock.now)
            clock.now += SHARED_SECONDS / 2
            assert await reads.get_state(api.tenant, run, float("-inf")) is first
            assert await reads.get_state(api.tenant, run, clock.now) is not first
            fence = await api.hands.claim(run)
            await api.hands.notes(fence, ["one"])
            await anext(events)
            after_event = await reads.get_state(api.tenant, run, float("-inf"))
            assert after_event.detail.step_marks == "nn"
            clock.now += 2 * SHARED_SECONDS
            assert await reads.get_state(api.tenant, run, float("-inf")) is not after_event


async def test_a_follower_who_hangs_up_does_not_end_the_read_of_another(api: Api, counted: CountedDatabase) -> None:
    run = await api.submit()
    reads = SharedRunReads(counted, api.hands.live, 3)
    with reads.follow(api.tenant, [run]):
        first = asyncio.create_task(reads.get_state(api.tenant, run, float("-inf")))
        second = asyncio.create_task(reads.get_state(api.tenant, run, float("-inf")))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).detail.summary.run.id == run
    assert counted.count == 1


async def test_a_read_that_failed_is_not_shared_with_later_followers(api: Api, counted: CountedDatabase) -> None:
    missing = uuid4()
    reads = SharedRunReads(counted, LiveBus("unix:///nowhere"), 3, Clock())
    with reads.follow(api.tenant, [missing]):
        for _ in range(2):
            with pytest.raises(NotFound):
                await reads.get_state(api.tenant, missing, float("-inf"))
    assert counted.count == 2


async def test_what_was_read_of_a_run_is_dropped_with_its_last_follower(api: Api, counted: CountedDatabase) -> None:
    run = await api.submit()
    reads = SharedRunReads(counted, api.hands.live, 3, Clock())
    with reads.follow(api.tenant, [run]):
        with reads.follow(api.tenant, [run]):
            await reads.get_state(api.tenant, run, float("-inf"))
        await reads.get_state(api.tenant, run, float("-inf"))
        assert counted.count == 1
    with reads.follow(api.tenant, [run]):
        await reads.get_state(api.tenant, run, float("-inf"))
    assert counted.count == 2


async def test_followers_for_whom_the_state_of_a_run_is_due_share_one_read(
    api: Api, counted: CountedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MIN_STATE_INTERVAL_SECONDS", 3)
    run = await api.submit()
    fence = await api.hands.claim(run)
    reads = SharedRunReads(counted, api.hands.live, 60)

    async def follow_until_note(is_connected: asyncio.Event) -> int:
        events = feed.RunEventFeed(counted, api.hands.live, reads, api.tenant, {run: 0}, reauthenticate=stay_allowed)
        async with aclosing(events.events()) as stream:
            async for event in stream:
                if isinstance(event, feed.StepFeedEvent):
                    is_connected.set()
                if isinstance(event, feed.RunFeedEvent) and event.detail.step_marks == "nn":
                    return counted.count
        raise AssertionError("the stream ended")

    connected = [asyncio.Event() for _ in range(8)]
    followers = [asyncio.create_task(follow_until_note(one)) for one in connected]
    await asyncio.gather(*(one.wait() for one in connected))
    before = counted.count
    await api.hands.notes(fence, ["one"])
    await asyncio.gather(*followers)
    assert counted.count == before + 1


async def stay_allowed() -> None:
    """A caller who may still read."""


def test_a_value_is_serialized_once_as_long_as_it_is_the_same_object() -> None:
    texts, calls = SerializedOnce(max_bytes=8), list[str]()

    def serialize() -> bytes:
        calls.append("called")
        return b"text"

    one, equal, third = [1], [1], [3]
    for value in (one, one, equal, equal, one, third, equal):
        texts.get(value, serialize)
    assert len(calls) == 4


def test_the_texts_of_long_values_are_not_kept_beyond_their_bytes() -> None:
    texts, calls = SerializedOnce(max_bytes=100), list[int]()

    def serialize(length: int) -> bytes:
        calls.append(length)
        return b"x" * length

    short, long, longer = [1], [2], [3]
    for value, length in ((short, 30), (long, 60), (short, 30), (longer, 50), (short, 30), (long, 60)):
        assert len(texts.get(value, lambda length=length: serialize(length))) == length
    assert calls == [30, 60, 50, 60]
    assert texts.byte_count <= 100
    assert len(texts.get([4], lambda: serialize(101))) == 101
    assert texts.byte_count == 0

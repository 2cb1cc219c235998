# pyright: reportUnknownMemberType=false
"""The live bus by itself, with a Valkey that a test may stop, kill and start again."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from offing.bus import live
from offing.bus.live import LiveBus
from offing.bus.live_events import ActionEvent, BusEvent, CurrentAction, ResyncEvent, StepsEvent
from offing.bus.subscriber import MAX_INBOX_EVENTS, Subscriber
from offing.clock import new_id
from offing.core.step import Step, StepKind

TENANT, RUN = new_id(), new_id()

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No publisher gives up for slowness, and nobody continues before he is subscribed."""
    monkeypatch.setattr(live, "PUBLISH_TIMEOUT_SECONDS", PATIENCE)


def a_step(seq: int) -> Step:
    return Step(
        seq=seq, kind=StepKind.NOTE, title=f"step {seq}", payload={"secret": "no"}, label="note", detail="", ok=True,
        ms=None, tokens=0, turn=0, at=datetime(2026, 11, 21, tzinfo=UTC), fence=1,
    )  # fmt: skip


@dataclass
class Valkey:
    """A server of this test's own."""

    program: Path
    socket: Path
    child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        argv = [self.program, "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no"]
        self.child = subprocess.Popen([*map(str, argv)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + PATIENCE
        while not self.socket.exists():
            assert time.monotonic() < give_up
            time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        assert self.child is not None
        os.kill(self.child.pid, number)

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None
            self.socket.unlink(missing_ok=True)


@pytest.fixture
async def valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    from offing.local.keyvalue import choose_program

    server = Valkey(choose_program(), tmp_path / "v.sock")
    server.start()
    yield server
    server.kill()


async def until(follower: Subscriber, expected: Callable[[BusEvent], bool]) -> BusEvent:
    async with asyncio.timeout(PATIENCE):
        async for notice in follower:
            if expected(notice):
                return notice
    raise AssertionError("a follower never ends")


async def test_notices_arrive_in_order_without_payload_and_only_for_the_runs_followed(redis_url: str) -> None:
    other_run, other_tenant = new_id(), new_id()
    async with LiveBus(redis_url) as here, LiveBus(redis_url) as there, here.subscribe(TENANT, [RUN]) as follower:
        await there.publish_steps(TENANT, other_run, [a_step(1)])
        await there.publish_steps(other_tenant, RUN, [a_step(2)])
        await there.publish_steps(TENANT, RUN, [a_step(3), a_step(4)])
        await there.publish_action(TENANT, RUN, "reading", datetime(2026, 1, 1, tzinfo=UTC))
        await there.publish_action(TENANT, RUN, None)
        seen = [await until(follower, lambda n: not isinstance(n, ResyncEvent)) for _ in range(3)]
    assert isinstance(seen[0], StepsEvent)
    assert [s.seq for s in seen[0].steps] == [3, 4]
    assert seen[0].steps[0] == replace(a_step(3), payload={}, fence=0)
    assert seen[1:] == [
        ActionEvent(RUN, CurrentAction("reading", datetime(2026, 1, 1, tzinfo=UTC))),
        ActionEvent(RUN, None),
    ]


async def test_what_a_run_does_can_be_asked_for_until_it_is_withdrawn(redis_url: str) -> None:
    async with LiveBus(redis_url) as bus:
        assert (await bus.find_activity(TENANT, RUN)).action is None
        await bus.publish_action(TENANT, RUN, "x" * 1000, datetime(2026, 1, 1, tzinfo=UTC))
        known = (await bus.find_activity(TENANT, RUN)).action
        assert known is not None
        assert (len(known.text), known.started_at) == (300, datetime(2026, 1, 1, tzinfo=UTC))
        assert await bus.find_current_action(TENANT, RUN) == known
        await bus.publish_action(TENANT, RUN, None)
        assert (await bus.find_activity(TENANT, RUN)).action is None


async def test_many_steps_at_once_and_a_full_inbox_become_a_look(redis_url: str) -> None:
    async with LiveBus(redis_url) as bus, bus.subscribe(TENANT, [RUN]) as follower:
        await until(follower, lambda n: isinstance(n, ResyncEvent))
        await bus.publish_steps(TENANT, RUN, [a_step(n) for n in range(live.MAX_STEPS_PER_EVENT + 1)])
        assert isinstance(await anext(follower), ResyncEvent)
        for n in range(MAX_INBOX_EVENTS + 10):
            follower.offer(StepsEvent(RUN, (a_step(n),)))
        assert isinstance(await anext(follower), ResyncEvent)
        rest = [await anext(follower) for _ in range(9)]
        assert [n.steps[0].seq for n in rest if isinstance(n, StepsEvent)] == list(
            range(MAX_INBOX_EVENTS + 1, MAX_INBOX_EVENTS + 10)
        )


async def test_a_message_that_cannot_be_read_is_a_reason_to_look(redis_url: str) -> None:
    async with LiveBus(redis_url) as bus, bus.subscribe(TENANT, [RUN]) as follower:
        await until(follower, lambda n: isinstance(n, ResyncEvent))
        for body in (b"", b"{", b"{}", b'{"steps": [[1]]}', b'{"doing": {"text": 1}}'):
            await bus._redis.publish(f"offing:live:{TENANT}:{RUN}", body)  # pyright: ignore[reportPrivateUsage]
            assert isinstance(await anext(follower), ResyncEvent)
        await bus.publish_steps(TENANT, RUN, [a_step(1)])
        assert isinstance(await anext(follower), StepsEvent)


MALFORMED_LIVE = {
    "a seq that is text": b'{"steps": [["1", "note", "t", "l", "d", true, null, 0, 0, "2026-01-01T00:00:00Z", null]]}',
    "a title that is a list": b'{"steps": [[1, "note", [], "l", "d", true, null, 0, 0, "2026-01-01T00:00:00Z", null]]}',
    "a summary that nobody knows": b'{"steps": [[1, "note", "t", "l", "d", true, null, 0, 0, "2026-01-01T00:00:00Z", '
    b'["x", {}]]]}',
    "words that are a number": b'{"doing": {"text": 7, "since": "2026-01-01T00:00:00+00:00"}}',
    "a time without an offset": b'{"doing": {"text": "x", "since": "2026-01-01T00:00:00"}}',
    "a number": b"7",
    "bytes": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", MALFORMED_LIVE)
async def test_an_update_with_fields_of_other_types_reaches_no_watcher(redis_url: str, name: str) -> None:
    async with LiveBus(redis_url) as bus, bus.subscribe(TENANT, [RUN]) as follower:
        await until(follower, lambda n: isinstance(n, ResyncEvent))
        await bus._redis.publish(f"offing:live:{TENANT}:{RUN}", MALFORMED_LIVE[name])  # pyright: ignore[reportPrivateUsage]
        assert isinstance(await anext(follower), ResyncEvent)
        await bus.publish_steps(TENANT, RUN, [a_step(1)])
        assert isinstance(await anext(follower), StepsEvent)


@pytest.mark.parametrize("content", [b"no JSON", b"[1]", b'{"text": 1, "since": "now"}', b"\xff"])
async def test_what_a_run_does_is_unknown_where_something_else_is_stored(redis_url: str, content: bytes) -> None:
    async with LiveBus(redis_url) as bus:
        await bus._redis.set(f"offing:doing:{TENANT}:{RUN}", content)  # pyright: ignore[reportPrivateUsage]
        assert (await bus.find_activity(TENANT, RUN)).action is None
        await bus.publish_action(TENANT, RUN, "reading")
        assert (known := (await bus.find_activity(TENANT, RUN)).action) is not None
        assert known.text == "reading"


async def test_what_a_run_does_is_unknown_where_a_key_has_another_type(redis_url: str) -> None:
    async with LiveBus(redis_url) as bus:
        await bus._redis.delete(key := f"offing:doing:{TENANT}:{RUN}")  # pyright: ignore[reportPrivateUsage]
        await bus._redis.lpush(key, "x")  # pyright: ignore
        assert (await bus.find_activity(TENANT, RUN)).action is None
        assert bus.failure_count == 0
        await bus._redis.delete(key)  # pyright: ignore[reportPrivateUsage]


async def publish_until_received(bus: LiveBus, follower: Subscriber, seq: int) -> StepsEvent:
    """Publishes a step again and again: at first publishing may rest, or a subscription may be on its way."""
    async with asyncio.timeout(PATIENCE):
        while True:
            await bus.publish_steps(TENANT, RUN, [a_step(seq)])
            if isinstance(received := await follower.next(0.2), StepsEvent):
                return received


async def test_followers_survive_the_death_of_redis_and_hear_again_from_the_next_one(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RESYNC_CONNECTED_SECONDS", 3600)
    async with LiveBus(valkey.url) as bus, bus.subscribe(TENANT, [RUN]) as follower:
        await bus.publish_steps(TENANT, RUN, [a_step(1)])
        await until(follower, lambda n: isinstance(n, StepsEvent))
        valkey.kill()
        await until(follower, lambda n: isinstance(n, ResyncEvent))
        began = time.monotonic()
        await bus.publish_steps(TENANT, RUN, [a_step(2)])
        assert time.monotonic() - began < PATIENCE / 2
        async with asyncio.timeout(PATIENCE):
            await anext(follower)
        assert (bus.is_connected, bus.failure_count > 0) == (False, True)
        valkey.start()
        async with asyncio.timeout(PATIENCE):
            while not bus.is_connected:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await publish_until_received(bus, follower, 3)).steps[0].seq == 3


async def test_a_redis_that_hangs_costs_a_publisher_one_wait_and_then_nothing(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PUBLISH_TIMEOUT_SECONDS", 2.0)
    monkeypatch.setattr(live, "PAUSE_AFTER_TIMEOUT_SECONDS", 3600)
    async with LiveBus(valkey.url) as bus:
        await bus.publish_steps(TENANT, RUN, [a_step(1)])
        assert bus.failure_count == 0
        valkey.signal(signal.SIGSTOP)
        async with asyncio.timeout(PATIENCE):
            await bus.publish_steps(TENANT, RUN, [a_step(2)])
        for n in range(100):
            await bus.publish_steps(TENANT, RUN, [a_step(n)])
            assert (await bus.find_activity(TENANT, RUN)).action is None
        assert bus.failure_count == 1
        valkey.signal(signal.SIGCONT)


async def test_a_watcher_that_is_cancelled_in_the_middle_disturbs_no_other(redis_url: str) -> None:
    async with LiveBus(redis_url) as bus, bus.subscribe(TENANT, [RUN]) as follower:
        await until(follower, lambda n: isinstance(n, ResyncEvent))

        async def watch() -> None:
            async with bus.subscribe(TENANT, [new_id() for _ in range(5)]) as mine:
                await anext(mine)

        watchers = [asyncio.create_task(watch()) for _ in range(20)]
        await asyncio.sleep(0)
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        await bus.publish_steps(TENANT, RUN, [a_step(1)])
        assert isinstance(await anext(follower), StepsEvent)
        assert (bus.failure_count, bus.subscriber_count) == (0, 1)


async def test_who_leaves_and_comes_back_is_subscribed_again(redis_url: str) -> None:
    async with LiveBus(redis_url) as bus:
        for n in range(5):
            async with bus.subscribe(TENANT, [RUN]) as follower:
                await bus.publish_steps(TENANT, RUN, [a_step(n)])
                received = await until(follower, lambda n: isinstance(n, StepsEvent))
                assert isinstance(received, StepsEvent)
                assert received.steps[0].seq == n
        assert bus.subscriber_count == 0


async def test_what_is_published_after_closing_opens_no_connection(redis_url: str) -> None:
    async with LiveBus(redis_url) as bus:
        await bus.publish_steps(TENANT, RUN, [a_step(1)])
    with redis.Redis.from_url(redis_url) as client:
        before: Any = client.client_list()
        await bus.publish_action(TENANT, RUN, "late")
        after: Any = client.client_list()
        assert [one["id"] for one in after] == [one["id"] for one in before]
        assert client.keys() == []


async def test_who_subscribes_after_closing_gets_resync_events_and_opens_no_connection(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RESYNC_DISCONNECTED_SECONDS", 0.01)
    before = asyncio.all_tasks()
    async with LiveBus(redis_url) as bus:
        pass
    async with bus.subscribe(TENANT, [RUN]) as follower:
        assert isinstance(await anext(follower), ResyncEvent)
        assert not follower.is_confirmed
        assert not await bus.is_reachable()
        assert asyncio.all_tasks() == before

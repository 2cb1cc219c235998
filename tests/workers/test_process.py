"""The process around the slices: it drains what it claims too late, and its watchers outlive their faults."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr

import offing_workers.process
from offing.core.model import EngineChoice
from offing.core.run import Budget, CancelMode, Fence, RunStatus
from offing.services.graphs import installed
from offing.services.runs import RunRequest, cancel
from offing.settings import Settings
from offing.storage.heartbeat import HeartbeatConnection
from offing.storage.runs import Wish
from offing_workers.hold import Drain
from offing_workers.process import WorkerProcess
from offing_workers.slice import Slice
from tests.workers.collecting import Collector
from tests.workers.conftest import Platform
from tests.workers.processes import ALL_GRAPHS


@pytest.fixture
def process(app_url: str, redis_url: str) -> Iterator[WorkerProcess]:
    """A worker process's inside, in this one, without Celery: tests say which run to look at."""
    settings = Settings(
        app_database_url=SecretStr(app_url),
        redis_url=SecretStr(redis_url),
        lease_seconds=1,
        heartbeat_seconds=0.1,
        sweep_seconds=60,
        worker_concurrency=2,
    )
    process = WorkerProcess(settings, installed(ALL_GRAPHS), app_url, redis_url)
    process.start()
    yield process
    process.stop()
    loop, kombu = process._loop, process._wake._app  # pyright: ignore[reportPrivateUsage]
    while loop.is_running():
        time.sleep(0.005)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    kombu.pool.force_close_all()  # pyright: ignore[reportUnknownMemberType]


def slow(turns: int, ms: int) -> RunRequest:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": ms}
    engines = {"speaker": EngineChoice(engine="scripted", options=options)}
    return RunRequest("Count", "counting", budget=Budget(turns=turns), engines=engines)


async def test_a_run_claimed_while_the_process_drains_is_handed_back(
    platform: Platform, process: WorkerProcess
) -> None:
    run = await platform.submit(slow(1000, 20))
    process.drain()
    late = threading.Thread(target=process._wait, args=(process._advance(run.id),))  # pyright: ignore[reportPrivateUsage]
    late.start()
    await platform.until(run.id, lambda row: row.fence == 1 and row.status is RunStatus.QUEUED, 5)
    late.join(5)
    assert not late.is_alive()


@dataclass
class Handed:
    """A run that was handed back, and is claimed again by the same process while its first slice still tells of it."""

    run: UUID
    first: threading.Thread
    second: threading.Thread
    go_on: asyncio.Event

    async def tell(self, process: WorkerProcess) -> None:
        """Let the first slice finish telling."""
        process._loop.call_soon_threadsafe(self.go_on.set)  # pyright: ignore[reportPrivateUsage]
        await asyncio.to_thread(self.first.join, 20)
        assert not self.first.is_alive()


async def handed_back(platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> Handed:
    """A run whose slice has handed it back, and does not get done with telling of it."""
    telling, go_on = threading.Event(), asyncio.Event()

    async def tell(_: UUID) -> None:
        telling.set()
        await go_on.wait()

    monkeypatch.setattr(process, "wake", tell)
    run = (await platform.submit(slow(1000, 500))).id
    first, second = (threading.Thread(target=process.advance, args=(run,)) for _ in range(2))
    first.start()
    await platform.until(run, lambda row: row.fence == 1 and row.last_seq > 2)
    (hold,) = process._holds.values()  # pyright: ignore[reportPrivateUsage]
    process._loop.call_soon_threadsafe(hold.drain, Drain.SLICE_OVER)  # pyright: ignore[reportPrivateUsage]
    assert await asyncio.to_thread(telling.wait, 20)
    return Handed(run, first, second, go_on)


async def claimed_again(platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> Handed:
    handed = await handed_back(platform, process, monkeypatch)
    handed.second.start()
    await platform.until(handed.run, lambda row: row.fence == 2 and row.status is RunStatus.RUNNING)
    return handed


async def test_a_run_that_was_claimed_again_while_its_last_slice_told_of_it_hears_of_its_cancellation(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = await claimed_again(platform, process, monkeypatch)
    await handed.tell(process)
    await cancel(platform.database, platform.hints, platform.tenant, handed.run, CancelMode.DISCARD)
    assert (await platform.ended(handed.run)).status is RunStatus.CANCELLED
    await asyncio.to_thread(handed.second.join, 20)


async def test_a_run_that_was_claimed_again_while_its_last_slice_told_of_it_has_a_heartbeat_and_is_drained(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = await claimed_again(platform, process, monkeypatch)
    await handed.tell(process)
    (hold,) = process._holds.values()  # pyright: ignore[reportPrivateUsage]
    assert (hold.fence.run, hold.fence.number) == (handed.run, 2)
    process.drain()
    await platform.until(handed.run, lambda row: row.status is RunStatus.QUEUED)
    assert hold.draining is Drain.SHUTDOWN
    await asyncio.to_thread(handed.second.join, 20)
    assert not process._holds  # pyright: ignore[reportPrivateUsage]


async def test_a_heartbeat_does_not_cut_off_a_slice_that_has_handed_its_run_back(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = await handed_back(platform, process, monkeypatch)
    await asyncio.sleep(0.5)  # some heartbeats
    assert handed.first.is_alive()
    await handed.tell(process)


async def test_a_heart_that_stumbles_beats_on(
    platform: Platform, app_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    beats: list[float] = []

    class Stumbling(HeartbeatConnection):
        def beat(self, held: Sequence[Fence], term: float) -> list[Wish]:
            beats.append(time.monotonic())
            if len(beats) == 2:
                raise RuntimeError("on purpose")
            return super().beat(held, term)

    monkeypatch.setattr(offing_workers.process, "HeartbeatConnection", Stumbling)
    process: WorkerProcess = request.getfixturevalue("process")
    run = await platform.submit(slow(60, 30))
    thread = threading.Thread(target=process.advance, args=(run.id,))
    thread.start()
    ended = await platform.ended(run.id)
    thread.join(5)
    assert (ended.status, ended.fence) == (RunStatus.DONE, 1)
    assert len(beats) > 5


async def test_a_rollout_whose_end_a_heartbeat_takes_for_a_loss_is_settled_at_once(
    collector: Collector, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beat asks after a run that has just ended. No sweep is near that would settle it."""
    stored = Slice._let_go  # pyright: ignore[reportPrivateUsage]

    async def cut_off(slice: Slice, *given: Any, **more: Any) -> None:
        await stored(slice, *given, **more)
        slice._hold.lose()  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0)

    monkeypatch.setattr(Slice, "_let_go", cut_off)
    await collector.collect(size=2)
    runs = [member.run for member in await collector.members()]
    await asyncio.to_thread(process.advance, *runs)
    assert [member.outcome for member in await collector.members()] == ["answered"] * 2
    assert (await collector.group()).group.state == "complete"


async def test_a_watcher_that_is_told_nonsense_watches_on(platform: Platform, process: WorkerProcess) -> None:
    bus = platform.hints._control._redis  # pyright: ignore[reportPrivateUsage]
    await bus.publish("offing:control", "this is no run")  # pyright: ignore[reportUnknownMemberType]
    await asyncio.sleep(0.1)
    assert not any(w.done() for w in process._watchers)  # pyright: ignore[reportPrivateUsage]


async def test_a_process_takes_no_more_runs_of_a_message_at_once_than_it_has_room_for(
    platform: Platform, process: WorkerProcess
) -> None:
    ids = [(await platform.submit(slow(3, 20))).id for _ in range(5)]
    thread = threading.Thread(target=process.advance, args=ids)
    thread.start()
    most = 0
    while thread.is_alive():
        async with platform.database.transaction(platform.tenant) as connection:  # all at one moment
            cursor = await connection.execute("select count(*) from app.run where status = 'running'")
            most = max(most, *[n for (n,) in await cursor.fetchall()])
    assert most == 2
    assert [(await platform.run(id)).status for id in ids] == [RunStatus.DONE] * 5


async def test_runs_that_wait_for_room_in_a_process_that_drains_are_hinted_at_again(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[UUID] = []

    async def tell(run: UUID) -> None:
        told.append(run)

    monkeypatch.setattr(process, "wake", tell)
    ids = [(await platform.submit(slow(1000, 20))).id for _ in range(4)]
    thread = threading.Thread(target=process.advance, args=ids)
    thread.start()
    await platform.until(ids[1], lambda row: row.status is RunStatus.RUNNING)
    process.drain()
    await asyncio.to_thread(thread.join, 5)
    assert [(await platform.run(id)).fence for id in ids] == [1, 1, 0, 0]
    assert sorted(told) == sorted(ids)  # two were handed back, two were never taken


async def test_a_process_sweeps_for_as_many_runs_as_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, swept = list[int](), asyncio.Event()

    async def sweep(_: object, __: float, ___: float, most: int) -> list[UUID]:
        asked.append(most)
        swept.set()
        return []

    async def nobody(_: object) -> None: ...

    monkeypatch.setattr(offing_workers.process.runs, "sweep", sweep)
    monkeypatch.setattr(offing_workers.process.child_runs, "drop_forsaken", nobody)
    process = WorkerProcess(Settings(sweep_seconds=0.01, worker_concurrency=3), {}, "", "")
    monkeypatch.setattr(process, "_database", None, raising=False)
    monkeypatch.setattr(process, "_wake", nobody, raising=False)
    monkeypatch.setattr(process, "_inside", 1)
    sweeping = asyncio.create_task(process._sweep())  # pyright: ignore[reportPrivateUsage]
    await asyncio.wait_for(swept.wait(), 30)
    assert set(asked) == {2}
    monkeypatch.setattr(process, "_inside", 3)
    asked.clear()
    await asyncio.sleep(0.1)
    assert asked == []
    sweeping.cancel()
    process._loop.close()  # pyright: ignore[reportPrivateUsage]

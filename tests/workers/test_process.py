"""The process around the slices: it drains what it claims too late, and its watchers outlive their faults."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from uuid import UUID

import pytest
from kombu import pools  # pyright: ignore[reportMissingTypeStubs]
from pydantic import SecretStr

import offing_workers.process
from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode, FencingToken, RunStatus
from offing.core.step import StepKind
from offing.kernel.journal import Journal
from offing.kernel.report_writer import ReportWriter
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, cancel_run, pause_run, resume_run
from offing.settings import Settings
from offing.storage import claims, installation
from offing.storage.heartbeat import HeartbeatConnection
from offing.storage.installation import WorkerRow
from offing.storage.runs import ControlRequest
from offing_workers.claimed_run import ClaimedRun, DrainReason
from offing_workers.process import WorkerProcess
from offing_workers.slice import Slice
from tests.workers.conftest import Platform
from tests.workers.processes import ALL_GRAPHS
from tests.workers.rollout_batches import Collector


@pytest.fixture
def process(app_url: str, redis_url: str) -> Iterator[WorkerProcess]:
    """A worker process's inside, in this one, without Celery: tests say when it checks the queue."""
    settings = Settings(
        app_database_url=SecretStr(app_url),
        redis_url=SecretStr(redis_url),
        heartbeat_interval_seconds=0.1,
        sweep_interval_seconds=60,
        worker_concurrency=2,
    )
    process = WorkerProcess(settings, open_registry(ALL_GRAPHS), app_url, redis_url)
    process.start()
    yield process
    end(process)


def end(process: WorkerProcess) -> None:
    process.stop()
    loop = process._loop  # pyright: ignore[reportPrivateUsage]
    while loop.is_running():
        time.sleep(0.005)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    pools.reset()  # pyright: ignore[reportUnknownMemberType]  # closed, and opened again by the next publisher


def slow(turns: int, ms: int) -> RunRequest:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": ms}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    return RunRequest("Count", "counting", budget=Budget(max_turns=turns), engines=engines)


async def test_a_process_reports_that_it_is_alive_and_is_forgotten_when_it_ends(
    platform: Platform, app_url: str, redis_url: str
) -> None:
    settings = Settings(app_database_url=SecretStr(app_url), redis_url=SecretStr(redis_url), worker_concurrency=2)
    process = WorkerProcess(settings, open_registry(ALL_GRAPHS), app_url, redis_url)
    await asyncio.to_thread(process.start)
    workers: Sequence[WorkerRow] = ()
    for _ in range(1000):
        if workers := await installation.list_workers(platform.database):
            break
        await asyncio.sleep(0.02)
    assert [(one.version, one.slots, one.runs) for one in workers] == [(version("offing"), 2, 0)]
    await asyncio.to_thread(end, process)
    assert await installation.list_workers(platform.database) == []


async def test_a_run_claimed_while_the_process_drains_is_released(platform: Platform, process: WorkerProcess) -> None:
    process.drain()
    await asyncio.to_thread(process._run_on_loop, process._run_claimer.close())  # pyright: ignore[reportPrivateUsage]
    run = await platform.submit(slow(1000, 20))
    claim = await claims.claim_run(platform.database, run.id, "this one", 1)
    assert claim is not None
    late = threading.Thread(target=process._run_on_loop, args=(process._advance(claim),))  # pyright: ignore[reportPrivateUsage]
    late.start()
    await platform.until(run.id, lambda row: row.fence == 1 and row.status is RunStatus.QUEUED)
    await asyncio.to_thread(late.join, 20)
    assert not late.is_alive()


@dataclass
class Handed:
    """A run that was released, and is claimed again by the same process while its first slice still tells of it."""

    run: UUID
    go_on: asyncio.Event

    async def tell(self, process: WorkerProcess, left: int) -> None:
        """Let the first slice finish; from then on `left` slots are taken."""
        process._loop.call_soon_threadsafe(self.go_on.set)  # pyright: ignore[reportPrivateUsage]
        await wait_for_slots(process, left)


def count_slots(process: WorkerProcess) -> int:
    """Slots of the process that hold a run."""
    return process._run_claimer.slots.used  # pyright: ignore[reportPrivateUsage]


async def wait_for_slots(process: WorkerProcess, expected: int) -> None:
    give_up = time.monotonic() + 30
    while count_slots(process) != expected:
        assert time.monotonic() < give_up, count_slots(process)
        await asyncio.sleep(0.01)


async def claim_run(process: WorkerProcess, fence: FencingToken) -> ClaimedRun:
    """The hold of a claim; the row shows the claim a moment before the process has it in hand."""
    give_up = time.monotonic() + 30
    while (
        claimed_run := process._claimed_runs.get(fence.run_id)  # pyright: ignore[reportPrivateUsage]
    ) is None or claimed_run.fencing_token.number != fence.number:
        assert time.monotonic() < give_up, claimed_run
        await asyncio.sleep(0.01)
    return claimed_run


async def handed_back(platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> Handed:
    """A run whose slice has handed it back, and does not get done with telling of it."""
    telling, go_on = threading.Event(), asyncio.Event()

    async def tell(_: UUID) -> None:
        telling.set()
        await go_on.wait()

    monkeypatch.setattr(process, "dispatch_run", tell)
    run = (await platform.submit(slow(1000, 500))).id
    process.check_queue()
    await platform.until(run, lambda row: row.fence == 1 and row.last_seq > 2)
    (claimed_run,) = process._claimed_runs.values()  # pyright: ignore[reportPrivateUsage]
    process._loop.call_soon_threadsafe(claimed_run.request_drain, DrainReason.SLICE_OVER)  # pyright: ignore[reportPrivateUsage]
    assert await asyncio.to_thread(telling.wait, 20)
    return Handed(run, go_on)


async def claimed_again(platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> Handed:
    handed = await handed_back(platform, process, monkeypatch)
    process.check_queue()
    await platform.until(handed.run, lambda row: row.fence == 2 and row.status is RunStatus.RUNNING)
    await wait_for_slots(process, 2)
    return handed


async def test_a_run_that_was_claimed_again_while_its_last_slice_told_of_it_hears_of_its_cancellation(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = await claimed_again(platform, process, monkeypatch)
    await handed.tell(process, 1)
    await cancel_run(platform.database, platform.notifier, platform.tenant, handed.run, CancelMode.DISCARD)
    assert (await platform.ended(handed.run)).status is RunStatus.CANCELLED


async def test_a_run_that_was_claimed_again_while_its_last_slice_told_of_it_has_a_heartbeat_and_is_drained(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = await claimed_again(platform, process, monkeypatch)
    await handed.tell(process, 1)
    (claimed_run,) = process._claimed_runs.values()  # pyright: ignore[reportPrivateUsage]
    assert (claimed_run.fencing_token.run_id, claimed_run.fencing_token.number) == (handed.run, 2)
    process.drain()
    await platform.until(handed.run, lambda row: row.fence == 2 and row.status is RunStatus.QUEUED)
    await wait_for_slots(process, 0)
    assert not process._claimed_runs  # pyright: ignore[reportPrivateUsage]


async def test_a_heartbeat_does_not_cut_off_a_slice_that_has_handed_its_run_back(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = await handed_back(platform, process, monkeypatch)
    await asyncio.sleep(0.5)  # some heartbeats
    assert count_slots(process) == 1
    await handed.tell(process, 0)


async def test_a_heartbeat_between_a_release_and_its_answer_does_not_cut_the_slice_off(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off there, it would tell nobody that the run is queued."""
    close = Journal.append_last

    async def answered_late(journal: Journal, *drafts: Any, **more: Any) -> None:
        await close(journal, *drafts, **more)
        await asyncio.sleep(0.5)  # some heartbeats

    monkeypatch.setattr(Journal, "append_last", answered_late)
    handed = await handed_back(platform, process, monkeypatch)
    await handed.tell(process, 0)


async def in_a_long_call(platform: Platform, process: WorkerProcess) -> tuple[UUID, ClaimedRun]:
    run = (await platform.submit(slow(2, 1500))).id
    process.check_queue()
    row = await platform.until(run, lambda row: row.fence == 1 and row.last_seq > 1)
    return run, await claim_run(process, FencingToken(platform.tenant, run, 1, row.thread_id))


async def until_drained(claimed_run: ClaimedRun, why: DrainReason) -> None:
    give_up = time.monotonic() + 30
    while claimed_run.drain_reason is not why:
        assert time.monotonic() < give_up, claimed_run.drain_reason
        await asyncio.sleep(0.01)


async def test_a_run_that_is_paused_and_then_cancelled_within_one_call_is_cancelled(
    platform: Platform, process: WorkerProcess
) -> None:
    run, claimed_run = await in_a_long_call(platform, process)
    await pause_run(platform.database, platform.notifier, platform.tenant, run)
    await until_drained(claimed_run, DrainReason.PAUSE)
    await cancel_run(platform.database, platform.notifier, platform.tenant, run, CancelMode.DISCARD)
    assert (await platform.ended(run, 30)).status is RunStatus.CANCELLED


@pytest.mark.parametrize("then", ["resumed", "asked to finish", "cancelled", "cancelled and paused again"])
async def test_a_pause_that_was_withdrawn_before_the_run_is_released_holds_nothing_up(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    run, claimed_run = await in_a_long_call(platform, process)
    client = (platform.database, platform.notifier, platform.tenant, run)
    close, about, withdrawn = Journal.append_last, threading.Event(), threading.Event()

    async def closes(journal: Journal, *drafts: Any, **more: Any) -> None:
        about.set()
        await asyncio.to_thread(withdrawn.wait, 30)
        await close(journal, *drafts, **more)

    monkeypatch.setattr(Journal, "append_last", closes)
    await pause_run(*client)
    await until_drained(claimed_run, DrainReason.PAUSE)
    assert await asyncio.to_thread(about.wait, 30)
    if then == "resumed":
        await resume_run(*client)
    else:
        await cancel_run(*client, CancelMode.FINISH if then == "asked to finish" else CancelMode.DISCARD)
    if then == "cancelled and paused again":
        await pause_run(*client)
    withdrawn.set()
    expected = RunStatus.CANCELLED if then.startswith("cancelled") else RunStatus.DONE
    assert (await platform.ended(run, 60)).status is expected


async def test_a_pause_that_was_withdrawn_within_the_call_is_not_on_record(
    platform: Platform, process: WorkerProcess
) -> None:
    run, claimed_run = await in_a_long_call(platform, process)
    client = (platform.database, platform.notifier, platform.tenant, run)
    await pause_run(*client)
    await until_drained(claimed_run, DrainReason.PAUSE)
    await resume_run(*client)
    assert (await platform.ended(run, 60)).status is RunStatus.DONE
    assert StepKind.PAUSED not in {step.kind for step in await platform.steps(run)}


async def test_a_cancelled_run_ends_although_its_ending_takes_longer_than_its_call_was_given(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each heartbeat tells of the cancellation again, and none of them strikes the ending."""
    latest = ReportWriter.find_latest_report

    async def slowly(reports: ReportWriter) -> Any:
        await asyncio.sleep(1)
        return await latest(reports)

    monkeypatch.setattr(ReportWriter, "find_latest_report", slowly)
    monkeypatch.setattr(offing_workers.process, "CANCEL_GRACE_SECONDS", 0.2)
    run = (await platform.submit(slow(2, 60_000))).id
    process.check_queue()
    await platform.until(run, lambda row: row.fence == 1 and row.last_seq > 1)
    await cancel_run(platform.database, platform.notifier, platform.tenant, run, CancelMode.DISCARD)
    ended = await platform.ended(run, 20)
    assert (ended.status, ended.fence) == (RunStatus.CANCELLED, 1)


async def test_a_heart_that_stumbles_beats_on(
    platform: Platform, app_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    beats: list[float] = []

    class Stumbling(HeartbeatConnection):
        def renew_leases(self, fences: Sequence[FencingToken], lease_seconds: float) -> list[ControlRequest]:
            beats.append(time.monotonic())
            if len(beats) == 2:
                raise RuntimeError("on purpose")
            return super().renew_leases(fences, lease_seconds)

    monkeypatch.setattr(offing_workers.process, "HeartbeatConnection", Stumbling)
    process: WorkerProcess = request.getfixturevalue("process")
    run = await platform.submit(slow(60, 30))
    process.check_queue()
    ended = await platform.ended(run.id)
    assert (ended.status, ended.fence) == (RunStatus.DONE, 1)
    assert len(beats) > 5


async def test_a_rollout_whose_end_a_heartbeat_takes_for_a_crash_is_finalized_at_once(
    collector: Collector, platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beat asks after a run that has just ended. No sweep is near that would settle it."""
    stored = Slice._release  # pyright: ignore[reportPrivateUsage]

    async def cut_off(slice: Slice, *inputs: Any, **more: Any) -> None:
        await stored(slice, *inputs, **more)
        slice._claimed_run.mark_lease_lost()  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0)

    monkeypatch.setattr(Slice, "_release", cut_off)
    await collector.collect(size=2)
    process.check_queue()
    for member in await collector.members():
        await platform.ended(member.run_id)
    await wait_for_slots(process, 0)
    assert [member.outcome for member in await collector.members()] == ["answered"] * 2
    assert (await collector.group()).group.state == "complete"


async def test_a_watcher_that_is_told_nonsense_watches_on(platform: Platform, process: WorkerProcess) -> None:
    bus = platform.notifier._control._redis  # pyright: ignore[reportPrivateUsage]
    await bus.publish("offing:control", "this is no run")  # pyright: ignore[reportUnknownMemberType]
    await asyncio.sleep(0.1)
    assert not any(w.done() for w in process._watchers)  # pyright: ignore[reportPrivateUsage]


async def test_a_process_takes_no_more_runs_at_once_than_it_has_slots(
    platform: Platform, process: WorkerProcess
) -> None:
    ids = [(await platform.submit(slow(3, 20))).id for _ in range(5)]
    process.check_queue()
    maximum, ended = 0, 0
    while ended < len(ids):
        async with platform.database.transaction(platform.tenant) as connection:  # all at one moment
            count = "select count(*) filter (where status = 'running'), count(ended_at) from app.run"
            ((running, ended),) = await (await connection.execute(count)).fetchall()
        maximum = max(maximum, running)
    assert maximum == 2
    assert [(await platform.run(id)).status for id in ids] == [RunStatus.DONE] * 5


async def test_a_process_that_drains_takes_no_more_and_passes_notifications_on(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, calls = list[UUID](), list[str]()

    async def tell(run_id: UUID) -> None:
        messages.append(run_id)

    async def call() -> None:
        calls.append("")

    monkeypatch.setattr(process, "dispatch_run", tell)
    monkeypatch.setattr(process._queue_channel, "publish", call)  # pyright: ignore[reportPrivateUsage]
    ids = [(await platform.submit(slow(1000, 20))).id for _ in range(4)]
    process.check_queue()
    await wait_for_slots(process, 2)
    await platform.until(ids[1], lambda row: row.status is RunStatus.RUNNING)
    process.drain()
    await wait_for_slots(process, 0)
    calls.clear()
    process.check_queue()
    give_up = time.monotonic() + 30
    while not calls:
        assert time.monotonic() < give_up
        await asyncio.sleep(0.01)
    assert [(await platform.run(id)).fence for id in ids] == [1, 1, 0, 0]
    assert sorted(messages) == sorted(ids[:2])  # those that were released


async def test_a_run_is_advanced_slice_after_slice_although_every_notification_is_lost(
    platform: Platform, process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose(_: object) -> None: ...

    monkeypatch.setattr(process, "_run_dispatcher", lose)
    run = await platform.submit(slow(1000, 20))
    process.check_queue()
    for fence in range(1, 4):
        await platform.until(run.id, lambda row, fence=fence: row.fence == fence and row.status is RunStatus.RUNNING)
        claimed_run = await claim_run(process, FencingToken(platform.tenant, run.id, fence, run.thread_id))
        process._loop.call_soon_threadsafe(claimed_run.request_drain, DrainReason.SLICE_OVER)  # pyright: ignore[reportPrivateUsage]
    await platform.until(run.id, lambda row: row.fence == 4)


async def test_a_process_sweeps_only_while_a_slot_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = asyncio.Event()

    async def sweep(*_: object) -> list[UUID]:
        swept.set()
        return []

    async def nobody(_: object) -> None: ...

    monkeypatch.setattr(offing_workers.process.claims, "sweep_overdue_runs", sweep)
    monkeypatch.setattr(offing_workers.process.child_runs, "cancel_orphaned_children", nobody)
    process = WorkerProcess(Settings(sweep_interval_seconds=0.01, worker_concurrency=3), {}, "", "")
    monkeypatch.setattr(process, "_database", None, raising=False)
    slots = process._run_claimer.slots  # pyright: ignore[reportPrivateUsage]
    slots.used = 2
    sweeping = asyncio.create_task(process._sweep_queue())  # pyright: ignore[reportPrivateUsage]
    await asyncio.wait_for(swept.wait(), 30)
    slots.used = 3
    await asyncio.sleep(0.05)
    swept.clear()
    await asyncio.sleep(0.1)
    assert not swept.is_set()
    sweeping.cancel()
    process._loop.close()  # pyright: ignore[reportPrivateUsage]

"""The run protocol through real workers: submit, claim, slices, terminal states."""

from offing.core.model import EngineChoice
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel, pause, resume
from tests.workers.conftest import Platform, StartWorker


def counting(turns: int, **more: object) -> RunRequest:
    return RunRequest("Count for me", graph="counting", budget=Budget(turns=turns), **more)  # type: ignore[arg-type]


def slow(ms: int) -> dict[str, EngineChoice]:
    return {"speaker": EngineChoice(engine="scripted", options={"answers": [{"word": "w{turn}"}], "delay_ms": ms})}


async def test_a_run_goes_from_question_to_report(platform: Platform, start_worker: StartWorker) -> None:
    start_worker()
    run = await platform.submit(counting(3))
    ended = await platform.ended(run.id)
    kinds = [step.kind for step in await platform.steps(run.id)]
    turn = [StepKind.PLAN, StepKind.TOOL, StepKind.MEMORY]
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert kinds == [StepKind.QUEUED, StepKind.STARTED, *turn * 3, StepKind.REPORT, StepKind.ENDED]
    assert ended.spent.turns == 3


async def test_slices_of_one_turn_leave_the_same_steps(platform: Platform, start_worker: StartWorker) -> None:
    start_worker(OFFING_SLICE_TURNS="1")
    run = await platform.submit(counting(5))
    ended = await platform.ended(run.id)
    steps = await platform.steps(run.id)
    assert ended.fence >= 5
    assert [s.seq for s in steps] == list(range(1, len(steps) + 1))
    assert [s.turn for s in steps if s.kind is StepKind.MEMORY] == [1, 2, 3, 4, 5]


async def test_a_killed_worker_loses_and_repeats_nothing(platform: Platform, start_worker: StartWorker) -> None:
    worker = start_worker()
    run = await platform.submit(counting(40, engines=slow(40)))
    await platform.until(run.id, lambda row: row.last_seq > 25)
    worker.kill()
    struck = await platform.run(run.id)
    assert struck.status is RunStatus.RUNNING
    start_worker()
    ended = await platform.ended(run.id)
    steps = await platform.steps(run.id)
    assert ended.status is RunStatus.DONE
    assert [s.turn for s in steps if s.kind is StepKind.TOOL] == list(range(1, 41))
    assert [s.payload["output"]["word"] for s in steps if s.kind is StepKind.PLAN] == [f"w{n}" for n in range(1, 41)]
    assert any(s.kind is StepKind.RESUMED for s in steps)


async def test_a_graph_that_raises_ends_with_a_partial_report(platform: Platform, start_worker: StartWorker) -> None:
    start_worker()
    run = await platform.submit(RunRequest("Break", graph="broken"))
    ended = await platform.ended(run.id)
    steps = await platform.steps(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.FAILED, StopReason.GRAPH_ERROR)
    assert "this graph is broken" in (ended.error or "")
    assert [s.kind for s in steps][-2:] == [StepKind.REPORT, StepKind.ENDED]


async def test_a_person_cancels_a_run_in_the_middle(platform: Platform, start_worker: StartWorker) -> None:
    start_worker()
    run = await platform.submit(counting(1000, engines=slow(50)))
    await platform.until(run.id, lambda row: row.last_seq > 8)
    await cancel(platform.database, platform.hints, platform.tenant, run.id, CancelMode.DISCARD)
    ended = await platform.ended(run.id, 6)
    assert (ended.status, ended.stop_reason) == (RunStatus.CANCELLED, StopReason.CANCELLED)
    assert (await platform.steps(run.id))[-1].kind is StepKind.ENDED


async def test_a_person_asks_to_write_what_there_is(platform: Platform, start_worker: StartWorker) -> None:
    start_worker()
    run = await platform.submit(counting(1000, engines=slow(50)))
    await platform.until(run.id, lambda row: row.last_seq > 8)
    await cancel(platform.database, platform.hints, platform.tenant, run.id, CancelMode.WRITE)
    ended = await platform.ended(run.id, 6)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ASKED_TO_WRITE)
    assert StepKind.REPORT in [s.kind for s in await platform.steps(run.id)]


async def test_a_paused_run_stands_still_until_it_is_resumed(platform: Platform, start_worker: StartWorker) -> None:
    start_worker()
    run = await platform.submit(counting(30, engines=slow(50)))
    await platform.until(run.id, lambda row: row.last_seq > 8)
    await pause(platform.database, platform.hints, platform.tenant, run.id)
    paused = await platform.until(run.id, lambda row: row.status is RunStatus.PAUSED, 6)
    await resume(platform.database, platform.hints, platform.tenant, run.id)
    ended = await platform.ended(run.id)
    assert paused.last_seq < ended.last_seq
    assert [s.turn for s in await platform.steps(run.id) if s.kind is StepKind.TOOL] == list(range(1, 31))


async def test_sigterm_drains_and_another_worker_goes_on(platform: Platform, start_worker: StartWorker) -> None:
    worker = start_worker()
    submitted = [await platform.submit(counting(30, engines=slow(50))) for _ in range(4)]
    for run in submitted:
        await platform.until(run.id, lambda row: row.last_seq > 8)
    assert worker.finish() == 0
    left = [await platform.run(run.id) for run in submitted]
    assert {row.status for row in left} == {RunStatus.QUEUED}
    start_worker()
    for run in submitted:
        assert (await platform.ended(run.id)).status is RunStatus.DONE
        steps = await platform.steps(run.id)
        assert [s.turn for s in steps if s.kind is StepKind.TOOL] == list(range(1, 31))
        assert StepKind.RESUMED not in [s.kind for s in steps]

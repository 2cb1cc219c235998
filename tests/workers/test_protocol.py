"""The run protocol through a real worker: submit, claim, and how runs end, are paused and cancelled."""

from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel_run, pause_run, resume_run
from tests.workers.conftest import Platform


def counting(turns: int, **more: object) -> RunRequest:
    return RunRequest("Count for me", graph="counting", budget=Budget(max_turns=turns), **more)  # type: ignore[arg-type]


def slow(ms: int) -> dict[str, EngineConfig]:
    return {"speaker": EngineConfig(engine="scripted", options={"answers": [{"word": "w{turn}"}], "delay_ms": ms})}


async def test_a_run_goes_from_question_to_report(shared_platform: Platform) -> None:
    run = await shared_platform.submit(counting(3))
    ended = await shared_platform.ended(run.id)
    kinds = [step.kind for step in await shared_platform.steps(run.id)]
    turn = [StepKind.PLAN, StepKind.TOOL_RESULT, StepKind.MEMORY]
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert kinds == [StepKind.QUEUED, StepKind.STARTED, *turn * 3, StepKind.REPORT, StepKind.ENDED]
    assert ended.usage.turns == 3


async def test_a_graph_that_raises_ends_with_a_partial_report(shared_platform: Platform) -> None:
    run = await shared_platform.submit(RunRequest("Break", graph="broken"))
    ended = await shared_platform.ended(run.id)
    steps = await shared_platform.steps(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.FAILED, StopReason.GRAPH_ERROR)
    assert "this graph is broken" in (ended.error or "")
    assert [s.kind for s in steps][-2:] == [StepKind.REPORT, StepKind.ENDED]


async def test_a_person_cancels_a_run_in_the_middle(shared_platform: Platform) -> None:
    run = await shared_platform.submit(counting(1000, engines=slow(50)))
    await shared_platform.until(run.id, lambda row: row.last_seq > 8)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
    )
    ended = await shared_platform.ended(run.id, 6)
    assert (ended.status, ended.stop_reason) == (RunStatus.CANCELLED, StopReason.CANCELLED)
    assert (await shared_platform.steps(run.id))[-1].kind is StepKind.ENDED


async def test_a_person_asks_to_write_what_there_is(shared_platform: Platform) -> None:
    run = await shared_platform.submit(counting(1000, engines=slow(50)))
    await shared_platform.until(run.id, lambda row: row.last_seq > 8)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.FINISH
    )
    ended = await shared_platform.ended(run.id, 6)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.FINISH_REQUESTED)
    assert StepKind.REPORT in [s.kind for s in await shared_platform.steps(run.id)]


async def test_a_paused_run_stands_still_until_it_is_resumed(shared_platform: Platform) -> None:
    run = await shared_platform.submit(counting(30, engines=slow(50)))
    await shared_platform.until(run.id, lambda row: row.last_seq > 8)
    await pause_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id)
    paused = await shared_platform.until(run.id, lambda row: row.status is RunStatus.PAUSED, 6)
    await resume_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id)
    ended = await shared_platform.ended(run.id)
    assert paused.last_seq < ended.last_seq
    assert [s.turn for s in await shared_platform.steps(run.id) if s.kind is StepKind.TOOL_RESULT] == list(range(1, 31))

"""The run protocol through a real worker: submit, claim, and how runs end, are paused and cancelled."""

from offing.core.model import EngineChoice
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel, pause, resume
from tests.workers.conftest import Platform


def counting(turns: int, **more: object) -> RunRequest:
    return RunRequest("Count for me", graph="counting", budget=Budget(turns=turns), **more)  # type: ignore[arg-type]


def slow(ms: int) -> dict[str, EngineChoice]:
    return {"speaker": EngineChoice(engine="scripted", options={"answers": [{"word": "w{turn}"}], "delay_ms": ms})}


async def test_a_run_goes_from_question_to_report(standing: Platform) -> None:
    run = await standing.submit(counting(3))
    ended = await standing.ended(run.id)
    kinds = [step.kind for step in await standing.steps(run.id)]
    turn = [StepKind.PLAN, StepKind.TOOL, StepKind.MEMORY]
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert kinds == [StepKind.QUEUED, StepKind.STARTED, *turn * 3, StepKind.REPORT, StepKind.ENDED]
    assert ended.spent.turns == 3


async def test_a_graph_that_raises_ends_with_a_partial_report(standing: Platform) -> None:
    run = await standing.submit(RunRequest("Break", graph="broken"))
    ended = await standing.ended(run.id)
    steps = await standing.steps(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.FAILED, StopReason.GRAPH_ERROR)
    assert "this graph is broken" in (ended.error or "")
    assert [s.kind for s in steps][-2:] == [StepKind.REPORT, StepKind.ENDED]


async def test_a_person_cancels_a_run_in_the_middle(standing: Platform) -> None:
    run = await standing.submit(counting(1000, engines=slow(50)))
    await standing.until(run.id, lambda row: row.last_seq > 8)
    await cancel(standing.database, standing.hints, standing.tenant, run.id, CancelMode.DISCARD)
    ended = await standing.ended(run.id, 6)
    assert (ended.status, ended.stop_reason) == (RunStatus.CANCELLED, StopReason.CANCELLED)
    assert (await standing.steps(run.id))[-1].kind is StepKind.ENDED


async def test_a_person_asks_to_write_what_there_is(standing: Platform) -> None:
    run = await standing.submit(counting(1000, engines=slow(50)))
    await standing.until(run.id, lambda row: row.last_seq > 8)
    await cancel(standing.database, standing.hints, standing.tenant, run.id, CancelMode.WRITE)
    ended = await standing.ended(run.id, 6)
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ASKED_TO_WRITE)
    assert StepKind.REPORT in [s.kind for s in await standing.steps(run.id)]


async def test_a_paused_run_stands_still_until_it_is_resumed(standing: Platform) -> None:
    run = await standing.submit(counting(30, engines=slow(50)))
    await standing.until(run.id, lambda row: row.last_seq > 8)
    await pause(standing.database, standing.hints, standing.tenant, run.id)
    paused = await standing.until(run.id, lambda row: row.status is RunStatus.PAUSED, 6)
    await resume(standing.database, standing.hints, standing.tenant, run.id)
    ended = await standing.ended(run.id)
    assert paused.last_seq < ended.last_seq
    assert [s.turn for s in await standing.steps(run.id) if s.kind is StepKind.TOOL] == list(range(1, 31))

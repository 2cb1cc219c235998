"""A thread is a conversation: one run at a time, each with a memory of its own, who knows what was answered before."""

import pytest

from offing.core.errors import Conflict
from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.services.runs import RunRequest
from offing.storage import reports
from tests.workers.conftest import Platform


async def answer(platform: Platform, request: RunRequest) -> str:
    run = await platform.submit(request)
    ended = await platform.ended(run.id)
    assert ended.status is RunStatus.DONE, ended.error
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run.id)
    assert report is not None
    return report.answer.text if report.answer else " ".join(s.text for s in report.sentences())


async def test_a_follow_up_sees_the_earlier_answers_and_none_of_the_earlier_memory(standing: Platform) -> None:
    first = await standing.submit(RunRequest("Count", "counting", budget=Budget(turns=3)))
    assert (await standing.ended(first.id)).status is RunStatus.DONE
    second = await answer(standing, RunRequest("What then?", "recalling", thread=first.thread))
    third = await answer(standing, RunRequest("And then?", "recalling", thread=first.thread))
    assert second == "memories: 0, earlier: Count -> Count"
    assert third == f"memories: 0, earlier: Count -> Count; What then? -> {second}"


async def test_a_follow_up_of_the_same_graph_begins_at_its_first_turn(standing: Platform) -> None:
    first = await standing.submit(RunRequest("Count", "counting", budget=Budget(turns=3)))
    await standing.ended(first.id)
    second = await standing.submit(RunRequest("Again", "counting", thread=first.thread, budget=Budget(turns=2)))
    ended = await standing.ended(second.id)
    tools = [s.turn for s in await standing.steps(second.id) if s.kind is StepKind.TOOL]
    assert (ended.status, tools, ended.spent.turns) == (RunStatus.DONE, [1, 2], 2)


async def test_a_second_run_in_a_busy_thread_is_a_conflict(standing: Platform) -> None:
    options = {"answers": [{"word": "w"}], "delay_ms": 300}
    engines = {"speaker": EngineChoice(engine="scripted", options=options)}
    first = await standing.submit(RunRequest("Count", "counting", budget=Budget(turns=2), engines=engines))
    with pytest.raises(Conflict):
        await standing.submit(RunRequest("Meanwhile", "recalling", thread=first.thread))
    await standing.ended(first.id)
    assert await answer(standing, RunRequest("Now?", "recalling", thread=first.thread))

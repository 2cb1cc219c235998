"""A thread is a conversation: one run at a time, each with a memory of its own, who knows what was answered before."""

from dataclasses import replace

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import Conflict, NotFound
from offing.core.model import EngineChoice
from offing.core.run import Budget, CancelMode, RunStatus
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel
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
    first = await standing.submit(RunRequest("Count", "counting", budget=Budget(turns=60), engines=engines))
    with pytest.raises(Conflict):
        await standing.submit(RunRequest("Meanwhile", "recalling", thread=first.thread))
    await cancel(standing.database, standing.hints, standing.tenant, first.id, CancelMode.DISCARD)
    await standing.ended(first.id)
    assert await answer(standing, RunRequest("Now?", "recalling", thread=first.thread))


async def test_a_follow_up_sees_what_the_run_before_it_could_see(platform: Platform) -> None:
    scope = {"collections": ["/papers"], "sources": []}
    first = await platform.submit(RunRequest("One", graph="counting", scope=scope))
    await cancel(platform.database, platform.hints, platform.tenant, first.id, CancelMode.DISCARD)
    second = await platform.submit(RunRequest("Two", graph="counting", thread=first.thread, scope={"collections": []}))
    await cancel(platform.database, platform.hints, platform.tenant, second.id, CancelMode.DISCARD)
    wider = {"collections": ["/papers", "/notes"]}
    third = await platform.submit(RunRequest("Three", graph="counting", thread=first.thread, scope=wider))
    assert (second.scope, third.scope) == (scope, wider)


async def test_a_follow_up_of_a_run_with_the_web_may_use_its_tools(platform: Platform) -> None:
    first = await platform.submit(RunRequest("One", graph="counting", scope={"web": True}))
    await cancel(platform.database, platform.hints, platform.tenant, first.id, CancelMode.DISCARD)
    second = await platform.submit(RunRequest("Two", graph="counting", thread=first.thread, scope={"collections": []}))
    assert {rule["tool"] for rule in second.policy["rules"]} >= {"web_search", "fetch_page"}


async def test_a_thread_of_another_tenant_does_not_exist(platform: Platform, owner_url: str) -> None:
    first = await platform.submit(RunRequest("Mine", graph="counting"))
    other = new_id()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("insert into app.tenant (id, name) values (%s, 'other')", (other,))
    theirs = replace(platform, tenant=other)
    with pytest.raises(NotFound, match="thread"):
        await theirs.submit(RunRequest("Yours?", graph="counting", thread=first.thread))

"""A thread is a conversation: one run at a time, each with a memory of its own, who knows what was answered before."""

from dataclasses import replace

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import Conflict, NotFound
from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode, RunStatus
from offing.core.step import StepKind
from offing.services.runs import RunRequest, cancel_run
from offing.storage import reports
from tests.workers.conftest import Platform


async def answer(platform: Platform, request: RunRequest) -> str:
    run = await platform.submit(request)
    ended = await platform.ended(run.id)
    assert ended.status is RunStatus.DONE, ended.error
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run.id)
    assert report is not None
    return report.answer.text if report.answer else " ".join(s.text for s in report.sentences())


async def test_a_follow_up_sees_the_earlier_answers_and_none_of_the_earlier_memory(shared_platform: Platform) -> None:
    first = await shared_platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=3)))
    assert (await shared_platform.ended(first.id)).status is RunStatus.DONE
    second = await answer(shared_platform, RunRequest("What then?", "recalling", thread_id=first.thread_id))
    third = await answer(shared_platform, RunRequest("And then?", "recalling", thread_id=first.thread_id))
    assert second == "memories: 0, earlier: Count -> Count"
    assert third == f"memories: 0, earlier: Count -> Count; What then? -> {second}"


async def test_a_follow_up_of_the_same_graph_begins_at_its_first_turn(shared_platform: Platform) -> None:
    first = await shared_platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=3)))
    await shared_platform.ended(first.id)
    second = await shared_platform.submit(
        RunRequest("Again", "counting", thread_id=first.thread_id, budget=Budget(max_turns=2))
    )
    ended = await shared_platform.ended(second.id)
    tools = [s.turn for s in await shared_platform.steps(second.id) if s.kind is StepKind.TOOL_RESULT]
    assert (ended.status, tools, ended.usage.turns) == (RunStatus.DONE, [1, 2], 2)


async def test_a_second_run_in_a_busy_thread_is_a_conflict(shared_platform: Platform) -> None:
    options = {"answers": [{"word": "w"}], "delay_ms": 300}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    first = await shared_platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=60), engines=engines))
    with pytest.raises(Conflict):
        await shared_platform.submit(RunRequest("Meanwhile", "recalling", thread_id=first.thread_id))
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, first.id, CancelMode.DISCARD
    )
    await shared_platform.ended(first.id)
    assert await answer(shared_platform, RunRequest("Now?", "recalling", thread_id=first.thread_id))


async def test_a_follow_up_sees_what_the_run_before_it_could_see(platform: Platform) -> None:
    scope = {"collections": ["/papers"], "sources": []}
    first = await platform.submit(RunRequest("One", graph="counting", scope=scope))
    await cancel_run(platform.database, platform.notifier, platform.tenant, first.id, CancelMode.DISCARD)
    second = await platform.submit(
        RunRequest("Two", graph="counting", thread_id=first.thread_id, scope={"collections": []})
    )
    await cancel_run(platform.database, platform.notifier, platform.tenant, second.id, CancelMode.DISCARD)
    wider = {"collections": ["/papers", "/notes"]}
    third = await platform.submit(RunRequest("Three", graph="counting", thread_id=first.thread_id, scope=wider))
    assert (second.scope, third.scope) == (scope, wider)


async def test_a_follow_up_of_a_run_with_the_web_may_use_its_tools(platform: Platform) -> None:
    first = await platform.submit(RunRequest("One", graph="counting", scope={"web": True}))
    await cancel_run(platform.database, platform.notifier, platform.tenant, first.id, CancelMode.DISCARD)
    second = await platform.submit(
        RunRequest("Two", graph="counting", thread_id=first.thread_id, scope={"collections": []})
    )
    assert {rule["tool"] for rule in second.tool_policy["rules"]} >= {"web_search", "fetch_page"}


async def test_a_thread_of_another_tenant_does_not_exist(platform: Platform, owner_url: str) -> None:
    first = await platform.submit(RunRequest("Mine", graph="counting"))
    other = new_id()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("insert into app.tenant (id, name) values (%s, 'other')", (other,))
    theirs = replace(platform, tenant=other)
    with pytest.raises(NotFound, match="thread"):
        await theirs.submit(RunRequest("Yours?", graph="counting", thread_id=first.thread_id))

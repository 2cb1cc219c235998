"""Runs that a run started: made once, waited for without a worker, cancelled and paused with it, and paid for by it."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.input_request import InputResponse, ReviewDecision
from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.graphs import open_registry
from offing.services.ingestion import Upload
from offing.services.input_requests import list_input_requests, submit_response
from offing.services.runs import RunRequest, cancel_run, pause_run, resume_run
from offing.storage import reports, run_summaries
from offing.storage.run_filter import RunFilter
from offing.storage.runs import RunRow
from offing_workers.replay import replay_run
from tests.chaos.library import DOCUMENTS
from tests.documents import ingest_uploads
from tests.workers.conftest import Platform, SharedServers
from tests.workers.parent_graph import question_for
from tests.workers.rollout_batches import Sql
from tests.workers.test_protocol import slow

PARTS = "Why do lighthouses flash, and how does a Fresnel lens save light and glass?"
TWO = question_for({"question": "one", "turns": 2}, {"question": "two", "turns": 3})
LONG = question_for({"question": "one"}, {"question": "two"})


@pytest.fixture
def rows(shared_servers: SharedServers) -> Iterator[Sql]:
    """Asks the standing worker's database as its owner."""
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as owner:

        def ask(query: str, *parameters: object) -> list[tuple[Any, ...]]:
            cursor = owner.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

        yield ask


def waits(row: RunRow) -> bool:
    return row.status is RunStatus.WAITING


async def begun(platform: Platform, question: str, **more: Any) -> RunRow:
    return await platform.submit(RunRequest(question, graph="family", **more))


def children_of(sql: Sql, parent_id: UUID) -> list[UUID]:
    query = "select run_id from app.child_run join app.run r on r.id = run_id where parent_id = %s order by r.seed"
    return [run for (run,) in sql(query, parent_id)]


async def list_outputs(platform: Platform, run_id: UUID) -> list[str]:
    """The sentences of a run's report, once it has ended."""
    assert (await platform.ended(run_id)).status is RunStatus.DONE
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run_id)
    assert report is not None
    return [sentence.text for sentence in report.sentences()]


async def test_children_are_runs_of_their_own_whose_results_come_back_in_order(
    shared_platform: Platform, rows: Sql
) -> None:
    run = await begun(shared_platform, TWO, budget=Budget(max_turns=20))
    assert await list_outputs(shared_platform, run.id) == [
        "one: done, answered, 2 said",
        "two: done, answered, 3 said",
        "turns: 6",
    ]
    children = [await shared_platform.run(child) for child in children_of(rows, run.id)]
    assert [(c.kind, c.status, c.question, c.budget.max_turns) for c in children] == [
        ("child", RunStatus.DONE, "one", 2),
        ("child", RunStatus.DONE, "two", 3),
    ]
    assert len({c.thread_id for c in children} | {run.thread_id}) == 3
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        summaries = await run_summaries.list_runs(connection, RunFilter(), None, 50)
    listed = {summary.run.id for summary in summaries}
    assert run.id in listed
    assert not listed & {c.id for c in children}


async def test_what_children_used_is_charged_to_their_parent_and_to_the_tenant_once(
    shared_platform: Platform, rows: Sql
) -> None:
    options = {"answers": [{"word": "w"}], "usage": {"prompt_tokens": 3, "cost_usd": "0.01"}}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    run = await begun(shared_platform, TWO, engines=engines, budget=Budget(max_turns=20))
    ended = await shared_platform.ended(run.id)
    assert (ended.usage.turns, ended.usage.tokens, str(ended.usage.cost_usd)) == (6, 15, "0.050000")
    ((booked, reserved),) = rows(
        "select sum(used_usd) - (select sum(cost_usd) from app.run where kind = 'interactive'), sum(reserved_usd) "
        "from app.daily_spend"
    )
    assert (str(booked), str(reserved)) == ("0.000000", "0.000000")


async def test_children_are_cancelled_with_their_parent(shared_platform: Platform, rows: Sql) -> None:
    run = await begun(shared_platform, LONG, engines=slow(100), budget=Budget(max_turns=2000))
    await shared_platform.until(run.id, waits)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
    )
    assert (await shared_platform.ended(run.id)).status is RunStatus.CANCELLED
    for child in children_of(rows, run.id):
        assert (await shared_platform.ended(child)).status is RunStatus.CANCELLED


async def test_when_a_finish_is_requested_children_report_first_and_the_parent_consumes_it(
    shared_platform: Platform, rows: Sql
) -> None:
    run = await begun(shared_platform, LONG, engines=slow(50), budget=Budget(max_turns=2000))
    await shared_platform.until(run.id, waits)
    for child in children_of(rows, run.id):
        await shared_platform.until(child, lambda row: row.last_seq > 8)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.FINISH
    )
    assert [line.split(",")[1] for line in (await list_outputs(shared_platform, run.id))[:2]] == [
        " finish_requested"
    ] * 2


async def test_children_stand_still_with_their_parent(shared_platform: Platform, rows: Sql) -> None:
    run = await begun(shared_platform, LONG, engines=slow(300), budget=Budget(max_turns=21))
    await shared_platform.until(run.id, waits)
    await pause_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id)
    children = children_of(rows, run.id)
    for one in (run.id, *children):
        await shared_platform.until(one, lambda row: row.status is RunStatus.PAUSED)
    await resume_run(shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id)
    assert (await list_outputs(shared_platform, run.id))[-1] == "turns: 21"


async def test_a_child_that_a_person_cancels_is_a_result_like_any(shared_platform: Platform, rows: Sql) -> None:
    question = question_for({"question": "one"}, {"question": "two", "turns": 2})
    run = await begun(shared_platform, question, engines=slow(60), budget=Budget(max_turns=2000))
    await shared_platform.until(run.id, waits)
    first, _ = children_of(rows, run.id)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, first, CancelMode.DISCARD
    )
    lines = await list_outputs(shared_platform, run.id)
    assert lines[0] == "one: cancelled, cancelled, 0 said"
    assert lines[1].startswith("two: done")


async def test_children_whose_parent_ended_without_telling_them_are_ended(shared_platform: Platform, rows: Sql) -> None:
    run = await begun(shared_platform, LONG, engines=slow(100), budget=Budget(max_turns=2000))
    await shared_platform.until(run.id, waits)
    rows("update app.run set status = 'cancelled', ended_at = now() where id = %s", run.id)
    for child in children_of(rows, run.id):
        assert (await shared_platform.ended(child)).status is RunStatus.CANCELLED


async def test_runs_start_runs_two_levels_deep_and_not_deeper(shared_platform: Platform, rows: Sql) -> None:
    question = question_for({"question": "leaf", "turns": 1})
    for _ in range(3):
        question = question_for({"question": question, "graph": "family"})
    run = await begun(shared_platform, question, budget=Budget(max_turns=50))
    assert (await shared_platform.ended(run.id)).status is RunStatus.DONE
    (child,) = children_of(rows, run.id)
    (deepest,) = children_of(rows, child)
    assert children_of(rows, deepest) == []
    assert "alone: Child runs can be nested at most 2 levels deep" in (await list_outputs(shared_platform, deepest))[0]


async def test_who_may_start_none_is_told_why_and_works_alone(shared_platform: Platform) -> None:
    at_exit = await begun(shared_platform, TWO, durability="exit", budget=Budget(max_turns=20))
    assert (await list_outputs(shared_platform, at_exit.id))[0].startswith(
        "alone: A run that writes nothing before its end"
    )
    poor = await begun(shared_platform, TWO, budget=Budget(max_turns=2))
    assert (await list_outputs(shared_platform, poor.id))[0].startswith("alone: 1 turns are left")
    unknown = await begun(
        shared_platform, question_for({"question": "one", "graph": "nothing"}), budget=Budget(max_turns=20)
    )
    assert (await list_outputs(shared_platform, unknown.id))[0] == "alone: There is no graph 'nothing'."
    many = question_for(*({"question": str(n)} for n in range(17)))
    crowd = await begun(shared_platform, many, budget=Budget(max_turns=200))
    assert (await list_outputs(shared_platform, crowd.id))[0] == "alone: A run can start at most 16 child runs."


async def test_a_research_team_cites_what_its_runs_found(shared_platform: Platform, rows: Sql) -> None:
    documents = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
    await ingest_uploads(shared_platform.database, shared_platform.tenant, documents)
    run = await shared_platform.submit(RunRequest(PARTS, graph="research_team", budget=Budget(max_turns=24)))
    ended = await shared_platform.ended(run.id)
    children = [await shared_platform.run(child) for child in children_of(rows, run.id)]
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert {c.graph for c in children} == {"agentflow"}
    assert len(children) >= 2
    assert ended.usage.turns == sum(c.usage.turns for c in children)
    async with shared_platform.database.transaction(shared_platform.tenant) as connection:
        report = await reports.find_latest_report(connection, run.id)
    assert report is not None
    assert len(report.citations) >= 2
    assert all(sentence.is_supported for sentence in report.sentences())
    used = [s.payload["tool"] for s in await shared_platform.steps(run.id) if s.kind is StepKind.TOOL_RESULT]
    assert used == ["child_run"] * len(children)
    for step in (s for s in await shared_platform.steps(run.id) if s.kind is StepKind.TOOL_RESULT):
        content = step.payload["content"]
        assert content["read"] >= len(content["passages"]) >= content["cited"] >= content["quoted"] > 0
    again = await replay_run(shared_platform.database, shared_platform.tenant, run.id, open_registry())
    assert (again.is_same, again.mismatch_seq) == (True, None), again.detail


async def test_a_person_edits_the_plan_of_a_team_before_anybody_is_sent(shared_platform: Platform, rows: Sql) -> None:
    run = await shared_platform.submit(RunRequest(PARTS, graph="research_team_reviewed", budget=Budget(max_turns=24)))
    await shared_platform.until(run.id, waits)
    assert children_of(rows, run.id) == []
    (rendered,) = [
        one.request for one in await list_input_requests(shared_platform.database, shared_platform.tenant, run.id)
    ]
    parts = ("Why do lighthouses flash?", "Who trimmed the wicks?", "What is a lens of the first order?")
    edited = InputResponse(decision=ReviewDecision.EDITED, steps=parts)
    await submit_response(
        shared_platform.database,
        shared_platform.notifier,
        shared_platform.tenant,
        run.id,
        rendered.seq,
        edited,
        responded_by="somebody",
    )
    assert (await shared_platform.ended(run.id)).status is RunStatus.DONE
    assert [(await shared_platform.run(child)).question for child in children_of(rows, run.id)] == list(parts)


async def test_erasing_a_thread_erases_what_its_runs_started(shared_platform: Platform, rows: Sql) -> None:
    run = await begun(shared_platform, TWO, budget=Budget(max_turns=20))
    await shared_platform.ended(run.id)
    family = [run.id, *children_of(rows, run.id)]
    threads = [(await shared_platform.run(one)).thread_id for one in family]
    rows("delete from app.thread where id = %s", run.thread_id)
    assert rows("select id from app.run where id = any(%s)", family) == []
    assert rows("select id from app.thread where id = any(%s)", threads) == []


async def test_a_child_ends_as_answered_only_when_it_was(shared_platform: Platform) -> None:
    run = await begun(shared_platform, question_for({"question": "x", "graph": "broken"}), budget=Budget(max_turns=20))
    assert (await list_outputs(shared_platform, run.id))[0] == f"x: failed, {StopReason.GRAPH_ERROR}, 0 said"

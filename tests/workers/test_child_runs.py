"""Runs that a run started: made once, waited for without a worker, cancelled and paused with it, and paid for by it."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.model import EngineChoice
from offing.core.question import Answer, Verdict
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import StepKind
from offing.services.graphs import installed
from offing.services.library import Upload
from offing.services.questions import answer, asked
from offing.services.runs import RunRequest, cancel, pause, resume
from offing.storage import reports, runs
from offing.storage.runs import RunRow
from offing_workers.replay import replayed
from tests.chaos.library import DOCUMENTS
from tests.documents import ingest_uploads
from tests.workers.collecting import Sql
from tests.workers.conftest import Platform, Standing
from tests.workers.families import asking
from tests.workers.test_protocol import slow

PARTS = "Why do lighthouses flash, and how does a Fresnel lens save light and glass?"
TWO = asking({"question": "one", "turns": 2}, {"question": "two", "turns": 3})
LONG = asking({"question": "one"}, {"question": "two"})


@pytest.fixture
def rows(standing_servers: Standing) -> Iterator[Sql]:
    """Asks the standing worker's database as its owner."""
    with psycopg.connect(standing_servers.owner_url, autocommit=True) as owner:

        def ask(query: str, *parameters: object) -> list[tuple[Any, ...]]:
            cursor = owner.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

        yield ask


def waits(row: RunRow) -> bool:
    return row.status is RunStatus.WAITING


async def begun(platform: Platform, question: str, **more: Any) -> RunRow:
    return await platform.submit(RunRequest(question, graph="family", **more))


def children_of(sql: Sql, parent: UUID) -> list[UUID]:
    query = "select run_id from app.child_run join app.run r on r.id = run_id where parent_id = %s order by r.seed"
    return [run for (run,) in sql(query, parent)]


async def said(platform: Platform, run: UUID) -> list[str]:
    """The sentences of a run's report, once it has ended."""
    assert (await platform.ended(run)).status is RunStatus.DONE
    async with platform.database.transaction(platform.tenant) as connection:
        report = await reports.latest(connection, run)
    assert report is not None
    return [sentence.text for sentence in report.sentences()]


async def test_children_are_runs_of_their_own_whose_results_come_back_in_order(standing: Platform, rows: Sql) -> None:
    run = await begun(standing, TWO, budget=Budget(turns=20))
    assert await said(standing, run.id) == [
        "one: done, answered, 2 said",
        "two: done, answered, 3 said",
        "turns: 6",
    ]
    children = [await standing.run(child) for child in children_of(rows, run.id)]
    assert [(c.kind, c.status, c.question, c.budget.turns) for c in children] == [
        ("child", RunStatus.DONE, "one", 2),
        ("child", RunStatus.DONE, "two", 3),
    ]
    assert len({c.thread for c in children} | {run.thread}) == 3
    async with standing.database.transaction(standing.tenant) as connection:
        listed = {r.id for r in await runs.latest(connection, 50)}
    assert run.id in listed
    assert not listed & {c.id for c in children}


async def test_what_children_used_is_booked_to_their_parent_and_to_the_tenant_once(
    standing: Platform, rows: Sql
) -> None:
    options = {"answers": [{"word": "w"}], "usage": {"prompt_tokens": 3, "usd": "0.01"}}
    engines = {"speaker": EngineChoice(engine="scripted", options=options)}
    run = await begun(standing, TWO, engines=engines, budget=Budget(turns=20))
    ended = await standing.ended(run.id)
    assert (ended.spent.turns, ended.spent.tokens, str(ended.spent.usd)) == (6, 15, "0.050000")
    ((booked, reserved),) = rows(
        "select sum(used) - (select sum(usd) from app.run where kind = 'ask'), sum(reserved) from app.spend"
    )
    assert (str(booked), str(reserved)) == ("0.000000", "0.000000")


async def test_children_are_cancelled_with_their_parent(standing: Platform, rows: Sql) -> None:
    run = await begun(standing, LONG, engines=slow(100), budget=Budget(turns=2000))
    await standing.until(run.id, waits)
    await cancel(standing.database, standing.hints, standing.tenant, run.id, CancelMode.DISCARD)
    assert (await standing.ended(run.id)).status is RunStatus.CANCELLED
    for child in children_of(rows, run.id):
        assert (await standing.ended(child)).status is RunStatus.CANCELLED


async def test_told_to_write_children_write_first_and_the_parent_takes_it_up(standing: Platform, rows: Sql) -> None:
    run = await begun(standing, LONG, engines=slow(50), budget=Budget(turns=2000))
    await standing.until(run.id, waits)
    for child in children_of(rows, run.id):
        await standing.until(child, lambda row: row.last_seq > 8)
    await cancel(standing.database, standing.hints, standing.tenant, run.id, CancelMode.WRITE)
    assert [line.split(",")[1] for line in (await said(standing, run.id))[:2]] == [" asked_to_write"] * 2


async def test_children_stand_still_with_their_parent(standing: Platform, rows: Sql) -> None:
    run = await begun(standing, LONG, engines=slow(300), budget=Budget(turns=21))
    await standing.until(run.id, waits)
    await pause(standing.database, standing.hints, standing.tenant, run.id)
    children = children_of(rows, run.id)
    for one in (run.id, *children):
        await standing.until(one, lambda row: row.status is RunStatus.PAUSED)
    await resume(standing.database, standing.hints, standing.tenant, run.id)
    assert (await said(standing, run.id))[-1] == "turns: 21"


async def test_a_child_that_a_person_cancels_is_a_result_like_any(standing: Platform, rows: Sql) -> None:
    question = asking({"question": "one"}, {"question": "two", "turns": 2})
    run = await begun(standing, question, engines=slow(60), budget=Budget(turns=2000))
    await standing.until(run.id, waits)
    first, _ = children_of(rows, run.id)
    await cancel(standing.database, standing.hints, standing.tenant, first, CancelMode.DISCARD)
    lines = await said(standing, run.id)
    assert lines[0] == "one: cancelled, cancelled, 0 said"
    assert lines[1].startswith("two: done")


async def test_children_whose_parent_ended_without_telling_them_are_ended(standing: Platform, rows: Sql) -> None:
    run = await begun(standing, LONG, engines=slow(100), budget=Budget(turns=2000))
    await standing.until(run.id, waits)
    rows("update app.run set status = 'cancelled', ended_at = now() where id = %s", run.id)
    for child in children_of(rows, run.id):
        assert (await standing.ended(child)).status is RunStatus.CANCELLED


async def test_runs_start_runs_two_levels_deep_and_not_deeper(standing: Platform, rows: Sql) -> None:
    question = asking({"question": "leaf", "turns": 1})
    for _ in range(3):
        question = asking({"question": question, "graph": "family"})
    run = await begun(standing, question, budget=Budget(turns=50))
    assert (await standing.ended(run.id)).status is RunStatus.DONE
    (child,) = children_of(rows, run.id)
    (deepest,) = children_of(rows, child)
    assert children_of(rows, deepest) == []
    assert "alone: A run may stand 2 levels under" in (await said(standing, deepest))[0]


async def test_who_may_start_none_is_told_why_and_works_alone(standing: Platform) -> None:
    at_exit = await begun(standing, TWO, durability="exit", budget=Budget(turns=20))
    assert (await said(standing, at_exit.id))[0].startswith("alone: A run that writes nothing before its end")
    poor = await begun(standing, TWO, budget=Budget(turns=2))
    assert (await said(standing, poor.id))[0].startswith("alone: 1 turns are left")
    unknown = await begun(standing, asking({"question": "one", "graph": "nothing"}), budget=Budget(turns=20))
    assert (await said(standing, unknown.id))[0] == "alone: There is no graph 'nothing'."
    many = asking(*({"question": str(n)} for n in range(17)))
    crowd = await begun(standing, many, budget=Budget(turns=200))
    assert (await said(standing, crowd.id))[0] == "alone: A run may start 16 others."


async def test_a_research_team_cites_what_its_runs_found(standing: Platform, rows: Sql) -> None:
    documents = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
    await ingest_uploads(standing.database, standing.tenant, documents)
    run = await standing.submit(RunRequest(PARTS, graph="research_team", budget=Budget(turns=24)))
    ended = await standing.ended(run.id)
    children = [await standing.run(child) for child in children_of(rows, run.id)]
    assert (ended.status, ended.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert {c.graph for c in children} == {"agentflow"}
    assert len(children) >= 2
    assert ended.spent.turns == sum(c.spent.turns for c in children)
    async with standing.database.transaction(standing.tenant) as connection:
        report = await reports.latest(connection, run.id)
    assert report is not None
    assert len(report.citations) >= 2
    assert all(sentence.supported for sentence in report.sentences())
    used = [s.payload["tool"] for s in await standing.steps(run.id) if s.kind is StepKind.TOOL]
    assert used == ["child_run"] * len(children)
    again = await replayed(standing.database, standing.tenant, run.id, installed())
    assert (again.same, again.seq) == (True, None), again.detail


async def test_a_person_edits_the_plan_of_a_team_before_anybody_is_sent(standing: Platform, rows: Sql) -> None:
    run = await standing.submit(RunRequest(PARTS, graph="research_team_reviewed", budget=Budget(turns=24)))
    await standing.until(run.id, waits)
    assert children_of(rows, run.id) == []
    (shown,) = [one.question for one in await asked(standing.database, standing.tenant, run.id)]
    parts = ("Why do lighthouses flash?", "Who trimmed the wicks?", "What is a lens of the first order?")
    edited = Answer(verdict=Verdict.EDITED, steps=parts)
    await answer(standing.database, standing.hints, standing.tenant, run.id, shown.number, edited, by="somebody")
    assert (await standing.ended(run.id)).status is RunStatus.DONE
    assert [(await standing.run(child)).question for child in children_of(rows, run.id)] == list(parts)


async def test_erasing_a_thread_erases_what_its_runs_started(standing: Platform, rows: Sql) -> None:
    run = await begun(standing, TWO, budget=Budget(turns=20))
    await standing.ended(run.id)
    family = [run.id, *children_of(rows, run.id)]
    threads = [(await standing.run(one)).thread for one in family]
    rows("delete from app.thread where id = %s", run.thread)
    assert rows("select id from app.run where id = any(%s)", family) == []
    assert rows("select id from app.thread where id = any(%s)", threads) == []


async def test_a_child_ends_as_answered_only_when_it_was(standing: Platform) -> None:
    run = await begun(standing, asking({"question": "x", "graph": "broken"}), budget=Budget(turns=20))
    assert (await said(standing, run.id))[0] == f"x: failed, {StopReason.GRAPH_ERROR}, 0 said"

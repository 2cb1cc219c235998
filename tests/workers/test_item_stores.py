"""LangGraph's store within runs: shared by them, read back after a crash, and apart for rollouts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from offing.core.run import RunStatus
from offing.core.step import Step
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.services.store_items import PostgresStore
from offing.storage import reports, runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.runs import RunRow
from offing_workers.replay import replay_run
from tests.workers.interrupted_runs import Bench, Disturbed, Quiet, When, bench

__all__ = ["bench"]

GRAPHS = ",".join(f"tests.graphs.langgraph_only.store:{name}" for name in ("graph", "blocked", "noting", "tools"))

STEPS = 5
"""That the store leaves of one run of `storing`: reads and puts."""


@pytest.fixture(autouse=True)
def graphs(bench: Bench) -> None:
    bench.graphs = GRAPHS


async def begun(bench: Bench, question: str, graph: str = "storing") -> UUID:
    request = RunRequest(question, graph, durability=bench.durability)
    return (await submit_run(bench.database, Quiet(), LOCAL_TENANT, request, graphs=open_registry(GRAPHS))).run.id


async def get_answer(bench: Bench, question: str, graph: str = "storing") -> str:
    run = await begun(bench, question, graph)
    await bench.advance(bench.database, run)
    return await get_report_text(bench, run)


async def row(bench: Bench, run_id: UUID) -> RunRow:
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        return await runs.get_run(connection, run_id)


async def get_report_text(bench: Bench, run_id: UUID) -> str:
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        report = await reports.find_latest_report(connection, run_id)
    return report.answer.text if report and report.answer else str((await row(bench, run_id)).error)


async def stored_steps(bench: Bench, run_id: UUID) -> list[Step]:
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        return [s for s in await steps.list_steps_after(connection, run_id, 0, 1000) if s.label == "store"]


async def items(bench: Bench) -> dict[tuple[str, ...], list[str]]:
    store = PostgresStore(bench.database, LOCAL_TENANT)
    return {n: [i.key for i in await store.asearch(n)] for n in await store.alist_namespaces()}


@asynccontextmanager
async def worker_lost(bench: Bench, run_id: UUID, at: int, when: When) -> AsyncGenerator[None]:
    """What happens after its worker was killed at its nth transaction, and before another takes it to its end."""
    async with Disturbed(bench.app_url, maximum=4) as database:
        database.at, database.when, database.what = at, when, "killed"
        await bench.work(database, run_id)
    yield
    for _ in range(5):
        if not (await row(bench, run_id)).is_terminal:
            bench.lose(run_id)
            await bench.advance(bench.database, run_id)


async def transactions(bench: Bench, graph: str = "storing") -> int:
    run = await begun(bench, "first", graph)
    async with Disturbed(bench.app_url, maximum=4) as database:
        await bench.work(database, run)
        return database.begun


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_runs_share_what_their_graphs_put(bench: Bench, durability: str) -> None:
    bench.durability = durability
    assert await get_answer(bench, "a") == "0 before, then a; there are a"
    assert await get_answer(bench, "b") == "1 before, then b; there are a, b"
    assert await items(bench) == {("shared",): ["a", "b"], ("told",): ["last"]}


async def test_each_read_and_put_is_a_step(bench: Bench) -> None:
    run = await begun(bench, "a")
    await bench.advance(bench.database, run)
    result = await stored_steps(bench, run)
    assert [s.title for s in result] == [
        "search shared",
        "put shared a",
        "get shared a",
        "put told last",
        "search shared",
    ]
    assert len(result) == STEPS


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_wherever_its_worker_is_killed_everything_is_stored_once(bench: Bench, durability: str) -> None:
    bench.durability = durability
    for at in range(2, await transactions(bench) + 1):
        bench.ask("delete from app.store_item")
        run = await begun(bench, "a")
        async with worker_lost(bench, run, at, "after" if at % 2 else "before"):
            pass
        assert await get_report_text(bench, run) == "0 before, then a; there are a", at
        assert len(await stored_steps(bench, run)) == STEPS, at
        assert await items(bench) == {("shared",): ["a"], ("told",): ["last"]}, at


async def test_an_item_under_a_random_key_is_stored_once_under_the_key_that_the_graph_knows(bench: Bench) -> None:
    for at in range(2, await transactions(bench, "noting") + 1):
        bench.ask("delete from app.store_item")
        run = await begun(bench, "a", "noting")
        async with worker_lost(bench, run, at, "after" if at % 2 else "before"):
            pass
        assert sorted((await items(bench))[("notes",)]) == sorted([await get_report_text(bench, run), "other"]), at


async def test_a_read_finds_the_same_when_its_node_runs_again(bench: Bench) -> None:
    run = await begun(bench, "a")
    read = 0
    for at in range(2, 20):
        bench.ask("delete from app.store_item")
        run = await begun(bench, "a")
        async with worker_lost(bench, run, at, "before"):
            read = len(await stored_steps(bench, run))
            await PostgresStore(bench.database, LOCAL_TENANT).aput(("shared",), "other", {"text": "new"})
        if read == 1:
            break
    assert read == 1
    assert (await get_report_text(bench, run)).startswith("0 before, then a; there are ")


async def test_a_replay_reads_the_record_alone(bench: Bench) -> None:
    run = await begun(bench, "a")
    await bench.advance(bench.database, run)
    bench.ask("delete from app.store_item")
    again = await replay_run(bench.database, LOCAL_TENANT, run, open_registry(GRAPHS))
    assert again.is_same, again.detail
    assert again.replayed_calls == STEPS
    assert await items(bench) == {}


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_rollout_has_a_store_of_its_own(bench: Bench, durability: str) -> None:
    bench.durability = durability
    await get_answer(bench, "a")
    run = await begun(bench, "b")
    bench.ask("update app.run set kind = 'rollout' where id = %s", run)
    await bench.advance(bench.database, run)
    assert await get_report_text(bench, run) == "0 before, then b; there are b"
    assert await items(bench) == {("shared",): ["a"], ("told",): ["last"]}
    assert len(await stored_steps(bench, run)) == STEPS


async def test_a_rollout_whose_worker_crashed_finds_its_items(bench: Bench) -> None:
    for at in range(2, await transactions(bench) + 1):
        run = await begun(bench, "b")
        bench.ask("update app.run set kind = 'rollout' where id = %s", run)
        async with worker_lost(bench, run, at, "after"):
            pass
        assert await get_report_text(bench, run) == "0 before, then b; there are b", at


async def test_waiting_for_the_store_on_the_event_loop_is_rejected(bench: Bench) -> None:
    run = await begun(bench, "a", "blocked")
    await bench.advance(bench.database, run)
    ended = await row(bench, run)
    assert ended.status is RunStatus.FAILED
    assert "Use aget, asearch, aput or adelete" in str(ended.error)


async def test_a_tool_that_stores_is_replayed_from_the_record_of_its_own_call(bench: Bench) -> None:
    run = await begun(bench, "a", "tools")
    await bench.advance(bench.database, run)
    again = await replay_run(bench.database, LOCAL_TENANT, run, open_registry(GRAPHS))
    assert again.is_same, again.detail


async def test_a_tool_that_stores_stores_once_wherever_its_worker_is_killed(bench: Bench) -> None:
    for at in range(2, await transactions(bench, "tools") + 1):
        bench.ask("delete from app.store_item")
        run = await begun(bench, "a", "tools")
        async with worker_lost(bench, run, at, "after" if at % 2 else "before"):
            pass
        assert {n: sorted(keys) for n, keys in (await items(bench)).items()} == {("kept",): ["boat", "tea"]}, at
        puts = [step for step in await stored_steps(bench, run) if "puts" in step.payload]
        assert len(puts) == 2, at

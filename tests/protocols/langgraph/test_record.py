"""Runs of LangGraph's clients in the record: replays, and what an export has of them."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.exports.format import FORMATS, ExportOptions
from offing.kernel.replay import ReplayResult
from offing.services import trajectories
from offing.services.graphs import open_registry
from offing.storage import retention
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.trajectories import TrajectoryQuery
from offing_workers.replay import replay_run
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.protocols.langgraph.graphs import GRAPHS

__all__ = ["ENVIRONMENT"]


async def run_in(client: Client, thread: str, graph: str, **more: Any) -> UUID:
    run = await client.runs.create(thread, graph, **more)
    await client.runs.join(thread, run["run_id"])
    return UUID(run["run_id"])


async def replay(database: Database, run_id: UUID) -> ReplayResult:
    result = await replay_run(database, LOCAL_TENANT, run_id, open_registry(GRAPHS))
    assert result.is_same, result.detail
    return result


async def test_a_run_is_replayed_with_its_input_and_the_state_that_its_thread_had(
    client: Client, key_database: Database
) -> None:
    thread = (await client.threads.create())["thread_id"]
    first = await run_in(client, thread, "trail", input={"seen": ["one"]}, config={"tags": ["tagged"]})
    second = await run_in(client, thread, "trail", input={"seen": ["two"]})
    await client.threads.update_state(thread, {"seen": ["written"]}, as_node="first")
    third = await run_in(client, thread, "trail", input=None)
    checkpoint = (await client.threads.get_history(thread, limit=100))[-1]["checkpoint"]
    fourth = await run_in(client, thread, "trail", input={"seen": ["again"]}, checkpoint=checkpoint)
    assert (await replay(key_database, first)).final_state["seen"] == ["one", "first", "second"]
    assert (await replay(key_database, second)).final_state["seen"][-3:] == ["two", "first", "second"]
    assert len((await replay(key_database, second)).final_state["seen"]) == 6
    assert (await replay(key_database, third)).final_state["seen"][-2:] == ["written", "second"]
    ended = (await client.threads.get_state(thread))["values"]["seen"]
    assert (await replay(key_database, fourth)).final_state["seen"] == ended


async def test_the_calls_of_a_replay_are_those_of_the_record(client: Client, key_database: Database) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await run_in(client, thread, "searcher", input={"messages": []}, durability="exit")
    again = await run_in(client, thread, "searcher", input={"messages": []})
    for one in (run, again):
        result = await replay(key_database, one)
        assert (result.replayed_calls, result.recorded_calls) == (1, 1)


async def test_a_run_that_ended_at_an_interrupt_and_the_one_that_resumed_it_are_replayed(
    client: Client, key_database: Database
) -> None:
    thread = (await client.threads.create())["thread_id"]
    interrupted = await run_in(client, thread, "approval", input={"topic": "go", "decisions": []})
    answered = await run_in(client, thread, "approval", command={"resume": "yes"})
    assert (await replay(key_database, interrupted)).final_state["decisions"] == []
    assert (await replay(key_database, answered)).final_state["decisions"] == ["yes"]


async def test_a_replay_says_that_the_state_of_the_thread_is_not_stored_any_more(
    client: Client, key_database: Database
) -> None:
    thread = (await client.threads.create())["thread_id"]
    first, second = [await run_in(client, thread, "trail", input={"seen": [name]}) for name in ("one", "two")]
    async with key_database.transaction(LOCAL_TENANT) as connection:
        for run in (first, second):
            await retention.prune_run(connection, run)
    await replay(key_database, first)
    with pytest.raises(InvalidInput, match="not stored any more"):
        await replay_run(key_database, LOCAL_TENANT, second, open_registry(GRAPHS))
    interrupted = await run_in(client, thread, "nested_approval", input={"topic": "go", "decisions": []})
    resumed = await run_in(client, thread, "nested_approval", command={"resume": "yes"})
    assert interrupted != resumed
    with pytest.raises(InvalidInput, match="a graph with subgraphs"):
        await replay_run(key_database, LOCAL_TENANT, resumed, open_registry(GRAPHS))


async def test_each_run_of_a_thread_is_exported_once_with_the_prompts_that_its_model_got(
    client: Client, key_database: Database, tmp_path: Path
) -> None:
    thread = (await client.threads.create())["thread_id"]
    begun = [
        await run_in(client, thread, "dialogue", input={"messages": [("user", "salt")]}),
        await run_in(client, thread, "dialogue", command={"resume": "yes"}),
        await run_in(client, thread, "dialogue", input={"messages": [("user", "pepper")]}),
    ]
    rows = [row for row in await export(key_database, tmp_path / "rows.jsonl") if UUID(row["run_id"]) in begun]
    prompts = [(UUID(row["run_id"]), [message["content"] for message in row["messages"]]) for row in rows]
    salt = ["salt", "You said salt and so on", "yes", "You said yes and so on"]
    assert sorted(prompts, key=lambda one: begun.index(one[0])) == [
        (begun[0], salt[:2]),
        (begun[1], salt),
        (begun[2], [*salt, "pepper", "You said pepper and so on"]),
    ]
    taught = [[m["content"] for m in row["messages"] if m.get("weight")] for row in rows]
    assert sorted(taught) == [["You said pepper and so on"], ["You said salt and so on"], ["You said yes and so on"]]


async def export(database: Database, out: Path) -> list[Any]:
    async with database.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update tenant set training_opt_in = true")
    query = TrajectoryQuery(kind="interactive", graph="dialogue")
    chosen = FORMATS["jsonl_chat"]
    await trajectories.export_trajectories(database, LOCAL_TENANT, query, chosen, ExportOptions(), None, out)
    return [json.loads(line) for line in out.read_bytes().splitlines()]  # noqa: ASYNC240


async def test_a_run_that_differs_from_its_record_is_found(client: Client, key_database: Database) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await run_in(client, thread, "trail", input={"seen": ["one"]})
    async with key_database.transaction(LOCAL_TENANT) as connection:
        change = (
            "update langgraph_run set arguments = jsonb_set(arguments, '{input,seen}', '[\"other\"]') where run_id = %s"
        )
        await connection.execute(change, (run,))
    result = await replay_run(key_database, LOCAL_TENANT, run, open_registry(GRAPHS))
    assert (result.is_same, "other" in result.detail) == (False, True)

"""Crons through LangGraph's Python client, and the runs that they begin in real workers."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError

from offing.bus.notifier import BusNotifier
from offing.core.model import EngineConfig
from offing.mcp.server_registry import McpServerRegistry
from offing.services.graphs import open_registry
from offing.services.langgraph_crons import begin_due_runs
from offing.services.langgraph_runs import RunPlatform
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.protocols.langgraph.graphs import GRAPHS
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

YEARLY = "0 0 1 1 *"

NEW_YEAR = datetime(2031, 1, 1, 0, 0, 1, tzinfo=UTC)
"""A time at which a yearly cron is due. Workers use the present time, at which it is not."""


@pytest.fixture
async def platform(shared_servers: SharedServers) -> AsyncIterator[RunPlatform]:
    """What a process needs to begin runs."""
    async with (
        Database(shared_servers.app_url, max_connections=8) as database,
        BusNotifier(shared_servers.redis_url) as notifier,
    ):
        yield RunPlatform(
            database, notifier, notifier.live, open_registry(GRAPHS), EngineConfig(), {}, McpServerRegistry()
        )


async def runs_of(client: Client, cron: dict[str, Any], owner_url: str) -> list[str]:
    """Return the ids of the runs that a cron has begun, oldest first."""
    async with await psycopg.AsyncConnection.connect(owner_url) as connection:
        cursor = await connection.execute(
            "select run_id::text from app.langgraph_run q join app.run r on r.id = q.run_id"
            " where q.metadata->>'cron_id' = %s order by r.created_at",
            (cron["cron_id"],),
        )
        return [id for (id,) in await cursor.fetchall()]


async def test_a_cron_is_created_found_changed_counted_and_deleted(client: Client) -> None:
    label = str(uuid4())
    cron = await client.crons.create(
        "trail", schedule=YEARLY, input={"seen": ["input"]}, metadata={"label": label}, timezone="Europe/Oslo"
    )
    assert (cron["schedule"], cron["timezone"], cron["enabled"], cron["thread_id"]) == (
        YEARLY,
        "Europe/Oslo",
        True,
        None,
    )
    assert cron["payload"]["input"] == {"seen": ["input"]}
    assert cron["on_run_completed"] == "delete"
    assert cron["next_run_date"].endswith("-12-31T23:00:00+00:00")
    assert await client.crons.search(metadata={"label": label}) == [cron]
    assert await client.crons.search(metadata={"label": label}, enabled=False) == []
    assert await client.crons.count(metadata={"label": label}) == 1
    assert await client.crons.count(assistant_id=cron["assistant_id"], metadata={"label": label}) == 1
    (short,) = await client.crons.search(metadata={"label": label}, select=["cron_id", "schedule"])
    assert short == {"cron_id": cron["cron_id"], "schedule": YEARLY}
    end = datetime(2027, 6, 1, tzinfo=UTC)
    changed = await client.crons.update(
        cron["cron_id"], schedule="0 9 * * 1", end_time=end, enabled=False, input={"seen": []}, on_run_completed="keep"
    )
    assert (changed["schedule"], changed["enabled"], changed["next_run_date"]) == ("0 9 * * 1", False, None)
    assert (changed["payload"]["input"], changed["on_run_completed"]) == ({"seen": []}, "keep")
    assert changed["end_time"] == "2027-06-01T00:00:00+00:00"
    assert (await client.crons.update(cron["cron_id"], end_time=None))["end_time"] is None
    await client.crons.delete(cron["cron_id"])
    assert await client.crons.count(metadata={"label": label}) == 0


async def test_a_due_cron_begins_one_run_however_many_processes_look(
    client: Client, platform: RunPlatform, shared_servers: SharedServers
) -> None:
    cron = await client.crons.create(
        "trail", schedule=YEARLY, input={"seen": ["input"]}, metadata={"who": "test"}, on_run_completed="keep"
    )
    await asyncio.gather(*(begin_due_runs(platform, NEW_YEAR) for _ in range(5)))
    (run_id,) = await runs_of(client, cron, shared_servers.owner_url)
    (cron,) = await client.crons.search(metadata={"who": "test"})
    assert cron["next_run_date"] == "2032-01-01T00:00:00+00:00"
    async with platform.database.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute("select thread_id from run where id = %s", (run_id,))).fetchone()
    assert row is not None
    assert await client.runs.join(str(row[0]), run_id) == {"seen": ["input", "first", "second"]}
    run = await client.runs.get(str(row[0]), run_id)
    assert run["metadata"] == {"who": "test", "cron_id": cron["cron_id"]}
    await client.crons.delete(cron["cron_id"])


async def test_times_that_passed_while_nobody_looked_begin_one_run(
    client: Client, platform: RunPlatform, shared_servers: SharedServers
) -> None:
    cron = await client.crons.create("trail", schedule=YEARLY, input={"seen": []})
    await begin_due_runs(platform, NEW_YEAR + timedelta(days=10 * 366))
    await begin_due_runs(platform, NEW_YEAR + timedelta(days=10 * 366 + 1))
    assert len(await runs_of(client, cron, shared_servers.owner_url)) == 1
    await client.crons.delete(cron["cron_id"])


async def test_a_worker_begins_the_run_of_a_due_cron(client: Client, shared_servers: SharedServers) -> None:
    cron = await client.crons.create("trail", schedule=YEARLY, input={"seen": ["input"]})
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as owner:
        owner.execute("update app.cron set next_run_at = now() where id = %s", (cron["cron_id"],))
    started: list[str] = []
    for _ in range(200):
        if started := await runs_of(client, cron, shared_servers.owner_url):
            break
        await asyncio.sleep(0.1)
    assert len(started) == 1
    await client.crons.delete(cron["cron_id"])


async def test_the_runs_of_a_cron_of_a_thread_continue_it(
    client: Client, platform: RunPlatform, shared_servers: SharedServers
) -> None:
    thread = (await client.threads.create())["thread_id"]
    cron = await client.crons.create_for_thread(thread, "trail", schedule=YEARLY, input={"seen": ["again"]})
    assert (cron["thread_id"], cron["on_run_completed"]) == (thread, None)
    await begin_due_runs(platform, NEW_YEAR)
    await begin_due_runs(platform, NEW_YEAR + timedelta(days=366))
    *_, last = await runs_of(client, cron, shared_servers.owner_url)
    assert await client.runs.join(thread, last) == {"seen": ["again", "first", "second"] * 2}
    await client.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await client.crons.delete(cron["cron_id"])


async def test_a_cron_that_is_off_or_has_ended_begins_no_run(
    client: Client, platform: RunPlatform, shared_servers: SharedServers
) -> None:
    off = await client.crons.create("trail", schedule=YEARLY, input={"seen": []}, enabled=False)
    end = datetime(2030, 1, 1, 0, 0, 30, tzinfo=UTC)
    over = await client.crons.create("trail", schedule=YEARLY, input={"seen": []}, end_time=end)
    await begin_due_runs(platform, NEW_YEAR)
    for cron in (off, over):
        assert await runs_of(client, cron, shared_servers.owner_url) == []
        await client.crons.delete(cron["cron_id"])


async def test_a_cron_that_cannot_begin_its_run_keeps_its_schedule(
    client: Client, platform: RunPlatform, shared_servers: SharedServers
) -> None:
    thread = (await client.threads.create())["thread_id"]
    busy = await client.runs.create(thread, "trail", input={"seen": [], "delay": 30})
    cron = await client.crons.create_for_thread(
        thread, "trail", schedule=YEARLY, input={"seen": []}, multitask_strategy="reject"
    )
    await begin_due_runs(platform, NEW_YEAR)
    assert await runs_of(client, cron, shared_servers.owner_url) == []
    (cron,) = await client.crons.search(thread_id=thread)
    assert cron["next_run_date"] == "2032-01-01T00:00:00+00:00"
    await client.runs.cancel(thread, busy["run_id"], wait=True)
    await client.crons.delete(cron["cron_id"])


async def test_the_crons_of_an_assistant_are_deleted_with_it(client: Client) -> None:
    assistant = await client.assistants.create("trail", name="Mine")
    cron = await client.crons.create(assistant["assistant_id"], schedule=YEARLY, input={"seen": []})
    await client.assistants.delete(assistant["assistant_id"])
    assert cron["cron_id"] not in [one["cron_id"] for one in await client.crons.search(limit=1000)]


async def test_another_tenant_has_no_part_in_a_cron(client: Client, other_client: Client) -> None:
    cron = await client.crons.create("trail", schedule=YEARLY, input={"seen": []})
    thread = (await client.threads.create())["thread_id"]
    assert await other_client.crons.search() == []
    assert await other_client.crons.count() == 0
    for attempt in (
        other_client.crons.delete(cron["cron_id"]),
        other_client.crons.update(cron["cron_id"], enabled=False),
        other_client.http.get(f"/runs/crons/{cron['cron_id']}"),
        other_client.crons.create_for_thread(thread, "trail", schedule=YEARLY, input={"seen": []}),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    await client.crons.delete(cron["cron_id"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schedule", "every day"),
        ("timezone", "Mars/Base"),
        ("webhook", "http://127.0.0.1:9/"),
        ("stream_mode", "everything"),
        ("after_seconds", 3),
        ("checkpoint_during", True),
        ("metadata", {"a": "\0"}),
    ],
)
async def test_a_field_that_cannot_be_honored_is_rejected_by_its_name(client: Client, field: str, value: Any) -> None:
    body: dict[str, Any] = {"assistant_id": "trail", "schedule": YEARLY, "input": {"seen": []}, field: value}
    with pytest.raises(UnprocessableEntityError, match=field):
        await client.http.post("/runs/crons", json=body)

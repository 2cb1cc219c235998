"""Threads that expire or are pruned, and threads that are found by their values."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from offing.services.langgraph_threads import expire_threads
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

TRAIL: Any = {"seen": ["input"]}


@pytest.fixture
async def database(shared_servers: SharedServers) -> AsyncIterator[Database]:
    async with Database(shared_servers.app_url, max_connections=4) as opened:
        yield opened


def in_minutes(minutes: float) -> datetime:
    return datetime.now(UTC) + timedelta(minutes=minutes)


async def run_in(client: Client, **thread: Any) -> tuple[str, str]:
    """Return a thread with an ended run, and the run."""
    created = await client.threads.create(**thread)
    run = await client.runs.create(created["thread_id"], "trail", input=TRAIL)
    await client.runs.join(created["thread_id"], run["run_id"])
    return created["thread_id"], run["run_id"]


async def test_an_expired_thread_is_gone_for_clients_and_its_run_stays_in_the_record(
    client: Client, database: Database, shared_servers: SharedServers
) -> None:
    thread, run = await run_in(client, ttl=60)
    cron = await client.crons.create_for_thread(thread, "trail", schedule="0 0 1 1 *", input=TRAIL)
    await expire_threads(database, in_minutes(59), 100)
    assert (await client.threads.get(thread))["status"] == "idle"
    await expire_threads(database, in_minutes(61), 100)
    for attempt in (
        client.threads.get(thread),
        client.runs.create(thread, "trail", input=TRAIL),
        client.runs.list(thread),
        client.crons.delete(cron["cron_id"]),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert await client.threads.search(ids=[thread]) == []
    with psycopg.connect(shared_servers.owner_url) as owner:
        assert owner.execute("select count(*) from app.run where id = %s", (run,)).fetchone() == (1,)
        left = owner.execute("select count(*) from app.checkpoint where thread_id = %s", (thread,))
        assert left.fetchone() == (0,)
        steps = owner.execute("select count(*) from app.step where run_id = %s", (run,)).fetchone()
    assert steps is not None
    assert steps[0] > 1


async def test_a_run_makes_the_time_of_a_thread_begin_anew(client: Client, database: Database) -> None:
    thread, _ = await run_in(client, ttl={"ttl": 60, "strategy": "delete"})
    before = (await client.http.get(f"/threads/{thread}?include=ttl"))["ttl"]
    assert (before["strategy"], before["ttl_minutes"]) == ("delete", 60)
    await client.runs.wait(thread, "trail", input=TRAIL)
    after = (await client.http.get(f"/threads/{thread}?include=ttl"))["ttl"]
    assert after["expires_at"] > before["expires_at"]
    await client.threads.update(thread, metadata={}, ttl=600)
    await expire_threads(database, in_minutes(61), 100)
    assert (await client.threads.get(thread))["thread_id"] == thread


async def test_a_busy_thread_does_not_expire(client: Client, database: Database) -> None:
    thread = (await client.threads.create(ttl=1))["thread_id"]
    run = await client.runs.create(thread, "trail", input={"seen": [], "delay": 20})
    await expire_threads(database, in_minutes(10), 100)
    assert (await client.threads.get(thread))["status"] == "busy"
    await client.runs.cancel(thread, run["run_id"], wait=True)


async def test_only_the_latest_state_is_kept_if_a_thread_asks_for_it(client: Client, database: Database) -> None:
    thread, _ = await run_in(client, ttl={"ttl": 60, "strategy": "keep_latest"})
    assert len(await client.threads.get_history(thread)) == 4
    await expire_threads(database, in_minutes(61), 100)
    (left,) = await client.threads.get_history(thread)
    assert left["values"] == {"seen": ["input", "first", "second"]}
    assert await client.runs.wait(thread, "trail", input=TRAIL) == {
        "seen": ["input", "first", "second", "input", "first", "second"]
    }


async def test_threads_are_pruned_by_either_strategy(client: Client, other_client: Client) -> None:
    (first, _), (second, _) = await run_in(client), await run_in(client)
    assert await other_client.threads.prune([first, second]) == {"pruned_count": 0}
    assert await client.threads.prune([first, str(uuid4())], strategy="keep_latest") == {"pruned_count": 1}
    assert len(await client.threads.get_history(first)) == 1
    assert await client.threads.prune([first, second]) == {"pruned_count": 2}
    with pytest.raises(NotFoundError):
        await client.threads.get(first)
    busy = (await client.threads.create())["thread_id"]
    run = await client.runs.create(busy, "trail", input={"seen": [], "delay": 20})
    with pytest.raises(ConflictError):
        await client.threads.prune([busy], strategy="keep_latest")
    await client.runs.cancel(busy, run["run_id"], wait=True)


async def test_threads_are_found_by_their_values_and_shown_in_parts(client: Client) -> None:
    label = str(uuid4())
    thread, _ = await run_in(client, metadata={"label": label})
    await client.threads.create(metadata={"label": label})
    threads = await client.threads.search(metadata={"label": label}, values={"seen": ["first"]})
    assert [one["thread_id"] for one in threads] == [thread]
    assert await client.threads.count(metadata={"label": label}, values={"seen": ["first"]}) == 1
    assert await client.threads.count(metadata={"label": label}, values={"seen": ["third"]}) == 0
    assert await client.threads.count(metadata={"label": label}) == 2
    (part,) = await client.threads.search(
        metadata={"label": label},
        values={"seen": ["first"]},
        select=["thread_id"],
        extract={"last": "values.seen[-1]", "whose": "metadata.label", "none": "values.seen[9].text"},
    )
    assert part == {"thread_id": thread, "extracted": {"last": "second", "whose": label, "none": None}}


async def test_threads_are_sorted(client: Client) -> None:
    label = str(uuid4())
    thread_ids = [(await client.threads.create(metadata={"label": label}))["thread_id"] for _ in range(3)]
    for order in ("created_at", "updated_at", "state_updated_at"):
        threads = await client.threads.search(metadata={"label": label}, sort_by=order, sort_order="asc")
        assert [one["thread_id"] for one in threads] == thread_ids
    threads = await client.threads.search(metadata={"label": label}, sort_by="thread_id", sort_order="desc", limit=2)
    assert [one["thread_id"] for one in threads] == sorted(thread_ids, reverse=True)[:2]


async def test_the_threads_of_an_assistant_are_deleted_with_it_if_asked_to(client: Client) -> None:
    assistant = (await client.assistants.create("trail"))["assistant_id"]
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, assistant, input=TRAIL)
    await client.assistants.delete(assistant, delete_threads=True)
    with pytest.raises(NotFoundError):
        await client.threads.get(thread)


@pytest.mark.parametrize(
    ("field", "value"), [("extract", {"a": "values..b"}), ("select", ["secrets"]), ("sort_by", "values")]
)
async def test_what_a_search_cannot_do_is_rejected_by_its_name(client: Client, field: str, value: Any) -> None:
    with pytest.raises(UnprocessableEntityError, match=field):
        await client.http.post("/threads/search", json={field: value})
    for ttl in (0, -1, {"ttl": 5, "strategy": "burn"}):
        with pytest.raises(UnprocessableEntityError, match="ttl"):
            await client.http.post("/threads", json={"ttl": ttl})

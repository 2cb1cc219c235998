"""Many requests for one thread at once: one run at a time, in the order in which they were made."""

import asyncio
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from langgraph_sdk.errors import ConflictError

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

PERIODS = """
    select id::text, started_at, ended_at from app.run where thread_id = %s order by created_at, id
"""


async def test_thirty_runs_of_a_thread_at_once_run_one_after_the_other_in_order(
    client: Client, shared_servers: SharedServers
) -> None:
    thread = (await client.threads.create())["thread_id"]
    runs = await asyncio.gather(
        *(client.runs.create(thread, "trail", input={"seen": [str(number)]}) for number in range(30))
    )
    await client.runs.wait(thread, "trail", input={"seen": ["last"]})
    listed: list[Any] = list(reversed(await client.runs.list(thread, limit=100)))
    assert [run["status"] for run in listed] == ["success"] * 31
    number_by_run = {run["run_id"]: str(number) for number, run in enumerate(runs)}
    expected = [text for run in listed[:-1] for text in (number_by_run[run["run_id"]], "first", "second")]
    assert (await client.threads.get_state(thread))["values"]["seen"] == [*expected, "last", "first", "second"]
    with psycopg.connect(shared_servers.owner_url) as connection:
        periods = connection.execute(PERIODS, (thread,)).fetchall()
    assert all(later[1] >= earlier[2] for earlier, later in pairwise(periods))


async def test_of_several_responses_to_an_interrupt_at_once_exactly_one_is_executed(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "approval", input={"topic": "leave"})
    answers = [f"answer {number}" for number in range(10)]
    results = await asyncio.gather(
        *(client.runs.wait(thread, "approval", command={"resume": answer}) for answer in answers)
    )
    decisions = (await client.threads.get_state(thread))["values"]["decisions"]
    assert len(decisions) == 1
    assert decisions[0] in answers
    assert [result["decisions"] for result in results] == [decisions] * 10


async def test_of_several_runs_that_reject_a_busy_thread_exactly_one_is_made(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    runs = await asyncio.gather(
        *(
            client.runs.create(thread, "trail", input={"seen": [], "delay": 1}, multitask_strategy="reject")
            for _ in range(10)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(one, dict) for one in runs) == 1
    assert {one.response.status_code for one in runs if not isinstance(one, dict)} == {409}  # pyright: ignore


async def test_runs_that_interrupt_or_roll_back_each_other_leave_the_thread_free(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    for strategy in ("interrupt", "rollback"):
        await asyncio.gather(
            *(
                client.runs.create(thread, "trail", input={"seen": [], "delay": 1}, multitask_strategy=strategy)
                for _ in range(6)
            ),
            return_exceptions=True,
        )
        result = await client.runs.wait(thread, "trail", input={"seen": [strategy]})
        assert result["seen"][-3:] == [strategy, "first", "second"]
        assert (await client.threads.get(thread))["status"] == "idle"


async def test_a_request_for_a_thread_does_not_wait_in_a_circle_with_a_worker_that_ends_its_run(
    client: Client, shared_servers: SharedServers
) -> None:
    thread = (await client.threads.create())["thread_id"]
    with psycopg.connect(shared_servers.owner_url) as worker:
        worker.execute("update app.langgraph_thread set status = 'error' where thread_id = %s", (thread,))
        request = asyncio.create_task(client.threads.update(thread, metadata={"waits": True}))
        await _until_locked(shared_servers, thread)
        # what a foreign key does for the checkpoints that the worker stores next
        worker.execute("set local lock_timeout = '2s'")
        worker.execute("select from app.thread where id = %s for key share", (thread,))
    assert (await request)["metadata"] == {"waits": True}


async def _until_locked(servers: SharedServers, thread: str) -> None:
    """Wait until a request has locked the thread."""
    while True:
        with psycopg.connect(servers.owner_url) as connection:
            lock = "select from app.thread where id = %s for update skip locked"
            if connection.execute(lock, (thread,)).fetchone() is None:
                return
        await asyncio.sleep(0.02)


async def test_a_thread_whose_state_its_graph_cannot_compute_does_not_break_lists(client: Client) -> None:
    thread = (await client.threads.create(metadata={"kind": "broken"}))["thread_id"]
    await client.runs.wait(thread, "trail", input={"seen": "not a list"}, raise_error=False)
    assert [one["thread_id"] for one in await client.threads.search(metadata={"kind": "broken"})] == [thread]
    assert (await client.threads.get(thread))["status"] == "error"
    with pytest.raises(ConflictError, match="cannot compute this state"):
        await client.threads.get_state(thread)
    result = await client.runs.wait(thread, "trail", input={"seen": ["a list"]})
    assert result["seen"] == ["a list", "first", "second"]

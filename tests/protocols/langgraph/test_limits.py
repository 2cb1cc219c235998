"""Spending limits and tool policies hold for runs of LangGraph's clients, and retention leaves what they continue from.

The first run of a thread is made with Offing's API, which names engines and a tool policy. Those of LangGraph's clients
keep them.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from offing.bus.notifier import BusNotifier
from offing.core.model import EngineConfig
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.services import access
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import retention
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.protocols.langgraph.graphs import GRAPHS
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

SEARCH = {"calls": [{"name": "search", "args": {"query": "rain"}}]}

DONE = [{"contains": text, "answer": {"text": f"It says: {text}"}} for text in ("found rain", "not allowed")]

AGENT = EngineConfig(
    engine="scripted",
    options={
        "speaks": True,
        "answers": [SEARCH],
        "cases": [{"contains": "hello", "answer": {"text": "Hello."}}, *DONE],
        "usage": {"cost_usd": "0.01"},
    },
)

QUESTION: Any = {"messages": [{"role": "user", "content": "Does it rain?"}]}


class Sender:
    """Makes the first run of a thread with Offing's own services."""

    def __init__(self, database: Database, notifier: BusNotifier, client: Client) -> None:
        self._database, self._notifier, self._client = database, notifier, client

    async def open_thread(self, **more: Any) -> str:
        request = RunRequest("hello", "guide", engines={"agent": AGENT}, **more)
        submitted = await submit_run(
            self._database, self._notifier, LOCAL_TENANT, request, graphs=open_registry(GRAPHS)
        )
        thread = str(submitted.run.thread_id)
        while True:
            if (await self._client.threads.get(thread))["status"] != "busy":
                return thread
            await asyncio.sleep(0.05)


@pytest.fixture
async def sender(shared_servers: SharedServers, key_database: Database, client: Client) -> AsyncIterator[Sender]:
    async with BusNotifier(shared_servers.redis_url) as notifier:
        yield Sender(key_database, notifier, client)


@pytest.fixture
def owner(shared_servers: SharedServers) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def spent(owner: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """A tenant that may not spend more today after two calls."""
    owner.execute("delete from app.daily_spend")
    owner.execute("update app.tenant set max_daily_spend_usd = 0.02")
    yield owner
    owner.execute("update app.tenant set max_daily_spend_usd = null")


async def test_a_run_stops_at_the_spending_limit_of_the_tenant_and_every_client_gets_the_error(
    client: Client, sender: Sender, spent: psycopg.Connection
) -> None:
    thread = await sender.open_thread()
    parts = [part async for part in client.runs.stream(thread, "guide", input=QUESTION)]
    assert [part.event for part in parts[-2:]] == ["error", "end"]
    problem = parts[-2].data
    assert problem["error"] == "tenant_spend_limit"
    assert "daily spending limit" in problem["message"]
    run = (await client.runs.list(thread))[0]
    assert (run["status"], (await client.threads.get(thread))["status"]) == ("error", "error")
    assert await client.runs.wait(thread, "guide", input=QUESTION, raise_error=False) == {"__error__": problem}
    async with client.threads.stream(thread_id=thread, assistant_id="guide") as followed:
        await followed.run.start(input=QUESTION)
        with pytest.raises(Exception, match="daily spending limit"):
            await followed.output
    used = spent.execute("select used_usd from app.daily_spend").fetchall()
    assert [float(usd) for (usd,) in used] == [0.02]


def policy(effect: Any) -> ToolPolicy:
    rule = ToolRule(tool="graph:search", effect=effect, allow_other_args=effect == "ask", reason="On purpose.")
    return ToolPolicy(rules=(rule,))


def find_answer(values: Any) -> str:
    return values["messages"][-1]["content"]


async def test_a_tool_policy_holds_for_the_later_runs_of_its_thread_also_after_a_written_state_and_in_a_copy(
    client: Client, sender: Sender
) -> None:
    thread = await sender.open_thread(tool_policy=policy("forbid"))
    assert find_answer(await client.runs.wait(thread, "guide", input=QUESTION)) == "It says: not allowed"
    note = {"messages": [{"role": "user", "content": "A note."}]}
    await client.threads.update_state(thread, note, as_node="agent")
    assert find_answer(await client.runs.wait(thread, "guide", input=QUESTION)) == "It says: not allowed"
    copied = (await client.threads.copy(thread))["thread_id"]
    assert find_answer(await client.runs.wait(copied, "guide", input=QUESTION)) == "It says: not allowed"


async def test_an_approval_is_an_input_request_of_the_run_and_no_interrupt(
    client: Client, sender: Sender, base: str, key_database: Database
) -> None:
    thread = await sender.open_thread(tool_policy=policy("ask"))
    run = await client.runs.create(thread, "guide", input=QUESTION, stream_mode=["updates", "values"])
    key = (await access.create_key(key_database, LOCAL_TENANT, f"of {run['run_id']}")).key
    async with httpx.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {key}"}) as http:
        path = f"/api/v1/runs/{run['run_id']}/input-requests"
        pending = await _until_listed(http, path)
        assert (await client.threads.get(thread))["status"] == "busy"
        state = await client.threads.get_state(thread)
        assert (state["next"], state["interrupts"]) == (["tools"], [])
        answered = await http.post(f"{path}/{pending[0]['number']}/response", json={"approved": True})
        assert answered.status_code == 200, answered.text
    assert find_answer(await client.runs.join(thread, run["run_id"])) == "It says: found rain"
    parts = [part async for part in client.runs.join_stream(thread, run["run_id"], last_event_id="-1")]
    assert [part for part in parts if "__interrupt__" in (part.data or {})] == []


async def _until_listed(http: httpx.AsyncClient, path: str) -> list[Any]:
    while True:
        if items := (await http.get(path)).json()["items"]:
            return items
        await asyncio.sleep(0.05)


async def test_an_interrupt_in_a_subgraph_is_answered_after_retention_without_running_its_nodes_again(
    client: Client, key_database: Database
) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "nested_approval", input={"topic": "go", "decisions": []})
    await client.runs.join(thread, run["run_id"])
    async with key_database.transaction(LOCAL_TENANT) as connection:
        await retention.prune_run(connection, UUID(run["run_id"]))
    state = await client.threads.get_state(thread, subgraphs=True)
    assert state["tasks"][0]["state"]["values"]["decisions"] == ["prepared"]
    result = await client.runs.wait(thread, "nested_approval", command={"resume": "yes"})
    assert result["decisions"] == ["prepared", "yes"]

"""What holds for every run holds for those that clients of MCP make: ends, interrupts, cancellation and limits."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import psycopg
from fastapi import FastAPI

from offing.clock import new_id
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.protocols.langgraph.test_limits import AGENT, owner, spent
from tests.protocols.langgraph.test_mcp import connect

__all__ = ["ENVIRONMENT", "owner", "spent"]

PATIENCE_SECONDS = 30.0


async def find_run(client: Client, base: str, label: str) -> tuple[str, str]:
    """Return the thread and the id of the active run whose input has a label, once there is one."""
    headers = {"Authorization": f"Bearer {client.http.client.headers['x-api-key']}"}
    async with httpx.AsyncClient(base_url=base, headers=headers) as http, asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for run in (await http.get("/api/v1/runs", params={"limit": 20})).json()["items"]:
                if label in run["question"] and run["status"] == "running":
                    return run["thread_id"], run["id"]
            await asyncio.sleep(0.05)


async def read_end(client: Client, base: str, run_id: str) -> str:
    """Return the status with which a run ended."""
    headers = {"Authorization": f"Bearer {client.http.client.headers['x-api-key']}"}
    async with httpx.AsyncClient(base_url=base, headers=headers) as http, asyncio.timeout(PATIENCE_SECONDS):
        while True:
            status = (await http.get(f"/api/v1/runs/{run_id}")).json()["status"]
            if status not in ("queued", "running"):
                return status
            await asyncio.sleep(0.05)


def slow(label: str) -> dict[str, Any]:
    return {"seen": [label], "delay": 60}


async def test_a_call_that_a_client_gives_up_is_cancelled_and_no_other_one(
    base: str, key_database: Database, client: Client
) -> None:
    mine, theirs = f"mine-{new_id()}", f"theirs-{new_id()}"
    async with connect(base, key_database) as session, connect(base, key_database) as other:
        given_up = asyncio.create_task(session.call_tool("trail", slow(mine)))
        active_call = asyncio.create_task(other.call_tool("trail", slow(theirs)))  # its message has the same id
        (_, run), active = await find_run(client, base, mine), await find_run(client, base, theirs)
        given_up.cancel()
        assert await read_end(client, base, run) == "cancelled"
        assert (await client.runs.get(*active))["status"] == "running"
        await client.runs.cancel(*active)
        result: Any = await active_call
        assert (result.is_error, result.content[0].text) == (True, "The run was cancelled.")


async def test_an_interrupt_is_the_result_of_the_call(base: str, key_database: Database) -> None:
    async with connect(base, key_database) as session:
        result: Any = await session.call_tool("approval", {"topic": "go", "decisions": []})
    (interrupt,) = result.structured_content["__interrupt__"]
    assert (result.is_error, interrupt["value"]) == (False, {"question": "May I go?"})


async def test_a_call_stops_at_the_spending_limit_of_the_tenant(
    app: tuple[FastAPI, str], key_database: Database, spent: psycopg.Connection
) -> None:
    server, base = app
    server.state.dependencies = replace(server.state.dependencies, role_engines={"agent": AGENT})
    async with connect(base, key_database) as session:
        result: Any = await session.call_tool("guide", {"messages": [{"role": "user", "content": "Does it rain?"}]})
        assert result.is_error is False
        result = await session.call_tool("guide", {"messages": [{"role": "user", "content": "Does it rain?"}]})
    assert result.is_error
    assert "tenant_spend_limit" in result.content[0].text
    ((used,),) = spent.execute("select used_usd from app.daily_spend").fetchall()
    assert float(used) == 0.02

"""Assistants as tools of MCP, through the protocol's own Python client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from offing.clock import new_id
from offing.protocols.langgraph.mcp_tools import name_tools
from offing.services import access
from offing.services.langgraph_assistants import EPOCH, SYSTEM, graph_assistant_id
from offing.storage.assistants import AssistantRow
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


@asynccontextmanager
async def connect(base: str, database: Database, tenant: UUID = LOCAL_TENANT) -> AsyncGenerator[ClientSession]:
    key = (await access.create_key(database, tenant, str(new_id()))).key
    async with connect_with(base, {"x-api-key": key}) as session:
        yield session


@asynccontextmanager
async def connect_with(
    base: str, headers: dict[str, str], timeout_seconds: float = 60
) -> AsyncGenerator[ClientSession]:
    async with httpx2.AsyncClient(headers=headers, timeout=timeout_seconds) as http:
        transport = streamable_http_client(f"{base}/langgraph/mcp", http_client=http)
        async with transport as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            yield session


async def test_each_assistant_is_a_tool_with_the_schema_of_its_input(
    base: str, key_database: Database, client: Client
) -> None:
    name = f"trail-{new_id().hex}"
    await client.assistants.create("trail", name=name, description="Follow the trail.")
    async with connect(base, key_database) as session:
        tools = {one.name: one for one in (await session.list_tools()).tools}
    assert {"trail", "chatter", "approval", "agentflow", name} <= tools.keys()
    assert list(tools[name].input_schema["properties"]) == ["seen", "delay", "fail"]
    assert tools[name].description == "Follow the trail."
    assert tools["agentflow"].input_schema["required"] == ["question"]


async def test_a_call_is_a_run_in_the_record(base: str, key_database: Database, client: Client) -> None:
    seen = f"ignore all rules {new_id()}"
    async with connect(base, key_database) as session:
        result: Any = await session.call_tool("trail", {"seen": [seen]})
        assert (result.is_error, result.structured_content) == (False, {"seen": [seen, "first", "second"]})
        failed: Any = await session.call_tool("trail", {"seen": [], "fail": True})
    assert failed.is_error
    assert "the second node fails" in failed.content[0].text
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {await _create_key(key_database)}"}) as http:
        listed = (await http.get(f"{base}/api/v1/runs", params={"limit": 5})).json()["items"]
    assert any(seen in one["question"] and one["protocol"] == "langgraph" for one in listed)


async def test_bad_calls_are_answered_with_errors_that_name_them(base: str, key_database: Database) -> None:
    async with connect(base, key_database) as session:
        with pytest.raises(MCPError, match="nothing"):
            await session.call_tool("nothing", {})
        rejected: Any = await session.call_tool("agentflow", {"topic": "salt"})
        assert rejected.is_error
        assert "question" in rejected.content[0].text
        with pytest.raises(MCPError, match="NUL"):
            await session.call_tool("trail", {"seen": ["a\0b"]})
        assert (await session.call_tool("trail", {"seen": []})).is_error is False


async def test_another_tenant_sees_no_tool_of_this_one(
    base: str, key_database: Database, client: Client, other_tenant: UUID
) -> None:
    name = f"own-{new_id().hex}"
    await client.assistants.create("trail", name=name)
    async with connect(base, key_database, other_tenant) as session:
        tools = {one.name for one in (await session.list_tools()).tools}
        assert "trail" in tools
        assert name not in tools
        with pytest.raises(MCPError, match=name):
            await session.call_tool(name, {"seen": []})


async def test_it_keeps_no_sessions_and_needs_a_key(base: str, key_database: Database) -> None:
    url, hello = f"{base}/langgraph/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    key = {"x-api-key": await _create_key(key_database)}
    async with httpx2.AsyncClient() as http:
        assert (await http.post(url, json=hello)).status_code == 401
        assert (await http.post(f"{url}/", json=hello, headers=key)).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post(url, json=note, headers=key)).status_code == 202
        assert (await http.get(url, headers=key)).status_code == 405
        assert (await http.delete(url, headers=key)).status_code == 404
        initialize = {**hello, "method": "initialize"}
        session = (await http.post(url, json=initialize, headers=key)).headers["mcp-session-id"]
        assert (await http.delete(url, headers={**key, "mcp-session-id": session})).status_code == 204
        broken = await http.post(url, content=b"{", headers=key)
        assert (broken.status_code, broken.json()["error"]["code"]) == (400, -32700)


def test_a_new_assistant_never_takes_the_name_of_another_tool() -> None:
    def build(name: str, metadata: dict[str, Any], id: UUID | None = None) -> AssistantRow:
        return AssistantRow(id or new_id(), "trail", name, "", {}, {}, metadata, 1, EPOCH, EPOCH)

    own, impostors = build("trail", {}, graph_assistant_id("trail")), [build("trail", {}), build("trail", SYSTEM)]
    twins, odd = [build("twin", {}), build("twin", {})], build("no name for a tool", {})
    named = name_tools([impostors[0], own, *twins, odd, impostors[1]])
    assert named["trail"] is own
    assert set(named) == {"trail", *(str(one.id) for one in (*impostors, *twins, odd))}


async def _create_key(database: Database) -> str:
    return (await access.create_key(database, LOCAL_TENANT, str(new_id()))).key

"""A project's rules for users hold for clients of MCP and A2A as for requests for runs, and so do groups that it turns
off.
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from mcp.shared.exceptions import MCPError

from offing.protocols.langgraph.app import build_langgraph_app
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.protocols.langgraph.test_a2a import call, send, text
from tests.protocols.langgraph.test_mcp import connect_with
from tests.protocols.langgraph.test_project_rules import GUARD, ada, base, bob, serving_users
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT", "ada", "base", "bob"]

ADA, BOB = {"Authorization": "Bearer ada"}, {"Authorization": "Bearer bob"}

SALT = text("salt")

NO_RUNS = """

@auth.on.threads.create_run
async def reject(ctx, value):
    return False
"""


def open_http(base: str, headers: dict[str, str]) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"{base}/langgraph", headers=headers, timeout=60)


async def test_a_user_of_mcp_calls_the_graphs_and_not_the_assistants_of_another(base: str, ada: Client) -> None:
    await ada.assistants.create("trail", name="of-ada")
    async with connect_with(base, ADA) as mine, connect_with(base, BOB) as other:
        assert {"trail", "chatter", "of-ada"} <= {one.name for one in (await mine.list_tools()).tools}
        result: Any = await mine.call_tool("of-ada", {"seen": []})
        assert result.structured_content == {"seen": ["first", "second"]}
        names = {one.name for one in (await other.list_tools()).tools}
        assert ("trail" in names, "of-ada" in names) == (True, False)
        with pytest.raises(MCPError, match="of-ada"):
            await other.call_tool("of-ada", {"seen": []})
        result = await other.call_tool("whoami", {})
        assert result.structured_content["seen"]["id"] == "bob"


async def test_a_user_cancels_no_call_of_another_even_with_its_session(base: str) -> None:
    def build(method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    async with open_http(base, ADA) as mine, open_http(base, BOB) as other:
        greeting = await mine.post("/mcp", json={**build("initialize"), "id": 0})
        session = {"mcp-session-id": greeting.headers["mcp-session-id"]}
        started = {**build("tools/call", name="trail", arguments={"seen": [], "delay": 1}), "id": "one"}
        active = asyncio.create_task(mine.post("/mcp", json=started, headers=session))
        cancel = build("notifications/cancelled", requestId="one")
        while not active.done():  # whenever the run is found, it is not the other's
            assert (await other.post("/mcp", json=cancel, headers=session)).status_code == 202
            await asyncio.sleep(0.1)
        assert (await active).json()["result"]["structuredContent"]["seen"] == ["first", "second"]


async def test_a_user_of_a2a_neither_reads_nor_continues_nor_cancels_the_task_of_another(
    base: str, ada: Client
) -> None:
    own = (await ada.assistants.create("chatter", name="Ada's"))["assistant_id"]
    async with open_http(base, ADA) as mine, open_http(base, BOB) as other:
        task = (await send(mine, "chatter", SALT))["result"]
        assert (await ada.threads.get(task["contextId"]))["metadata"]["owner"] == "ada"
        for method in ("tasks/get", "tasks/cancel", "tasks/resubscribe"):
            assert (await call(other, "chatter", method, id=task["id"]))["error"]["code"] == -32001
        for named in ({"contextId": task["contextId"]}, {"taskId": task["id"]}):
            assert "salt" not in str(rejected := await send(other, "chatter", text("pepper"), **named))
            assert "error" in rejected
        assert len(await ada.runs.list(task["contextId"])) == 1
        assert (await other.get(f"/a2a/{own}/.well-known/agent-card.json")).status_code == 404
        assert (await other.get("/.well-known/agent-card.json", params={"assistant_id": own})).status_code == 404
        assert own in (await send(other, own, SALT))["error"]["message"]
        assert (await mine.get(f"/a2a/{own}/.well-known/agent-card.json")).json()["name"] == "Ada's"


async def test_a_handler_that_rejects_runs_rejects_those_of_mcp_and_a2a(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    async with serving_users(shared_servers, tmp_path, GUARD + NO_RUNS) as address, open_http(address, ADA) as http:
        denied = await http.post("/runs/wait", json={"assistant_id": "trail", "input": {}})
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1}
        of_mcp: dict[str, Any] = {"method": "tools/call", "params": {"name": "trail", "arguments": {}}}
        message = {"role": "user", "messageId": "m", "parts": [SALT]}
        of_a2a = {"method": "message/send", "params": {"message": message}}
        answers = [
            denied,
            await http.post("/mcp", json=body | of_mcp),
            await http.post("/a2a/chatter", json=body | of_a2a),
        ]
        assert [one.status_code for one in answers] == [403, 403, 403]
        assert all("error" in one.json() for one in answers[1:])
        for path in ("/mcp", "/a2a/chatter"):
            unknown = {"Authorization": "Bearer eve"}
            assert (await http.post(path, json=body | of_mcp, headers=unknown)).status_code == 401


@pytest.mark.parametrize(
    ("group", "missing"),
    [
        ("mcp", {"/mcp"}),
        ("a2a", {"/a2a/{assistant_id}", "/.well-known/agent-card.json"}),
        ("runs", {"/mcp", "/a2a/{assistant_id}", "/runs/wait", "/threads/{thread_id}/commands"}),
        ("assistants", {"/mcp", "/a2a/{assistant_id}", "/assistants/search"}),
        ("threads", {"/threads/{thread_id}/commands", "/threads/{thread_id}/stream/events", "/threads"}),
    ],
)
def test_a_group_that_is_turned_off_leaves_no_other_way_to_the_same(group: str, missing: set[str]) -> None:
    def list_paths(*groups: str) -> set[str]:
        app = build_langgraph_app(lambda: None, disabled_groups=groups)  # pyright: ignore[reportArgumentType]
        return {str(one.path) for one in iter_route_contexts(app.routes)}

    assert missing <= list_paths()
    assert not missing & list_paths(group)

"""MCP servers through the API: those that the operator has set up can be named, and no others, nor a program."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from offing.api.app import create_app
from offing.mcp.pins import pin_tools, pins_path, write_pins
from offing.mcp.tool_listing import McpToolListing
from offing.services import access
from offing.settings import Settings
from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.conftest import GRAPHS, PATIENCE, bearer, serving
from tests.mcp.config_files import entry, written
from tests.mcp.servers import TEXT

URL = "https://a.example/mcp"


@pytest.fixture
async def client(app_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[tuple[httpx.AsyncClient, Database]]:
    file = written(tmp_path, entry(URL, "wiki") + entry(URL, "unseen"))
    write_pins(pins_path(file), {"wiki": pin_tools(URL, [McpToolListing("echo", "Says it again.", TEXT)])})
    settings = Settings(
        app_database_url=SecretStr(app_url),
        redis_url=SecretStr(redis_url),
        extra_graphs=GRAPHS,
        port=0,
        mcp_config=file,
    )
    async with Database(app_url, max_connections=4) as database, serving(create_app(settings), settings) as base:
        key = await access.create_key(database, LOCAL_TENANT, "mine")
        async with httpx.AsyncClient(base_url=base, headers=bearer(key.key), timeout=PATIENCE) as http:
            yield http, database


def wanting(**scope: object) -> dict[str, object]:
    return {"question": "Why is the sea salt?", "graph": "quiet", "scope": scope}


async def test_a_run_may_name_a_server_that_was_looked_at_and_gets_the_rules_of_its_tools(
    client: tuple[httpx.AsyncClient, Database],
) -> None:
    http, database = client
    assert (await http.get("/api/v1/mcp-servers")).json() == [{"name": "wiki", "tools": ["mcp_wiki_echo"]}]
    created = await http.post("/api/v1/runs", json=wanting(mcp=["wiki"]))
    assert created.status_code == 201, created.text
    async with database.transaction(LOCAL_TENANT) as connection:
        run = await runs.get_run(connection, created.json()["id"])
    assert run.scope["mcp"] == ["wiki"]
    assert isinstance(run.tool_policy, dict)
    assert {"mcp_wiki_echo", "mcp_wiki_read_on"} <= {rule["tool"] for rule in run.tool_policy["rules"]}


@pytest.mark.parametrize(
    ("scope", "field", "problem"),
    [
        ({"mcp": ["other"]}, "scope.mcp", "there is no MCP server 'other'"),
        ({"mcp": ["unseen"]}, "scope.mcp", "its tools have not been reviewed"),
        ({"mcp": ["../wiki"]}, "scope.mcp", "there is no MCP server"),
        ({"mcp": [{"command": "npx", "args": ["-y", "evil"]}]}, "scope.mcp.0", ""),
        ({"mcp": {"command": "npx"}}, "scope.mcp", ""),
        ({"command": "npx"}, "scope.command", ""),
        ({"mcp": ["wiki"] * 21}, "scope.mcp", ""),
    ],
    ids=str,
)
async def test_what_is_no_name_of_one_is_rejected(
    client: tuple[httpx.AsyncClient, Database], scope: dict[str, object], field: str, problem: str
) -> None:
    http, _ = client
    rejected = await http.post("/api/v1/runs", json=wanting(**scope))
    assert (rejected.status_code, rejected.json()["field"]) == (422, field)
    assert problem in rejected.json()["detail"]


async def test_nothing_of_a_server_is_set_up_or_shown_through_the_api(
    client: tuple[httpx.AsyncClient, Database],
) -> None:
    http, _ = client
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = await http.request(method, "/api/v1/mcp-servers", json={"name": "x", "command": "npx"})
        assert answer.status_code == 405
    assert URL not in (await http.get("/api/v1/mcp-servers")).text

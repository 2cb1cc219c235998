"""What a run knows of the user and of the request that asked for it, and what of both is stored."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from langgraph_sdk import get_client
from pydantic import SecretStr

from offing.api.app import create_app
from offing.settings import Settings
from tests.api.conftest import serving
from tests.protocols.langgraph.conftest import ENVIRONMENT
from tests.protocols.langgraph.graphs import GRAPHS
from tests.unit.services.test_langgraph_projects import with_graph
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

GUARD = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def identify(authorization: str | None):
    assert authorization == "Bearer ada-and-her-key", "Who are you?"
    return {
        "identity": "ada",
        "permissions": ["read"],
        "team": "gulls",
        "github_token": "of-another-service",
        "sent": authorization,
        "clients": [{"name": "one", "client_secret": "hidden-in-a-list"}],
        "connection": object(),
    }
"""

RULES = (
    GUARD
    + """

@auth.on
async def own(ctx, value):
    value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}
"""
)

ADA = {"Authorization": "Bearer ada-and-her-key"}

SECRETS = ("ada-and-her-key", "of-another-service", "hidden-in-a-list")

STORED = (
    "select coalesce(string_agg(arguments::text, ' '), '') from app.langgraph_run where arguments->>'user' is not null"
)


@asynccontextmanager
async def serving_project(
    servers: SharedServers, tmp_path: Path, guard: str = GUARD, **http: Any
) -> AsyncGenerator[str]:
    project = with_graph(tmp_path / "project", auth={"path": "./guard.py:auth"}, http=http)
    (project / "guard.py").write_text(guard)
    settings = Settings(
        app_database_url=SecretStr(servers.app_url),
        redis_url=SecretStr(servers.redis_url),
        lease_seconds=3,
        extra_graphs=GRAPHS,
        graph_paths=str(project),
        home=tmp_path / "home",
        port=0,
    )
    async with serving(create_app(settings), settings) as address:
        yield f"{address}/langgraph"


@asynccontextmanager
async def client_of(address: str, **headers: str) -> AsyncGenerator[Any]:
    client: Any = get_client(url=address, api_key=None, headers={**ADA, **headers})
    yield client
    await client.aclose()


async def test_a_node_knows_the_user_and_nothing_secret_is_stored(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    forged: Any = {"configurable": {"langgraph_auth_user": {"identity": "eve"}, "langgraph_auth_user_id": "eve"}}
    async with serving_project(shared_servers, tmp_path) as address, client_of(address) as client:
        values = await client.runs.wait(None, "whoami", input={}, config=forged)
        assert values["seen"] == {
            "user": {
                "identity": "ada",
                "display_name": "ada",
                "is_authenticated": True,
                "permissions": ["read"],
                "team": "gulls",
                "clients": [{"name": "one"}],
            },
            "id": "ada",
            "permissions": ["read"],
            "of_runtime": "ada",
            "headers": {},
        }
        thread = await client.threads.create()
        run = await client.runs.create(thread["thread_id"], "whoami", input={})
        assert "gulls" not in str(run["kwargs"])
    with psycopg.connect(shared_servers.owner_url) as connection:
        row = connection.execute(STORED).fetchone()
    assert row is not None
    assert "gulls" in row[0]
    assert not [secret for secret in SECRETS if secret in row[0]]


async def test_a_run_of_a_key_has_no_user(client: Any) -> None:
    forged: Any = {"configurable": {"langgraph_auth_user": {"identity": "eve"}}}
    seen = (await client.runs.wait(None, "whoami", input={}, config=forged))["seen"]
    assert (seen["user"], seen["id"], seen["of_runtime"], seen["headers"]) == (None, None, None, {})


@pytest.mark.parametrize(
    ("http", "expected"),
    [
        ({}, {"x-team": "gulls", "x-tide": "low"}),
        ({"configurable_headers": {"includes": ["x-te*", "user-agent"]}}, {"x-team": "gulls", "user-agent": "me"}),
        ({"configurable_headers": {"excludes": ["*"]}}, {}),
        ({"configurable_headers": {"include": ["x-*"], "exclude": ["x-team"]}}, {"x-tide": "low"}),
        ({"configurable_headers": {"includes": ["authorization", "x-auth-token"]}}, {}),
    ],
)
async def test_a_run_gets_the_headers_that_the_project_chooses_and_no_secret(
    shared_servers: SharedServers, tmp_path: Path, http: dict[str, Any], expected: dict[str, str]
) -> None:
    sent = {"x-team": "gulls", "X-Tide": "low", "x-auth-token": "of-another-service", "User-Agent": "me"}
    overwritten: Any = {"configurable": {"x-team": "of the body"}}
    async with serving_project(shared_servers, tmp_path, **http) as address, client_of(address, **sent) as client:
        seen = (await client.runs.wait(None, "whoami", input={}, config=overwritten))["seen"]
        expected = expected if "x-team" in expected else {**expected, "x-team": "of the body"}
        assert seen["headers"] == expected


async def test_a_filter_of_a_handler_for_everything_leaves_the_store_open(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    async with serving_project(shared_servers, tmp_path, RULES) as address, client_of(address) as client:
        await client.store.put_item(["notes"], "tea", {"text": "likes tea"})
        assert (await client.store.get_item(["notes"], "tea"))["namespace"] == ["notes"]
        assert [one["key"] for one in (await client.store.search_items(["notes"]))["items"]] == ["tea"]
        thread = await client.threads.create()
        assert (await client.threads.get(thread["thread_id"]))["metadata"]["owner"] == "ada"


async def test_a_handler_may_change_what_is_searched_for_and_a_bad_namespace_is_an_error(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    rules = (
        GUARD
        + """

@auth.on.store.search
async def narrow(ctx, value):
    value["filter"] = {"text": "likes tea"}

@auth.on.store.delete
async def wrong(ctx, value):
    value["namespace"] = "notes"
"""
    )
    async with serving_project(shared_servers, tmp_path, rules) as address, client_of(address) as client:
        for text in ("likes tea", "likes coffee"):
            await client.store.put_item(["drinks"], text, {"text": text})
        assert [one["key"] for one in (await client.store.search_items(["drinks"]))["items"]] == ["likes tea"]
        async with httpx.AsyncClient(base_url=address, headers=ADA) as http:
            body = {"namespace": ["drinks"], "key": "likes tea"}
            answer = await http.request("DELETE", "/store/items", json=body)
        assert (answer.status_code, "tuple of texts" in answer.json()["detail"]) == (422, True)

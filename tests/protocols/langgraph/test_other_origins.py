"""Pages of other origins, metrics, and groups of routes that a project turns off, over real HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from offing.api.app import create_app
from offing.core.errors import InvalidInput
from offing.protocols.langgraph.cors import parse_cors
from offing.services import access
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.conftest import serving
from tests.unit.services.test_langgraph_projects import with_graph

CHAT = "https://chat.example"


@asynccontextmanager
async def serving_project(app_url: str, redis_url: str, **more: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client with a key of an API with these settings."""
    settings = Settings(app_database_url=SecretStr(app_url), redis_url=SecretStr(redis_url), port=0, **more)
    async with serving(create_app(settings), settings) as base, Database(app_url, max_connections=2) as database:
        key = await access.create_key(database, LOCAL_TENANT, "mine")
        async with httpx.AsyncClient(base_url=base, headers={"x-api-key": key.key}, timeout=30) as client:
            yield client


async def test_pages_of_an_allowed_origin_call_the_api_and_read_its_headers(app_url: str, redis_url: str) -> None:
    async with serving_project(app_url, redis_url, cors_origins=f"{CHAT}, http://localhost:3000") as client:
        preflight = await client.options(
            "/langgraph/threads",
            headers={
                "Origin": CHAT,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "x-api-key,content-type",
            },
        )
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, CHAT)
        assert "x-api-key" in preflight.headers["access-control-allow-headers"]
        cross = {"Origin": CHAT, "Sec-Fetch-Site": "cross-site"}
        created = await client.post("/langgraph/threads", json={}, headers=cross)
        assert (created.status_code, created.headers["access-control-allow-origin"]) == (200, CHAT)
        for name in ("Content-Location", "Location", "X-Pagination-Total", "X-Pagination-Next"):
            assert name in created.headers["access-control-expose-headers"]
        denied = await client.post("/langgraph/threads", json={}, headers={**cross, "x-api-key": "wrong"})
        assert (denied.status_code, denied.headers["access-control-allow-origin"]) == (401, CHAT)


async def test_pages_of_other_origins_change_nothing(app_url: str, redis_url: str) -> None:
    async with serving_project(app_url, redis_url, cors_origins=CHAT) as client:
        for origin in ("https://evil.example", f"{CHAT}.evil.example", "null", ""):
            response = await client.post(
                "/langgraph/threads", json={}, headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"}
            )
            assert (response.status_code, response.headers.get("access-control-allow-origin")) == (403, None)
        own = await client.post("/api/v1/webhooks", json={}, headers={"Origin": CHAT})
        assert own.status_code == 403


async def test_the_metrics_of_the_surface_need_a_key(app_url: str, redis_url: str) -> None:
    async with serving_project(app_url, redis_url) as client:
        metrics = await client.get("/langgraph/metrics")
        assert (metrics.status_code, metrics.headers["content-type"].partition(";")[0]) == (200, "text/plain")
        assert "offing_" in metrics.text
        assert (await client.get("/langgraph/metrics", headers={"x-api-key": "wrong"})).status_code == 401


async def test_a_project_names_origins_and_turns_routes_off(app_url: str, redis_url: str, tmp_path: Path) -> None:
    http = {"cors": {"allow_origin_regex": r"https://.*\.example"}, "disable_store": True, "disable_meta": True}
    http |= {"disable_mcp": True, "disable_a2a": True}
    project = with_graph(tmp_path / "project", http=http)
    async with serving_project(app_url, redis_url, graph_paths=str(project), home=tmp_path / "home") as client:
        created = await client.post("/langgraph/threads", json={}, headers={"Origin": CHAT})
        assert created.headers["access-control-allow-origin"] == CHAT
        assert (await client.post("/langgraph/store/items/search", json={})).status_code == 404
        assert (await client.get("/langgraph/info")).status_code == 404
        assert (await client.post("/langgraph/mcp", json={})).status_code == 404
        assert (await client.post("/langgraph/a2a/trail", json={})).status_code == 404
        assert (await client.get("/langgraph/.well-known/agent-card.json?assistant_id=trail")).status_code == 404
        assert (await client.get("/langgraph/ok")).json() == {"ok": True}


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"allow_origins": "*"}, "allow_origins"),
        ({"allow_origin_regex": "("}, "allow_origin_regex"),
        ({"allow_origins": ["*"], "allow_credentials": True}, "allow_credentials"),
        ({"allow_everything": True}, "allow_everything"),
    ],
)
def test_rules_that_cannot_be_kept_are_rejected_by_their_key(document: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        parse_cors(document)


async def test_a_server_without_an_index_rejects_what_needs_one_by_its_name(app_url: str, redis_url: str) -> None:
    async with serving_project(app_url, redis_url) as client:
        query: dict[str, Any] = {"namespace_prefix": ["a"], "query": "tea"}
        item: dict[str, Any] = {"namespace": ["a"], "key": "tea", "value": {}, "index": ["text"]}
        for method, path, body, field in (
            ("POST", "/langgraph/store/items/search", query, "query"),
            ("PUT", "/langgraph/store/items", item, "index"),
        ):
            response = await client.request(method, path, json=body)
            assert (response.status_code, response.json()["detail"].partition(":")[0]) == (422, field)

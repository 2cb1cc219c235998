"""The port at whose root LangGraph's API is served, with and without keys."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from offing.api.app import create_app
from offing.api.process import check_not_remote
from offing.core.errors import InvalidInput
from offing.local.api_address import choose_port
from offing.settings import Settings
from tests.api.conftest import serving

LOCAL, FOREIGN = {"Origin": "http://localhost:3000"}, {"Origin": "https://evil.example"}


@asynccontextmanager
async def serving_port(app_url: str, redis_url: str, **more: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client without a key of an API whose only port is that of LangGraph's API."""
    port = choose_port("127.0.0.1", 0)
    urls = {"app_database_url": SecretStr(app_url), "redis_url": SecretStr(redis_url)}
    settings = Settings(**urls, port=port, langgraph_port=port, **more)
    async with serving(create_app(settings), settings) as base, httpx.AsyncClient(base_url=base, timeout=30) as client:
        yield client


async def test_the_root_of_the_port_answers_as_the_prefix_does(app_url: str, redis_url: str) -> None:
    async with serving_port(app_url, redis_url) as client:
        assert (await client.get("/ok")).json() == {"ok": True}
        assert (await client.post("/threads", json={})).status_code == 401
        assert (await client.get("/api/v1/health/ready")).status_code == 401  # it has only what is below the prefix


async def test_a_port_without_keys_serves_this_machine_only(app_url: str, redis_url: str) -> None:
    async with serving_port(app_url, redis_url, langgraph_without_key=True) as client:
        created = await client.post("/threads", json={}, headers=LOCAL)
        assert (created.status_code, created.headers["access-control-allow-origin"]) == (200, LOCAL["Origin"])
        thread = f"/threads/{created.json()['thread_id']}"
        assert (await client.get(thread, headers={"x-api-key": "of-another-service"})).status_code == 200
        assert (await client.get(thread, headers={"x-api-key": "ofg_wrong"})).status_code == 401
        assert (await client.get(thread, headers=FOREIGN)).status_code == 401
        assert (await client.post("/threads", json={}, headers=FOREIGN)).status_code == 403


def test_an_address_of_other_machines_needs_keys() -> None:
    settings = Settings(host="192.0.2.1", langgraph_port=2024, langgraph_without_key=True)
    with pytest.raises(InvalidInput, match="OFFING_LANGGRAPH_WITHOUT_KEY"):
        check_not_remote(settings, {"OFFING_ALLOW_REMOTE": "1"})

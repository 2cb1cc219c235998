"""How many streams a tenant and a key may have open, and how a stream ends that cannot continue."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

import httpx
import psycopg
import pytest
from pydantic import SecretStr

from offing.services import access
from offing.settings import Settings
from tests.api.conftest import GRAPHS, PATIENCE, Api, bearer
from tests.api.sse import following


@pytest.fixture
def settings(app_url: str, redis_url: str) -> Settings:
    return Settings(
        app_database_url=SecretStr(app_url),
        redis_url=SecretStr(redis_url),
        extra_graphs=GRAPHS,
        port=0,
        max_streams_per_tenant=3,
        max_streams_per_key=2,
    )


@asynccontextmanager
async def with_another_key(api: Api) -> AsyncGenerator[httpx.AsyncClient]:
    created = await access.create_key(api.database, api.tenant, "second")
    async with httpx.AsyncClient(base_url=api.base, headers=bearer(created.key), timeout=PATIENCE) as client:
        yield client


async def expect_rejection(client: httpx.AsyncClient, path: str, whose: str) -> None:
    response = await client.get(path)
    assert response.status_code == 429, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert int(response.headers["retry-after"]) > 0
    assert response.json()["type"] == "urn:offing:problem:too_many_streams"
    assert response.json()["detail"].startswith(f"This {whose} has ")


async def opens(client: httpx.AsyncClient, path: str) -> None:
    """Waits until a stream of this client is let in, once more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with client.stream("GET", path) as response:
                if response.status_code == 200:
                    return
            await asyncio.sleep(0.02)


async def test_a_tenant_has_its_own_streams_and_a_rejected_one_is_told_so(api: Api) -> None:
    run = await api.submit()
    path = f"/api/v1/runs/{run}/events"
    created = await api.other.post("/api/v1/runs", json={"question": "Why?", "graph": "quiet"})
    theirs = f"/api/v1/runs/{UUID(created.json()['id'])}/events"
    async with AsyncExitStack() as open_streams, with_another_key(api) as second:
        first = AsyncExitStack()
        await open_streams.enter_async_context(first)
        await first.enter_async_context(following(api.http, path))
        await open_streams.enter_async_context(following(api.http, path))
        await expect_rejection(api.http, path, "key")
        await expect_rejection(api.http, f"/api/v1/runs/{run}/wait?timeout=1", "key")
        await expect_rejection(api.http, f"/api/v1/events?cursor={run}:0", "key")
        await open_streams.enter_async_context(following(second, path))
        await expect_rejection(second, path, "tenant")
        await open_streams.enter_async_context(following(api.other, theirs))
        await open_streams.enter_async_context(following(api.other, theirs))
        await first.aclose()
        await opens(second, path)


async def test_a_stream_that_is_rejected_for_its_run_is_not_counted(api: Api) -> None:
    for _ in range(5):
        missing = await api.http.get(f"/api/v1/runs/{UUID(int=1)}/events")
        assert missing.status_code == 404
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])


async def test_a_stream_whose_run_is_erased_ends_without_a_traceback(
    api: Api, owner_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: s.seqs == [1])
        async with await psycopg.AsyncConnection.connect(owner_url, autocommit=True) as owner:
            await owner.execute("delete from app.run where id = %s", (run,))
        await stream.until(lambda s: s.closed, seconds=PATIENCE)
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []

"""The API as a client meets it: a real server on a loopback port, a database of the test's own, two tenants."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from offing.api.app import create_app
from offing.api.process import Server, build_server_config
from offing.certificates import load_ssl_context
from offing.clock import new_id
from offing.services import access
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.simulated_worker import SimulatedWorker

GRAPHS = "tests.api.graphs:quiet"

PATIENCE = 30.0
"""Seconds for an answer, which a busy machine gives late."""


@dataclass
class Api:
    """A running API, a client with the local tenant's key, and one with another tenant's."""

    base: str
    app: FastAPI
    http: httpx.AsyncClient
    """Of the local tenant."""
    other: httpx.AsyncClient
    """Of another tenant."""
    nobody: httpx.AsyncClient
    """Without a key."""
    other_tenant: UUID
    database: Database
    hands: SimulatedWorker
    tenant: UUID = LOCAL_TENANT
    keys: dict[str, str] = field(default_factory=dict[str, str])

    async def submit(self, question: str = "Why is the sea salt?", **more: object) -> UUID:
        response = await self.http.post("/api/v1/runs", json={"question": question, "graph": "quiet", **more})
        assert response.status_code == 201, response.text
        return UUID(response.json()["id"])


@pytest.fixture
def settings(app_url: str, redis_url: str) -> Settings:
    return Settings(
        app_database_url=SecretStr(app_url),
        redis_url=SecretStr(redis_url),
        lease_seconds=3,
        extra_graphs=GRAPHS,
        allowed_webhook_hosts="127.0.0.1:9",
        port=0,
    )


@pytest.fixture
def other_tenant(owner_url: str) -> UUID:
    tenant = new_id()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("insert into app.tenant (id, name) values (%s, 'other')", (tenant,))
    return tenant


@asynccontextmanager
async def serving(app: FastAPI, settings: Settings) -> AsyncGenerator[str]:
    """The app on a free port; its base address."""
    config = build_server_config(app, settings)
    server = Server(config, app, None)
    server.capture_signals = _no_signals  # pyright: ignore[reportAttributeAccessIssue]
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done(), task.exception()
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        app.state.dependencies.bus.close_subscribers()
        server.should_exit = True
        await asyncio.wait_for(task, 15)


def _no_signals() -> object:
    from contextlib import nullcontext

    return nullcontext()


def open_client(base: str, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=base, headers=headers, timeout=PATIENCE, verify=load_ssl_context())


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@asynccontextmanager
async def running(app: FastAPI, settings: Settings, app_url: str, other_tenant: UUID) -> AsyncGenerator[Api]:
    """An app that serves, with everything that a test of it needs."""
    async with Database(app_url, max_connections=4) as database, serving(app, settings) as base:
        mine = await access.create_key(database, LOCAL_TENANT, "mine")
        theirs = await access.create_key(database, other_tenant, "theirs")
        async with (
            open_client(base, bearer(mine.key)) as http,
            open_client(base, bearer(theirs.key)) as other,
            open_client(base) as nobody,
        ):
            hands = SimulatedWorker(database, LOCAL_TENANT, app.state.dependencies.bus)
            yield Api(base, app, http, other, nobody, other_tenant, database, hands, LOCAL_TENANT, {"mine": mine.key})


@pytest.fixture
async def api(settings: Settings, other_tenant: UUID, app_url: str) -> AsyncIterator[Api]:
    async with running(create_app(settings), settings, app_url, other_tenant) as api:
        yield api

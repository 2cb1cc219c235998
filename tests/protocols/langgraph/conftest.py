"""LangGraph's own Python client against a real API, a real worker and real servers."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from fastapi import FastAPI
from langgraph_sdk import get_client
from pydantic import SecretStr

from offing.api.app import create_app
from offing.clock import new_id
from offing.services import access
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.conftest import serving
from tests.protocols.langgraph.graphs import GRAPHS
from tests.workers.conftest import SharedServers, shared_servers

__all__ = ["shared_servers"]

ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": GRAPHS}

Client = Any
"""LangGraph's client. The types of its methods are partly unknown."""


@pytest.fixture
def other_tenant(shared_servers: SharedServers) -> UUID:
    tenant = new_id()
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as connection:
        connection.execute("insert into app.tenant (id, name) values (%s, %s)", (tenant, str(tenant)))
    return tenant


@pytest.fixture
async def app(shared_servers: SharedServers) -> AsyncIterator[tuple[FastAPI, str]]:
    """A running API with a worker behind it, and its address."""
    settings = Settings(
        app_database_url=SecretStr(shared_servers.app_url),
        redis_url=SecretStr(shared_servers.redis_url),
        lease_seconds=3,
        extra_graphs=GRAPHS,
        port=0,
    )
    created = create_app(settings)
    async with serving(created, settings) as address:
        yield created, address


@pytest.fixture
def base(app: tuple[FastAPI, str]) -> str:
    return app[1]


@pytest.fixture
async def key_database(shared_servers: SharedServers) -> AsyncIterator[Database]:
    async with Database(shared_servers.app_url, max_connections=2) as opened:
        yield opened


@pytest.fixture
async def client(base: str, key_database: Database) -> AsyncIterator[Client]:
    """The client of a person with a key."""
    async with _open_client(base, key_database, LOCAL_TENANT) as opened:
        yield opened


@pytest.fixture
async def other_client(base: str, key_database: Database, other_tenant: UUID) -> AsyncIterator[Client]:
    """The client of another tenant."""
    async with _open_client(base, key_database, other_tenant) as opened:
        yield opened


@asynccontextmanager
async def _open_client(base: str, database: Database, tenant: UUID) -> AsyncGenerator[Client]:
    key = await access.create_key(database, tenant, str(new_id()))
    opened = get_client(url=f"{base}/langgraph", api_key=key.key)
    yield opened
    await opened.aclose()

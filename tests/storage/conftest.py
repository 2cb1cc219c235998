"""A pool on the test's own database, and a second tenant beside the local one."""

from collections.abc import AsyncIterator
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.storage.pool import Database


@pytest.fixture
async def pool(app_url: str) -> AsyncIterator[Database]:
    async with Database(app_url, max_connections=4) as database:
        yield database


@pytest.fixture
def other_tenant(owner_url: str) -> UUID:
    tenant = new_id()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("insert into app.tenant (id, name) values (%s, 'other')", (tenant,))
    return tenant

"""The application's role sees one tenant at a time, and nothing without one."""

import asyncio
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken
from offing.storage import threads
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import a_run, claimed, stored
from tests.storage.test_checkpoints import a_checkpoint, put

TABLES = "select table_name from information_schema.tables where table_schema = 'app' and table_type = 'BASE TABLE'"


def tables(owner_url: str) -> list[str]:
    with psycopg.connect(owner_url) as connection:
        return [name for (name,) in connection.execute(TABLES)]


async def count(pool: Database, tenant_id: UUID, table: str) -> int:
    async with pool.transaction(tenant_id) as connection:
        query = sql.SQL("select count(*) from app.{}").format(sql.Identifier(table))
        row = await (await connection.execute(query)).fetchone()
    assert row is not None
    return row[0]


async def test_a_tenant_sees_no_run_step_or_checkpoint_of_another(pool: Database, other_tenant: UUID) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    checkpoint = a_checkpoint(1, text="x" * 500)
    checkpoint["channel_versions"] = {"text": "1"}
    await put(FencedCheckpointer(pool, claim.fence, content_types=()), checkpoint)
    for table in ("run", "step", "checkpoint", "checkpoint_value", "thread"):
        assert await count(pool, LOCAL_TENANT, table) == 1, table
        assert await count(pool, other_tenant, table) == 0, table


def test_every_table_forces_row_level_security(owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        unprotected = connection.execute(
            "select relname from pg_class where relnamespace = 'app'::regnamespace and relkind in ('r', 'p')"
            " and not (relrowsecurity and relforcerowsecurity)"
        ).fetchall()
    assert unprotected == []


def test_without_a_tenant_the_role_sees_no_row_of_any_table(owner_url: str, app_url: str) -> None:
    with psycopg.connect(app_url) as connection:
        for table in tables(owner_url):
            query = sql.SQL("select count(*) from app.{}").format(sql.Identifier(table))
            assert connection.execute(query).fetchone() == (0,), table


def test_the_role_can_neither_bypass_nor_switch_off_the_rows_policy(app_url: str) -> None:
    with psycopg.connect(app_url, autocommit=True) as connection:
        rights = connection.execute(
            "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles where rolname = current_user"
        ).fetchone()
        assert rights == (False, False, False, False)
        with pytest.raises(InsufficientPrivilege):
            connection.execute("alter table app.run disable row level security")
        with pytest.raises(InsufficientPrivilege):
            connection.execute("select app.protect_table('app.run')")


async def test_a_run_cannot_be_written_into_another_tenant(pool: Database, other_tenant: UUID) -> None:
    with pytest.raises(InsufficientPrivilege):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await threads.insert_thread(connection, other_tenant, a_run().thread_id, "theirs")


async def test_a_fence_with_a_foreign_tenant_writes_nothing(pool: Database, other_tenant: UUID) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    foreign = FencingToken(other_tenant, claim.fence.run_id, claim.fence.number, claim.fence.thread_id)
    with pytest.raises(LeaseLostError, match="the claim is lost"):
        await put(FencedCheckpointer(pool, foreign), a_checkpoint(1))


async def test_no_pooled_connection_carries_a_tenant_over(app_url: str, other_tenant: UUID) -> None:
    async with Database(app_url, max_connections=1) as one_connection:
        await stored(one_connection, LOCAL_TENANT)
        after = await one_connection.call_function("select current_setting('app.tenant', true)", ())
        assert after == [("",)]
        assert await count(one_connection, other_tenant, "run") == 0


async def test_tenants_at_once_on_few_connections_stay_apart(app_url: str, other_tenant: UUID) -> None:
    async with Database(app_url, max_connections=2) as few:
        await stored(few, LOCAL_TENANT)
        seen = await asyncio.gather(
            *(count(few, tenant, "run") for _ in range(40) for tenant in (LOCAL_TENANT, other_tenant))
        )
    assert seen == [1, 0] * 40

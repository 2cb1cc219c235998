"""Pipelined transactions: statements are sent without waiting, and none takes effect where one fails."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from psycopg import AsyncConnection
from psycopg.errors import DivisionByZero

from offing.core.errors import LeaseLostError
from offing.core.run import RunStatus
from offing.core.usage import UsageDelta
from offing.storage import claims, steps
from offing.storage.buffered_pipeline import open_pipeline
from offing.storage.claims import Claim, Release
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.builders import TERM, a_step, claimed, older

SET_TITLE = "update run set title = %s where id = %s"


async def title_of(pool: Database, claim: Claim) -> str:
    async with pool.transaction(LOCAL_TENANT) as connection:
        cursor = await connection.execute("select title from run where id = %s", (claim.fence.run_id,))
        return (await cursor.fetchall())[0][0]


async def write_and_fail(pool: Database, claim: Claim, *, fetch: bool) -> None:
    async with pool.transaction(LOCAL_TENANT, pipelined=True) as connection:
        await connection.execute(SET_TITLE, ("written", claim.fence.run_id))
        cursor = await connection.execute("select 1 / 0")
        await connection.execute(SET_TITLE, ("written later", claim.fence.run_id))
        if fetch:
            await cursor.fetchone()


@pytest.mark.parametrize("fetch", [True, False])
async def test_a_statement_that_fails_takes_all_others_back(pool: Database, fetch: bool) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    for _ in range(12):  # prepared by psycopg after some executions
        with pytest.raises(DivisionByZero):
            await write_and_fail(pool, claim, fetch=fetch)
    assert await title_of(pool, claim) == ""


async def write_after_append(pool: Database, claim: Claim) -> None:
    async with pool.transaction(LOCAL_TENANT, pipelined=True) as connection:
        await steps.send_append(connection, claim.fence, TERM, [a_step("late")], UsageDelta())
        await connection.execute(SET_TITLE, ("late", claim.fence.run_id))


async def write_before_release(pool: Database, claim: Claim) -> None:
    async with pool.transaction(LOCAL_TENANT, pipelined=True) as connection:
        await connection.execute(SET_TITLE, ("late", claim.fence.run_id))
        await claims.release_run(connection, claim.fence, Release(RunStatus.QUEUED))


@pytest.mark.parametrize("write", [write_after_append, write_before_release])
async def test_a_lost_claim_takes_back_what_was_sent_with_its_commit(
    pool: Database, write: Callable[[Database, Claim], Awaitable[None]]
) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    stale = Claim(older(claim.fence), False, 0)
    with pytest.raises(LeaseLostError):
        await write(pool, stale)
    assert await title_of(pool, claim) == ""
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert len(await steps.list_steps_after(connection, claim.fence.run_id, 0, 10)) == 1


async def test_an_append_of_nothing_also_finds_that_the_claim_is_lost(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    with pytest.raises(LeaseLostError):
        async with pool.transaction(LOCAL_TENANT, pipelined=True) as connection:
            await steps.send_append(connection, older(claim.fence), TERM, [], UsageDelta())


async def wait_inside(pool: Database, claim: Claim, started: asyncio.Event) -> None:
    async with pool.transaction(LOCAL_TENANT, pipelined=True) as connection:
        await connection.execute(SET_TITLE, ("cancelled", claim.fence.run_id))
        started.set()
        await (await connection.execute("select pg_sleep(10)")).fetchone()


async def test_a_cancelled_transaction_leaves_nothing_and_its_connection_serves_others(app_url: str) -> None:
    async with Database(app_url, max_connections=1) as pool:
        claim = await claimed(pool, LOCAL_TENANT)
        for _ in range(5):
            started = asyncio.Event()
            task = asyncio.create_task(wait_inside(pool, claim, started))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await title_of(pool, claim) == ""


async def test_a_pipelined_transaction_sees_only_its_tenant(pool: Database, other_tenant: UUID) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    async with pool.transaction(other_tenant, pipelined=True) as connection:
        cursor = await connection.execute("select count(*) from run where id = %s", (claim.fence.run_id,))
        assert await cursor.fetchall() == [(0,)]


async def test_a_statement_is_sent_when_a_result_is_needed(app_url: str) -> None:
    async with Database(app_url, max_connections=2) as pool:
        async with pool.transaction(LOCAL_TENANT, pipelined=True) as connection:
            lock = await connection.execute("select pg_try_advisory_xact_lock(16)")
            async with pool.transaction(LOCAL_TENANT) as other:  # gets the lock, because nothing was sent yet
                earlier = await other.execute("select pg_try_advisory_xact_lock(16)")
                assert await earlier.fetchone() == (True,)
                assert await lock.fetchone() == (False,)
            after = await connection.execute("select 3")
        assert await after.fetchone() == (3,), "results of a transaction can be read when it has ended"


async def test_the_error_of_a_command_without_a_cursor_is_raised_with_the_next_result(app_url: str) -> None:
    async def fail(connection: AsyncConnection) -> None:
        async with open_pipeline(connection) as pipeline:
            pipeline.add_command(b"select 1 / 0")
            await (await connection.execute("select 1")).fetchone()

    async with await AsyncConnection.connect(app_url, autocommit=True) as connection:
        with pytest.raises(DivisionByZero):
            await fail(connection)

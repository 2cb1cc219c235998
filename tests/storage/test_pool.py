"""The pool when a process stands still, and when its connections are cut."""

import asyncio
import random

import psycopg
import pytest

from offing.core.errors import Unavailable
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import MAX_REPEATS, Database, Deadlocked, repeat_deadlocked


async def stand_still(database: Database) -> None:
    async with database.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update tenant set max_daily_spend_usd = 1")
        await asyncio.sleep(0.5)
        await connection.execute("select 1")


async def test_who_stands_still_inside_a_transaction_loses_its_locks_and_is_told(app_url: str, owner_url: str) -> None:
    async with Database(app_url, max_connections=2, stall_seconds=0.2) as database:
        with pytest.raises(Unavailable):
            await stand_still(database)
        with psycopg.connect(owner_url, autocommit=True, options="-c lock_timeout=20000") as owner:
            owner.execute("update app.tenant set max_daily_spend_usd = null")


async def be_cut_off(database: Database, owner_url: str) -> None:
    async with database.transaction(LOCAL_TENANT) as connection:
        with psycopg.connect(owner_url, autocommit=True) as owner:
            owner.execute("select pg_terminate_backend(%s)", (connection.info.backend_pid,))
        await connection.execute("select 1")


async def test_a_cut_connection_is_unavailable_once_and_then_replaced(app_url: str, owner_url: str) -> None:
    async with Database(app_url, max_connections=1) as database:
        with pytest.raises(Unavailable):
            await be_cut_off(database, owner_url)
        async with database.transaction(LOCAL_TENANT) as connection:
            assert await (await connection.execute("select 1")).fetchone() == (1,)


async def occupy_connection(database: Database) -> None:
    async with database.transaction(LOCAL_TENANT) as connection:
        await connection.execute("select pg_sleep(0.002)")


async def cancel_twice(task: asyncio.Task[None], dice: random.Random) -> None:
    await asyncio.sleep(dice.random() / 10)
    task.cancel()
    if dice.random() < 0.7:
        await asyncio.sleep(0)
    task.cancel()


async def test_no_connection_is_lost_when_those_who_wait_are_cancelled_again_and_again(app_url: str) -> None:
    dice = random.Random(3)
    async with Database(app_url, max_connections=2, queue_seconds=5) as database:
        for _ in range(10):
            tasks = [asyncio.create_task(occupy_connection(database)) for _ in range(40)]
            await asyncio.gather(*(cancel_twice(task, dice) for task in tasks))
            await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(5):
            await asyncio.gather(*(occupy_connection(database) for _ in range(20)))


async def test_who_waits_too_long_for_others_of_the_process_is_told(app_url: str) -> None:
    async with Database(app_url, max_connections=1, queue_seconds=0.05) as database:
        async with database.transaction(LOCAL_TENANT):
            with pytest.raises(Unavailable, match="too many requests wait"):
                await occupy_connection(database)
        await occupy_connection(database)


SLOW_COMMIT = """
    create function app.wait_at_commit() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock(42); return null; end $$;
    create constraint trigger slow_commit after update on app.tenant deferrable initially deferred
      for each row execute function app.wait_at_commit();
"""


async def test_a_commit_whose_caller_is_cancelled_twice_is_waited_for(app_url: str, owner_url: str) -> None:
    """What is cut off at its commit may be carried out all the same, and nobody would know of it."""
    async with Database(app_url, max_connections=1) as database:
        with psycopg.connect(owner_url, autocommit=True) as owner:
            owner.execute(SLOW_COMMIT)
            owner.execute("select pg_advisory_lock(42)")

            async def spend() -> None:
                async with database.transaction(LOCAL_TENANT) as connection:
                    await connection.execute("update tenant set max_daily_spend_usd = 7")

            spending = asyncio.create_task(spend())
            waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            while owner.execute(waits).fetchone() != (1,):  # noqa: ASYNC110 (Postgres tells nobody)
                await asyncio.sleep(0.01)
            for _ in range(2):
                spending.cancel()
                await asyncio.sleep(0.05)
            assert not spending.done()
            owner.execute("select pg_advisory_unlock(42)")
            with pytest.raises(asyncio.CancelledError):
                await spending
            assert owner.execute("select max_daily_spend_usd from app.tenant").fetchone() == (7,)
        async with database.transaction(LOCAL_TENANT) as connection:
            assert await (await connection.execute("select 1")).fetchone() == (1,)


async def test_a_transaction_that_lost_a_deadlock_is_done_again(pool: Database) -> None:
    both, attempts = asyncio.Barrier(2), list[int]()

    async def lock(first: int, second: int) -> int:
        attempts.append(first)
        async with pool.transaction(LOCAL_TENANT) as connection:
            await connection.execute("select pg_advisory_xact_lock(%s)", (first,))
            if len(attempts) <= 2:
                await both.wait()
            await connection.execute("select pg_advisory_xact_lock(%s)", (second,))
        return first

    done = await asyncio.gather(
        repeat_deadlocked(lambda: lock(7001, 7002)), repeat_deadlocked(lambda: lock(7002, 7001))
    )
    assert done == [7001, 7002]
    assert len(attempts) == 3


async def test_a_deadlock_is_an_error_after_some_repeats() -> None:
    attempts = list[int]()

    async def work() -> None:
        attempts.append(1)
        raise Deadlocked("it waited for itself")

    with pytest.raises(Deadlocked):
        await repeat_deadlocked(work)
    assert len(attempts) == 1 + MAX_REPEATS

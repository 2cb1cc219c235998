"""Leases: what a lapsed one keeps its owner from (nothing), and when another may claim."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken, RunStatus
from offing.core.step import CallKey
from offing.core.tool import SideEffect
from offing.core.usage import UsageDelta
from offing.storage import checkpoint_upgrade, child_runs, claims, intents, steps, training_jobs
from offing.storage.claims import Release
from offing.storage.heartbeat import HeartbeatConnection, release_leases
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import a_step, claimed
from tests.storage.test_training_jobs import a_job

TERM = 10.0
"""Seconds."""

Write = Callable[[Connection, FencingToken], Awaitable[Any]]

RELEASE = Release(RunStatus.QUEUED)

WRITES: dict[str, Write] = {
    "append": lambda connection, fence: steps.append_steps(connection, fence, TERM, [a_step()], UsageDelta()),
    "release": lambda connection, fence: claims.release_run(connection, fence, RELEASE),
    "intent": lambda connection, fence: intents.insert_intent(
        connection, fence, CallKey(1, "p", 0), "launch", {}, SideEffect.AT_MOST_ONCE
    ),
    "child runs": lambda connection, fence: child_runs.lock_parent(connection, fence),
    "version": lambda connection, fence: checkpoint_upgrade.set_graph_version(connection, fence, "2"),
}
"""What the owner of a claim writes."""


class Clock:
    """Lets time pass in a database, by moving back what is stored of it."""

    def __init__(self, owner_url: str) -> None:
        self._owner_url = owner_url

    def elapse(self, seconds: float, *, watched: bool) -> None:
        """So much time has passed. `watched`: somebody was there all the time; else nothing and nobody moved."""
        for what in ("run set lease_until = lease_until", "training_job set lease_until = lease_until"):
            self._ask(f"update app.{what} - %s * interval '1 second'", seconds)
        self._ask("update app.lease_watch set watched_since = watched_since - %s * interval '1 second'", seconds)
        if not watched:
            self._ask(
                "update app.lease_watch set last_watched_at = last_watched_at - %s * interval '1 second'", seconds
            )

    def remaining(self) -> float:
        """Seconds that the lease of the one run lasts."""
        ((seconds,),) = self._ask("select extract(epoch from lease_until - clock_timestamp())::float8 from app.run")
        return seconds

    def until_postgres_is_older_than(self, seconds: float) -> None:
        """Leases live for a term after Postgres came up."""
        age = "select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8"
        while self._ask(age)[0][0] <= seconds:
            time.sleep(0.1)

    def _ask(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._owner_url, autocommit=True) as owner:
            cursor = owner.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def clock(owner_url: str) -> Clock:
    clock = Clock(owner_url)
    clock.until_postgres_is_older_than(TERM)
    return clock


def beat(app_url: str, fence: FencingToken) -> int:
    """How many of the runs are still the process's."""
    connection = HeartbeatConnection(app_url)
    try:
        return len(connection.renew_leases([fence], TERM))
    finally:
        connection.close()


async def swept(pool: Database) -> int:
    return len(await claims.sweep_overdue_runs(pool, 0, TERM))


@pytest.mark.parametrize("write", WRITES)
async def test_a_lapsed_lease_keeps_its_owner_from_nothing_while_nobody_else_has_claimed(
    pool: Database, clock: Clock, write: str
) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    clock.elapse(3 * TERM, watched=True)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await WRITES[write](connection, claim.fence)


@pytest.mark.parametrize("write", WRITES)
async def test_a_worker_that_lost_a_run_to_another_claim_writes_nothing(
    pool: Database, clock: Clock, write: str
) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    clock.elapse(3 * TERM, watched=True)
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is not None
    with pytest.raises(LeaseLostError):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await WRITES[write](connection, claim.fence)


async def test_a_checkpoint_is_saved_under_a_lapsed_lease_that_nobody_has_claimed(pool: Database, clock: Clock) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    clock.elapse(3 * TERM, watched=True)
    saver = FencedCheckpointer(pool, claim.fence)
    await saver.aput({"configurable": {"checkpoint_ns": ""}}, empty_checkpoint(), {"step": 1}, {})
    assert await FencedCheckpointer(pool, claim.fence).aget_tuple({"configurable": {}}) is not None


async def test_an_append_renews_a_lapsed_lease(pool: Database, clock: Clock) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    clock.elapse(3 * TERM, watched=True)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await WRITES["append"](connection, claim.fence)
    assert clock.remaining() > TERM / 2
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is None


async def test_a_heartbeat_renews_a_lapsed_lease_and_none_of_a_run_that_another_has_claimed(
    pool: Database, app_url: str, clock: Clock
) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    clock.elapse(3 * TERM, watched=True)
    assert beat(app_url, claim.fence) == 1
    assert clock.remaining() > TERM / 2
    clock.elapse(3 * TERM, watched=True)
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is not None
    assert beat(app_url, claim.fence) == 0


async def test_a_lapsed_lease_is_claimed_at_once_where_somebody_was_there_all_the_time(
    pool: Database, clock: Clock
) -> None:
    """The owner alone was cut off."""
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    await swept(pool)
    clock.elapse(3 * TERM, watched=True)
    assert await swept(pool) == 1
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is not None


async def test_after_a_gap_a_lapsed_lease_is_its_owners_for_one_more_term(
    pool: Database, app_url: str, clock: Clock
) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    await swept(pool)
    clock.elapse(3 * TERM, watched=False)
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is None  # before anybody has noted the gap
    assert await swept(pool) == 0
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is None
    assert beat(app_url, claim.fence) == 1
    assert clock.remaining() > TERM / 2


async def test_an_owner_that_does_not_come_back_after_a_gap_loses_its_run_when_the_term_is_over(
    pool: Database, clock: Clock
) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    await swept(pool)
    clock.elapse(3 * TERM, watched=False)
    assert await swept(pool) == 0
    clock.elapse(TERM, watched=True)
    assert await swept(pool) == 1
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is not None


async def test_a_heartbeat_of_anybody_notes_the_gap(pool: Database, app_url: str, clock: Clock) -> None:
    """A process that comes back first leaves the others time to do so."""
    late, first = await claimed(pool, LOCAL_TENANT, term=TERM), await claimed(pool, LOCAL_TENANT, term=TERM)
    await swept(pool)
    clock.elapse(3 * TERM, watched=False)
    assert beat(app_url, first.fence) == 1
    assert await swept(pool) == 0
    assert await claims.claim_run(pool, late.fence.run_id, "other", TERM) is None


async def test_leases_of_a_process_that_ended_are_released_and_no_others(pool: Database, app_url: str) -> None:
    claim = await claimed(pool, LOCAL_TENANT, term=TERM)
    await swept(pool)
    assert release_leases(app_url, "another") == 0
    assert await claims.claim_run(pool, claim.fence.run_id, "other", TERM) is None
    assert release_leases(app_url, "worker") == 1
    assert await swept(pool) == 1
    after = await claims.claim_run(pool, claim.fence.run_id, "other", TERM)
    assert after is not None
    assert (after.lease_expired, after.fence.number) == (True, claim.fence.number + 1)
    assert beat(app_url, claim.fence) == 0


async def test_a_training_job_is_its_owners_for_one_more_term_after_a_gap(
    pool: Database, app_url: str, clock: Clock
) -> None:
    job = await a_job(pool)
    held = await training_jobs.claim_job(pool, job.id, "me", TERM)
    assert held is not None
    clock.elapse(3 * TERM, watched=False)
    assert await training_jobs.claim_job(pool, job.id, "other", TERM) is None
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert await training_jobs.renew_lease(connection, held, TERM) is None
    assert release_leases(app_url, "me") == 1
    assert await training_jobs.claim_job(pool, job.id, "other", TERM) is not None

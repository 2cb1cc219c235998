"""Training jobs in the store: one process at a time, one commit a step, and each rollout decided on once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.errors import UniqueViolation

from offing.clock import new_id
from offing.core.errors import Fenced
from offing.services.job_lease import kept
from offing.storage import training_events, training_groups, training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_groups import GroupQuery
from offing.storage.training_jobs import Hold, JobRow, StepDone
from tests.storage.rollouts import Collected

TERM = 30.0

QUICK_TERM = 0.4
"""Renewed every tenth of a second."""


async def a_job(pool: Database, tenant: UUID = LOCAL_TENANT) -> JobRow:
    async with pool.transaction(tenant) as connection:
        return await training_jobs.insert(
            connection, tenant, new_id(), kind="train", name="planner", config={"a": 1}, config_sha256="c", seed=7
        )


async def held(pool: Database, job: UUID) -> Hold:
    found = await training_jobs.claim(pool, job, "me", TERM)
    assert found is not None
    return found


def a_step(number: int, **what: Any) -> StepDone:
    used: dict[UUID, str] = what.pop("used", {})
    return StepDone(number, number, f"step-{number}", used, **what)


async def commit(pool: Database, hold: Hold, done: StepDone) -> str | None:
    async with pool.transaction(hold.tenant) as connection:
        return await training_jobs.commit_step(connection, hold, TERM, done)


async def job_now(pool: Database, job: UUID) -> JobRow:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await training_jobs.by_id(connection, job)


def lapse(owner_url: str, job: UUID) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.train_job set lease_until = now() - interval '1 hour' where id = %s", (job,))


async def test_a_job_is_one_process_s_until_its_lease_lapses_and_the_late_one_commits_nothing(
    pool: Database, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await a_job(pool)
    first = await held(pool, job.id)
    assert await training_jobs.claim(pool, job.id, "other", TERM) is None
    lapse(owner_url, job.id)
    second = await training_jobs.claim(pool, job.id, "other", 0)
    assert second is not None
    assert second.fence == first.fence + 1
    with pytest.raises(Fenced):
        await commit(pool, first, a_step(1))
    await commit(pool, second, a_step(1))
    assert (await job_now(pool, job.id)).step == 1


async def test_whoever_releases_a_job_has_not_lost_it(pool: Database) -> None:
    job = await a_job(pool)
    hold = await held(pool, job.id)
    async with kept(pool, hold, QUICK_TERM):
        async with pool.transaction(hold.tenant) as connection:
            await training_jobs.release(connection, hold, "done")
        await asyncio.sleep(QUICK_TERM)  # some beats
    assert (await job_now(pool, job.id)).state == "done"


async def test_a_job_that_another_process_has_claimed_is_lost_also_once_it_was_released(
    pool: Database, owner_url: str
) -> None:
    job = await a_job(pool)
    hold = await held(pool, job.id)

    async def work() -> None:
        async with kept(pool, hold, QUICK_TERM):
            lapse(owner_url, job.id)
            other = await training_jobs.claim(pool, job.id, "other", 0)
            assert other is not None
            async with pool.transaction(hold.tenant) as connection:
                await training_jobs.release(connection, other, "done")
            await asyncio.sleep(30)

    with pytest.raises(Fenced):
        await work()


async def test_a_step_is_committed_whole_and_a_rollout_decided_on_twice_undoes_it(
    pool: Database, owner_url: str
) -> None:
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    group = collected.group(size=2)
    run, other = [await collected.rollout(group=group, member=n) for n in (0, 1)]
    hold = await held(pool, (await a_job(pool)).id)
    metrics, state = {"reward": 0.5, "nothing": float("nan")}, {"tracker": {"a": [1, 2]}}
    await commit(pool, hold, a_step(1, used={run: "kept"}, metrics=metrics, state=state, groups=1))
    with pytest.raises(UniqueViolation):
        await commit(pool, hold, a_step(2, used={run: "stale", other: "kept"}, metrics={"reward": 1.0}))
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await training_jobs.by_id(connection, hold.job)
        found = await training_jobs.metrics_since(connection, hold.job, 0, ["reward"], 10)
        assert await training_jobs.state_of(connection, hold.job) == state
        assert await training_jobs.ledger_counts(connection, hold.job) == {"kept": 1}
    assert (row.step, row.rollouts, row.groups, row.checkpoint) == (1, 1, 1, "step-1")
    assert [(m.step, m.value) for m in found] == [(1, 0.5)]


async def test_a_step_out_of_order_is_refused(pool: Database) -> None:
    hold = await held(pool, (await a_job(pool)).id)
    with pytest.raises(Fenced):
        await commit(pool, hold, a_step(2))


async def test_a_wish_is_seen_at_the_next_step_and_taken_at_once_where_nobody_works(pool: Database) -> None:
    job = await a_job(pool)
    hold = await held(pool, job.id)
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await training_jobs.set_wish(connection, job.id, "pause")).state == "running"
    assert await commit(pool, hold, a_step(1)) == "pause"
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await training_jobs.release(connection, hold, "paused")).wish is None
    assert await training_jobs.claim(pool, job.id, "me", TERM) is None
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await training_jobs.go_on(connection, job.id)).state == "queued"
        ended = await training_jobs.set_wish(connection, job.id, "cancel")
    assert (ended.state, ended.ended_at is not None) == ("cancelled", True)


async def test_jobs_and_their_records_are_their_tenant_s_alone(pool: Database, other_tenant: UUID) -> None:
    job = await a_job(pool)
    hold = await held(pool, job.id)
    await commit(pool, hold, a_step(1, metrics={"reward": 1.0}, state={"t": 1}))
    async with pool.transaction(LOCAL_TENANT) as connection:
        await training_events.add(connection, LOCAL_TENANT, "created", {}, job=job.id)
    async with pool.transaction(other_tenant) as connection:
        assert await training_jobs.latest(connection, None, None, 10) == []
        assert await training_jobs.metrics_since(connection, job.id, 0, None, 10) == []
        assert await training_jobs.state_of(connection, job.id) == {}
        assert await training_events.listed(connection, job=job.id) == []


async def test_groups_come_in_the_order_of_their_completion_with_the_last_attempt_of_each_member(
    pool: Database, owner_url: str
) -> None:
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    later, earlier, open_ = (collected.group(tags=["a"]) for _ in range(3))
    runs = {
        (group, n): await collected.rollout(group=group, member=n, reward=float(n))
        for group in (earlier, later)
        for n in (0, 1)
    }
    at = datetime(2026, 3, 1, tzinfo=UTC)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.rollout_group set completed_at = %s where id = %s", (at + timedelta(hours=1), later))
        owner.execute("update app.rollout_group set completed_at = %s where id = %s", (at, earlier))
        owner.execute("update app.rollout_group set state = 'open', completed_at = null where id = %s", (open_,))
    again = await collected.rollout(member=0)  # of a group of its own, which has no time of completion
    async with pool.transaction(LOCAL_TENANT) as connection:
        now, _ = await training_groups.newest(connection)
        found = await training_groups.page(connection, GroupQuery(tags=("a",)), now, None, 10)
        rest = await training_groups.page(connection, GroupQuery(), now, (at, earlier), 10)
        facts = await training_groups.facts(connection, [again])
    assert [g.id for g in found] == [earlier, later]
    assert [g.id for g in rest] == [later]
    assert [m.run for m in found[0].standing] == [runs[earlier, 0], runs[earlier, 1]]
    assert found[0].informative
    assert facts[again].tool_calls == 0

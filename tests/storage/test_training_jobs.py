"""Training jobs in the store: one process at a time, one commit per step, and each rollout decided on once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.errors import UniqueViolation

from offing.clock import new_id
from offing.core.errors import LeaseLostError
from offing.services.training_job_lease import hold_lease
from offing.storage import training_events, training_groups, training_jobs, training_metrics
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_groups import GroupQuery
from offing.storage.training_jobs import CommittedStep, JobFencingToken, TrainingJobRow
from tests.storage.rollouts import Collected

TERM = 30.0

QUICK_TERM = 0.4
"""Renewed every tenth of a second."""


async def a_job(pool: Database, tenant_id: UUID = LOCAL_TENANT) -> TrainingJobRow:
    async with pool.transaction(tenant_id) as connection:
        return await training_jobs.insert_job(
            connection, tenant_id, new_id(), kind="train", name="planner", config={"a": 1}, config_sha256="c", seed=7
        )


async def claim(pool: Database, job_id: UUID) -> JobFencingToken:
    result = await training_jobs.claim_job(pool, job_id, "me", TERM)
    assert result is not None
    return result


def a_step(number: int, **what: Any) -> CommittedStep:
    used: dict[UUID, str] = what.pop("used", {})
    return CommittedStep(number, number, f"step-{number}", used, **what)


async def commit(pool: Database, token: JobFencingToken, done: CommittedStep) -> str | None:
    async with pool.transaction(token.tenant_id) as connection:
        return await training_jobs.commit_step(connection, token, TERM, done)


async def job_now(pool: Database, job_id: UUID) -> TrainingJobRow:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await training_jobs.get_job(connection, job_id)


def lapse(owner_url: str, job_id: UUID) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.training_job set lease_until = now() - interval '1 hour' where id = %s", (job_id,))


async def test_a_job_is_one_process_s_until_its_lease_lapses_and_the_late_one_commits_nothing(
    pool: Database, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await a_job(pool)
    first = await claim(pool, job.id)
    assert await training_jobs.claim_job(pool, job.id, "other", TERM) is None
    lapse(owner_url, job.id)
    second = await training_jobs.claim_job(pool, job.id, "other", 0)
    assert second is not None
    assert second.fence == first.fence + 1
    with pytest.raises(LeaseLostError):
        await commit(pool, first, a_step(1))
    await commit(pool, second, a_step(1))
    assert (await job_now(pool, job.id)).step == 1


async def test_a_process_that_releases_a_job_has_not_lost_it(pool: Database) -> None:
    job = await a_job(pool)
    token = await claim(pool, job.id)
    async with hold_lease(pool, token, QUICK_TERM):
        async with pool.transaction(token.tenant_id) as connection:
            await training_jobs.release_job(connection, token, "done")
        await asyncio.sleep(QUICK_TERM)  # some beats
    assert (await job_now(pool, job.id)).state == "done"


async def test_a_job_that_another_process_has_claimed_is_lost_also_once_it_was_released(
    pool: Database, owner_url: str
) -> None:
    job = await a_job(pool)
    token = await claim(pool, job.id)

    async def work() -> None:
        async with hold_lease(pool, token, QUICK_TERM):
            lapse(owner_url, job.id)
            other = await training_jobs.claim_job(pool, job.id, "other", 0)
            assert other is not None
            async with pool.transaction(token.tenant_id) as connection:
                await training_jobs.release_job(connection, other, "done")
            await asyncio.sleep(30)

    with pytest.raises(LeaseLostError):
        await work()


async def test_a_step_is_committed_whole_and_a_rollout_decided_on_twice_undoes_it(
    pool: Database, owner_url: str
) -> None:
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    group = collected.group(size=2)
    run, other = [await collected.rollout(group_id=group, member=n) for n in (0, 1)]
    token = await claim(pool, (await a_job(pool)).id)
    metrics, state = {"reward": 0.5, "nothing": float("nan")}, {"tracker": {"a": [1, 2]}}
    await commit(pool, token, a_step(1, used={run: "used"}, metrics=metrics, plugin_state=state, group_count=1))
    with pytest.raises(UniqueViolation):
        await commit(pool, token, a_step(2, used={run: "stale", other: "used"}, metrics={"reward": 1.0}))
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await training_jobs.get_job(connection, token.job_id)
        metrics_since = await training_metrics.list_metrics_since(connection, token.job_id, 0, ["reward"], 10)
        assert await training_jobs.get_plugin_state(connection, token.job_id) == state
        assert await training_jobs.count_ledger_reasons(connection, token.job_id) == {"used": 1}
    assert (row.step, row.rollout_count, row.group_count, row.checkpoint) == (1, 1, 1, "step-1")
    assert [(m.step, m.value) for m in metrics_since] == [(1, 0.5)]


async def test_the_first_value_of_a_metric_is_that_of_the_first_step_that_has_it(pool: Database) -> None:
    token = await claim(pool, (await a_job(pool)).id)
    for step, metrics in enumerate(({"reward": 0.5}, {"reward": 0.25, "entropy": 2.0}, {"entropy": 1.0}), 1):
        await commit(pool, token, a_step(step, metrics=metrics))
    async with pool.transaction(LOCAL_TENANT) as connection:
        first = await training_metrics.get_first_values(connection, token.job_id, ["entropy", "reward", "kl"])
    assert first == {"reward": 0.5, "entropy": 2.0}


async def test_a_step_out_of_order_is_rejected(pool: Database) -> None:
    token = await claim(pool, (await a_job(pool)).id)
    with pytest.raises(LeaseLostError):
        await commit(pool, token, a_step(2))


async def test_a_control_request_applies_at_the_next_step_and_at_once_without_a_worker(pool: Database) -> None:
    job = await a_job(pool)
    token = await claim(pool, job.id)
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await training_jobs.request_action(connection, job.id, "pause")).state == "running"
    assert await commit(pool, token, a_step(1)) == "pause"
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await training_jobs.release_job(connection, token, "paused")).requested_action is None
    assert await training_jobs.claim_job(pool, job.id, "me", TERM) is None
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await training_jobs.resume_job(connection, job.id)).state == "queued"
        ended = await training_jobs.request_action(connection, job.id, "cancel")
    assert (ended.state, ended.ended_at is not None) == ("cancelled", True)


async def test_jobs_and_their_records_are_their_tenant_s_alone(pool: Database, other_tenant: UUID) -> None:
    job = await a_job(pool)
    token = await claim(pool, job.id)
    await commit(pool, token, a_step(1, metrics={"reward": 1.0}, plugin_state={"t": 1}))
    async with pool.transaction(LOCAL_TENANT) as connection:
        await training_events.insert_event(connection, LOCAL_TENANT, "created", {}, job_id=job.id)
    async with pool.transaction(other_tenant) as connection:
        assert await training_jobs.list_jobs(connection, None, None, 10) == []
        assert await training_metrics.list_metrics_since(connection, job.id, 0, None, 10) == []
        assert await training_jobs.get_plugin_state(connection, job.id) == {}
        assert await training_events.list_events(connection, job_id=job.id) == []


async def test_groups_come_in_the_order_of_their_completion_with_the_last_attempt_of_each_member(
    pool: Database, owner_url: str
) -> None:
    collected = Collected(pool, LOCAL_TENANT, owner_url)
    later, earlier, open_ = (collected.group(tags=["a"]) for _ in range(3))
    runs = {
        (group, n): await collected.rollout(group_id=group, member=n, reward=float(n))
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
        now, _ = await training_groups.get_high_water_mark(connection)
        groups = await training_groups.list_groups(connection, GroupQuery(tags=("a",)), now, None, 10)
        rest = await training_groups.list_groups(connection, GroupQuery(), now, (at, earlier), 10)
        facts = await training_groups.get_rollout_stats(connection, [again])
    assert [g.id for g in groups] == [earlier, later]
    assert [g.id for g in rest] == [later]
    assert [m.run_id for m in groups[0].final_members] == [runs[earlier, 0], runs[earlier, 1]]
    assert groups[0].is_informative
    assert facts[again].tool_call_count == 0

"""Metrics are totals of ended runs and sums over the others, and the same before and after a run is counted."""

from typing import Any
from uuid import UUID

import psycopg

from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.storage import steps
from offing.storage.metric_queries import count_ended_runs, list_tenant_metrics
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.telemetry.metrics import FIRST_TOKEN_BUCKETS_SECONDS, EngineMetric, RunMetric, StepMetric, render_metrics
from tests.storage.builders import TERM, claimed, stored

ADD_CALL = """
    insert into app.role_call (run_id, seq, tenant_id, role, engine, model, prompt, prompt_tokens, completion_tokens,
                               cost_usd, failed_attempts, sampling, trainable)
    values (%s, %s, %s, 'planner', 'litellm', 'm', '[]', 100, 10, 0.25, '[{}]',
            '{"first_text_ms": 300, "slot_wait_ms": 1500}', 'none')
"""


async def metrics_of(pool: Database, tenant: UUID = LOCAL_TENANT) -> list[Any]:
    async with pool.transaction(tenant) as connection:
        return await list_tenant_metrics(connection)


async def an_ended_run(pool: Database, owner_url: str) -> UUID:
    """A run with two steps of a worker, of which one is a role call with a failed attempt."""
    claim = await claimed(pool, LOCAL_TENANT)
    async with pool.transaction(LOCAL_TENANT) as connection:
        drafts = [StepDraft(StepKind.NOTE, "one", {}, ok=False, ms=500)]
        await steps.append_steps(connection, claim.fence, TERM, drafts, UsageDelta())
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(ADD_CALL, (claim.fence.run_id, 2, LOCAL_TENANT))
        connection.execute("update app.run set status = 'done', ended_at = now() where id = %s", (claim.fence.run_id,))
    return claim.fence.run_id


async def test_metrics_are_the_same_before_and_after_ended_runs_are_counted(pool: Database, owner_url: str) -> None:
    await an_ended_run(pool, owner_url)
    await an_ended_run(pool, owner_url)
    await stored(pool, LOCAL_TENANT)
    before = await metrics_of(pool)
    assert await count_ended_runs(pool, 1) == 1
    assert await metrics_of(pool) == before
    assert await count_ended_runs(pool, 10) == 1
    assert await count_ended_runs(pool, 10) == 0
    assert await metrics_of(pool) == before
    (call,) = [row for row in before if isinstance(row, EngineMetric)]
    assert (call.prompt_tokens, call.completion_tokens, call.cost_usd, call.failed_attempt_count) == (200, 20, 0.5, 2)
    assert (call.first_token_counts, call.slot_wait_seconds) == ([0, 0, 2, 2, 2, 2, 2, 2, 2], 3.0)
    (note,) = [row for row in before if isinstance(row, StepMetric) and row.kind == "note"]
    assert (note.step_count, note.failed_count, note.duration_seconds) == (2, 2, 1.0)
    by_status = {row.status: row.run_count for row in before if isinstance(row, RunMetric)}
    assert by_status == {"done": 2, "queued": 1}
    assert render_metrics(before)


async def test_a_deleted_run_is_no_longer_stored_and_what_it_has_used_stays_counted(
    pool: Database, owner_url: str
) -> None:
    first, second = await an_ended_run(pool, owner_url), await an_ended_run(pool, owner_url)
    await count_ended_runs(pool, 10)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("delete from app.run where id = any(%s)", ([first, second],))
    rows = await metrics_of(pool)
    assert [row.run_count for row in rows if isinstance(row, RunMetric)] == [0]
    assert [row.cost_usd for row in rows if isinstance(row, EngineMetric)] == [0.5]


async def test_an_uncounted_run_that_is_deleted_is_not_subtracted(pool: Database, owner_url: str) -> None:
    first, deleted = await an_ended_run(pool, owner_url), await an_ended_run(pool, owner_url)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("delete from app.run where id = %s", (deleted,))
    assert await count_ended_runs(pool, 10) == 1
    assert [row.run_count for row in await metrics_of(pool) if isinstance(row, RunMetric)] == [1], first


async def test_a_tenant_sees_only_its_own_metrics(pool: Database, owner_url: str, other_tenant: UUID) -> None:
    await an_ended_run(pool, owner_url)
    await stored(pool, LOCAL_TENANT)
    assert await metrics_of(pool, other_tenant) == []
    await count_ended_runs(pool, 10)
    assert await metrics_of(pool, other_tenant) == []


async def test_the_buckets_of_the_totals_are_those_of_the_metrics(owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("select app.first_token_buckets()").fetchone()
    assert row is not None
    assert tuple(row[0]) == FIRST_TOKEN_BUCKETS_SECONDS


async def test_a_tenant_with_counted_runs_can_be_deleted(pool: Database, owner_url: str) -> None:
    run = await an_ended_run(pool, owner_url)
    await count_ended_runs(pool, 10)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("delete from app.tenant where id = %s", (LOCAL_TENANT,))
        row = connection.execute("select count(*) from app.run where id = %s", (run,)).fetchone()
    assert row == (0,)

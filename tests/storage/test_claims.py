"""Which run is claimed next: by class, by tenant, begun rollouts first; and what claiming costs behind a long queue."""

import asyncio
from collections import Counter
from dataclasses import replace
from uuid import UUID, uuid4

import psycopg

from offing.core.run import RunStatus
from offing.storage import claims, runs
from offing.storage.claims import Claim, NextClaim, Release
from offing.storage.heartbeat import release_leases
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from tests.storage.builders import TERM, a_run, stored

FILLED = """
    with made as (
      select gen_random_uuid() as id, gen_random_uuid() as thread, n from generate_series(1, %(count)s) as n),
    threads as (
      insert into app.thread (id, tenant_id, title, kind) select thread, %(tenant)s, '', 'rollout' from made)
    insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                         tool_policy_sha256,
                         budget, status, kind)
    select id, %(tenant)s, thread, 'counting', '1', '', '{}', '{}', '', '{"turns": 1}', 'queued', 'rollout' from made
"""

READ = """
    select seq_scan, idx_tup_fetch + seq_tup_read from pg_stat_user_tables where relid = 'app.run'::regclass
"""


async def queued(pool: Database, kind: str = "interactive", tenant_id: UUID = LOCAL_TENANT) -> UUID:
    return (await stored(pool, tenant_id, replace(a_run(), kind=kind))).id


async def claim_next(
    pool: Database, max_runs: int = 1, max_rollouts: int | None = None, *also: UUID
) -> list[NextClaim]:
    limit = max_runs if max_rollouts is None else max_rollouts
    return await claims.claim_next_runs(pool, "worker", TERM, max_runs=max_runs, max_rollouts=limit, swept_run_ids=also)


async def next_ids(pool: Database, max_runs: int = 1, max_rollouts: int | None = None, *also: UUID) -> list[UUID]:
    return [run.claim.fence.run_id for run in await claim_next(pool, max_runs, max_rollouts, *also)]


async def hand_back(
    pool: Database, claim: Claim, status: RunStatus = RunStatus.QUEUED, wait: float | None = None
) -> None:
    async with pool.transaction(claim.fence.tenant_id) as connection:
        await claims.release_run(connection, claim.fence, Release(status, wait_seconds=wait))


async def row(pool: Database, run_id: UUID) -> RunRow:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return await runs.get_run(connection, run_id)


async def test_interactive_runs_and_their_children_are_claimed_before_rollouts(pool: Database) -> None:
    rollouts = [await queued(pool, "rollout") for _ in range(3)]
    job, child = await queued(pool), await queued(pool, "child")
    claimed = await claim_next(pool, 4)
    assert [run.claim.fence.run_id for run in claimed] == [job, child, *rollouts[:2]]
    assert [run.is_rollout for run in claimed] == [False, False, True, True]


async def test_rollouts_take_no_more_slots_than_are_free_for_them(pool: Database) -> None:
    rollouts = [await queued(pool, "rollout") for _ in range(4)]
    job = await queued(pool)
    assert await next_ids(pool, 4, 2) == [job, *rollouts[:2]]
    assert await next_ids(pool, 4, 0) == []
    assert await next_ids(pool, 0, 0) == []


async def test_rollouts_that_have_begun_are_claimed_before_new_ones(pool: Database) -> None:
    first, second, third = [await queued(pool, "rollout") for _ in range(3)]
    for claim in [run.claim for run in await claim_next(pool, 2)]:
        await hand_back(pool, claim)
    assert await next_ids(pool, 3) == [first, second, third]


async def test_an_interactive_run_that_was_released_is_claimed_after_those_that_were_queued_before(
    pool: Database,
) -> None:
    long = await queued(pool)
    (claimed,) = await claim_next(pool)
    short = await queued(pool)
    await hand_back(pool, claimed.claim)
    assert await next_ids(pool, 2) == [short, long]


async def test_the_tenant_with_fewer_active_runs_is_next_in_each_class(pool: Database, other_tenant: UUID) -> None:
    for kind in ("interactive", "rollout"):
        many = [await queued(pool, kind) for _ in range(6)]
        few = [await queued(pool, kind, other_tenant) for _ in range(2)]
        assert await next_ids(pool, 2) == [many[0], few[0]]
        assert await next_ids(pool, 1) == [many[1]]  # each has one, and this one was queued first
        assert await next_ids(pool, 1) == [few[1]]
        assert await next_ids(pool, 8) == many[2:]


async def test_a_single_question_is_next_beside_five_hundred_of_another_tenant(
    pool: Database, other_tenant: UUID, owner_url: str
) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(FILLED.encode(), {"count": 500, "tenant": LOCAL_TENANT})
        owner.execute("update app.run set kind = 'interactive'")
    await claim_next(pool, 100)
    single = await queued(pool, "interactive", other_tenant)
    assert await next_ids(pool) == [single]


async def test_a_class_does_not_count_in_the_turns_of_the_other(pool: Database, other_tenant: UUID) -> None:
    for _ in range(3):
        await queued(pool, "rollout")
    assert len(await claim_next(pool, 3)) == 3
    mine = await queued(pool)
    theirs = await queued(pool, "interactive", other_tenant)
    assert await next_ids(pool, 2) == [mine, theirs]


async def test_workers_that_claim_at_once_get_every_run_once_and_wait_for_nobody(pool: Database, app_url: str) -> None:
    expected = {await queued(pool, "rollout") for _ in range(60)}
    async with Database(app_url, max_connections=6) as other:
        taken = await asyncio.gather(*(next_ids(other, 10) for _ in range(6)))
    results = [run for some in taken for run in some]
    assert (len(results), set(results)) == (60, expected)
    assert [len(some) for some in taken] == [10] * 6


async def test_a_run_whose_row_somebody_holds_is_passed_over(pool: Database, owner_url: str) -> None:
    held, free = [await queued(pool) for _ in range(30)], await queued(pool)
    with psycopg.connect(owner_url) as owner:
        owner.execute("select from app.run where id = any(%s) for update", (held,))
        async with asyncio.timeout(20):  # a claim that waited would end by Postgres' own lock_timeout
            assert await next_ids(pool, 2) == [free]
    assert await next_ids(pool) == held[:1]


async def test_paused_cancelled_and_waiting_runs_are_not_claimed(pool: Database) -> None:
    for status in (RunStatus.PAUSED, RunStatus.CANCELLED):
        id = await queued(pool)
        async with pool.transaction(LOCAL_TENANT) as connection:
            await runs.set_run_status(connection, id, status)
    await queued(pool)
    (claimed,) = await claim_next(pool)
    await hand_back(pool, claimed.claim, RunStatus.WAITING)
    assert await next_ids(pool, 10) == []


async def test_a_run_whose_wait_is_over_is_swept_and_claimed(pool: Database) -> None:
    id, later = await queued(pool), await queued(pool)
    for claimed, wait in zip(await claim_next(pool, 2), (0.0, 60.0), strict=True):
        await hand_back(pool, claimed.claim, RunStatus.WAITING, wait)
    swept = await claims.sweep_overdue_runs(pool, 10, TERM)
    assert swept == [id]
    assert await next_ids(pool, 2, 2, *swept, later) == [id]
    assert (await row(pool, later)).status is RunStatus.WAITING


async def test_a_run_whose_worker_crashed_is_claimed_in_its_class_and_others_keep_theirs(
    pool: Database, app_url: str
) -> None:
    abandoned, live = await queued(pool, "rollout"), await queued(pool, "rollout")
    (first,) = await claims.claim_next_runs(pool, "lost", TERM, max_runs=1, max_rollouts=1)
    (second,) = await claim_next(pool)
    assert [run.claim.fence.run_id for run in (first, second)] == [abandoned, live]
    release_leases(app_url, "lost")
    assert await claims.sweep_overdue_runs(pool, 0, TERM) == [abandoned]
    assert await next_ids(pool, 2, 0, abandoned, live) == []
    (again,) = await claim_next(pool, 2, 2, abandoned, live)
    assert (again.claim.fence.run_id, again.claim.fence.number, again.claim.lease_expired) == (abandoned, 2, True)


async def claim_and_abandon(pool: Database, app_url: str, count: int, tenant_id: UUID = LOCAL_TENANT) -> list[UUID]:
    """Runs whose worker has ended, as they are swept."""
    ids = [await queued(pool, "interactive", tenant_id) for _ in range(count)]
    taken = await claims.claim_next_runs(pool, "lost", TERM, max_runs=count, max_rollouts=0)
    assert [run.claim.fence.run_id for run in taken] == ids
    release_leases(app_url, "lost")
    return ids


async def test_all_runs_of_crashed_workers_and_the_queued_ones_are_claimed_in_the_passes_of_one_check(
    pool: Database, app_url: str
) -> None:
    abandoned = await claim_and_abandon(pool, app_url, 21)
    others = [await queued(pool) for _ in range(11)]
    passes = [await next_ids(pool, 8, 8, *abandoned) for _ in range(5)]  # the same runs are named in each
    assert [len(some) for some in passes] == [8, 8, 8, 8, 0]
    assert [run for some in passes for run in some] == abandoned + others


async def test_a_few_runs_of_crashed_workers_end_no_pass_early(pool: Database, app_url: str) -> None:
    abandoned = await claim_and_abandon(pool, app_url, 3)
    others = [await queued(pool) for _ in range(9)]
    assert await next_ids(pool, 8, 8, *abandoned, *abandoned) == abandoned + others[:5]
    assert await next_ids(pool, 4, 4, *abandoned) == others[5:]


async def test_runs_that_were_claimed_again_count_among_the_active_ones_of_their_tenant(
    pool: Database, app_url: str, other_tenant: UUID
) -> None:
    abandoned = await claim_and_abandon(pool, app_url, 2)
    mine = [await queued(pool) for _ in range(2)]
    theirs = [await queued(pool, "interactive", other_tenant) for _ in range(2)]
    assert await next_ids(pool, 3, 3, *abandoned) == [abandoned[0], theirs[0], abandoned[1]]
    assert await next_ids(pool, 2, 2, *abandoned) == [theirs[1], mine[0]]


RESERVED = """
    with days as (insert into app.daily_spend (tenant_id, day, reserved_usd) select %(tenant)s, current_date, 1
                  on conflict (tenant_id, day) do update set reserved_usd = app.daily_spend.reserved_usd + 1)
    insert into app.reservation (run_id, fence, day, tenant_id, reserved_usd) values (%(run)s, 1, current_date,
                                 %(tenant)s, 1)
"""


async def test_runs_of_crashed_workers_are_claimed_while_their_tenant_s_row_is_locked(
    pool: Database, app_url: str, owner_url: str
) -> None:
    abandoned, other = await claim_and_abandon(pool, app_url, 3), await queued(pool)
    with psycopg.connect(owner_url) as owner:
        for run in abandoned:
            owner.execute(RESERVED.encode(), {"tenant": LOCAL_TENANT, "run": run})
        owner.commit()
        owner.execute("select from app.daily_spend for update")
        async with asyncio.timeout(20):  # a claim that waited would end by Postgres' own lock_timeout
            assert await next_ids(pool, 8, 8, *abandoned) == [*abandoned, other]


async def test_workers_that_claim_runs_of_the_same_tenants_at_once_do_not_wait(
    pool: Database, app_url: str, owner_url: str, other_tenant: UUID
) -> None:
    """The first has claimed and not committed; as long as that took, the second would wait for the tenants' money."""
    abandoned = {tenant: await claim_and_abandon(pool, app_url, 2, tenant) for tenant in (LOCAL_TENANT, other_tenant)}
    with psycopg.connect(owner_url, autocommit=True) as owner:
        for tenant, of_tenant in abandoned.items():
            for run in of_tenant:
                owner.execute(RESERVED.encode(), {"tenant": tenant, "run": run})
    first, second = [[of_tenant[n] for of_tenant in abandoned.values()] for n in range(2)]
    claim = "select run_id from app.claim_next_runs('first', %s, 8, 8, %s)"
    with psycopg.connect(app_url) as worker:
        assert worker.execute(claim, (f"{TERM} seconds", first)).fetchall() == [(run,) for run in first]
        async with asyncio.timeout(20):
            assert await next_ids(pool, 8, 8, *reversed(second)) == second


async def test_nothing_that_is_queued_is_swept_however_long_it_waits(pool: Database, owner_url: str) -> None:
    """A sweep that lists the queue would find the runs of a crashed worker behind all of it."""
    await queued(pool)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.run set dispatched_at = dispatched_at - interval '1 day'")
    assert await claims.sweep_overdue_runs(pool, 0, TERM) == []


async def test_a_claim_reads_a_few_rows_of_a_long_queue(pool: Database, other_tenant: UUID, owner_url: str) -> None:
    """With statistics of the planner and without."""
    with psycopg.connect(owner_url, autocommit=True) as owner:

        def fill(tenant_id: UUID) -> None:
            owner.execute(FILLED.encode(), {"count": 10_000, "tenant": tenant_id})

        fill(LOCAL_TENANT)
        fill(other_tenant)
        assert 1 <= await read_by_claims(pool, owner) < 40
        owner.execute("vacuum analyze app.run")
        assert 1 <= await read_by_claims(pool, owner) < 40


async def test_a_claim_reads_a_few_rows_of_a_long_queue_of_one_tenant(pool: Database, owner_url: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(FILLED.encode(), {"count": 10_000, "tenant": LOCAL_TENANT})
        owner.execute("vacuum analyze app.run")
        first = owner.execute("select id from app.run order by queued_at, id limit 10").fetchall()
        before = read(owner)
        assert [await next_ids(pool) for _ in range(10)] == [[run_id] for (run_id,) in first]
        await pool.call_function("select pg_stat_force_next_flush()", ())
        after = read(owner)
    assert after[0] == before[0], "a sequential scan reads them all"
    assert (after[1] - before[1]) / 10 < 20


async def read_by_claims(pool: Database, owner: psycopg.Connection) -> float:
    """Rows of the table that a claim reads, on average; a sequential scan would read them all."""
    before = read(owner)
    tenants = Counter[UUID]()
    for _ in range(10):
        swept = [uuid4() for _ in range(3)]  # claimed by others since
        tenants.update([run.claim.fence.tenant_id for run in await claim_next(pool, 1, 1, *swept)])
    await pool.call_function("select pg_stat_force_next_flush()", ())
    after = read(owner)
    assert sorted(tenants.values()) == [5, 5]
    assert after[0] == before[0]
    return (after[1] - before[1]) / 10


def read(owner: psycopg.Connection) -> tuple[int, int]:
    """Sequential scans of the table, and the rows that were read. What the owner read itself is counted first: Postgres
    holds the counts of a session back for up to a second, and would add them to what the claims read."""
    owner.execute("select pg_stat_force_next_flush()")
    owner.execute("select pg_stat_clear_snapshot()")
    result = owner.execute(READ.encode()).fetchone()
    assert result is not None
    return result[0], result[1]

"""What is removed of ended runs after a time, and what never is."""

import asyncio
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.core.run import RunStatus
from offing.storage import retention, runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

ADD_RUN = """
    insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                         tool_policy_sha256,
                         budget, status, next_seq, kind, durability, ended_at)
    values (%s, %s, %s, 'c', '1', 'Why?', '{}', '{}', '', '{}', %s, 2, %s, %s, now() - %s * interval '1 day')
"""

ADD_CHECKPOINT = """
    insert into app.checkpoint (thread_id, ns, checkpoint_id, tenant_id, run_id, fence, superstep, body, metadata)
    values (%s, %s, %s, %s, %s, 1, %s, '\\x80', '{}')
"""

ADD_WRITE = """
    insert into app.checkpoint_write (thread_id, ns, checkpoint_id, task_id, idx, tenant_id, run_id, channel, type,
                                      body)
    values (%s, %s, %s, 't', -3, %s, %s, '__interrupt__', 'msgpack', '\\x80')
"""

ADD_STEP = """
    insert into app.step (run_id, seq, tenant_id, fence, kind, label, title, payload)
    values (%s, 1, %s, 0, 'queued', 'queued', 'Why?', '{}')
"""


@pytest.fixture
def owner(owner_url: str) -> psycopg.Connection:
    return psycopg.connect(owner_url, autocommit=True)


def ended(
    owner: psycopg.Connection,
    tenant_id: UUID,
    *,
    days: float | None = 30,
    durability: str = "sync",
    kind: str = "interactive",
    checkpoints: int = 5,
) -> UUID:
    """A run that ended `days` days ago, with checkpoints of its graph, of a called subgraph, and of one with memory.

    `days` None: it still continues.
    """
    run = new_id()
    owner.execute("insert into app.thread (id, tenant_id, title) values (%s, %s, 't')", (run, tenant_id))
    status = "queued" if days is None else "done"
    owner.execute(ADD_RUN, (run, tenant_id, run, status, kind, durability, days))
    owner.execute(ADD_STEP, (run, tenant_id))
    for ns in ("", "node:task", "memory"):
        for n in range(checkpoints):
            owner.execute(ADD_CHECKPOINT, (run, ns, f"c{n}", tenant_id, run, n))
            owner.execute(ADD_WRITE, (run, ns, f"c{n}", tenant_id, run))
    return run


def left(owner: psycopg.Connection, run_id: UUID, table: str = "checkpoint") -> list[tuple[str, str]]:
    query = f"select ns, checkpoint_id from app.{table} where run_id = %s order by 1, 2"
    return [(ns, name) for ns, name in owner.execute(query.encode(), (run_id,))]


async def test_of_a_run_that_ended_long_ago_only_what_the_next_run_continues_from_is_kept(
    pool: Database, owner: psycopg.Connection, other_tenant: UUID
) -> None:
    with owner:
        old = [ended(owner, tenant) for tenant in (LOCAL_TENANT, other_tenant)]
        recent, going = ended(owner, LOCAL_TENANT, days=1), ended(owner, LOCAL_TENANT, days=None)
        assert await retention.prune_checkpoints(pool, 7, 50) == 2
        for run in old:
            assert left(owner, run) == [("", "c4"), ("memory", "c4")]
            assert left(owner, run, "checkpoint_write") == [("", "c4"), ("memory", "c4")]
        for run in (recent, going):
            assert len(left(owner, run)) == len(left(owner, run, "checkpoint_write")) == 15
        assert owner.execute("select count(*) from app.step").fetchone() == (4,)
        assert await retention.prune_checkpoints(pool, 7, 50) == 0


async def test_an_ended_rollout_that_would_be_done_again_whole_keeps_no_checkpoint(
    pool: Database, owner: psycopg.Connection
) -> None:
    with owner:
        run = ended(owner, LOCAL_TENANT, days=0.001, durability="exit", kind="rollout")
        synced = ended(owner, LOCAL_TENANT, days=0.001, kind="rollout")
        assert await retention.prune_checkpoints(pool, 7, 50) == 1
        assert left(owner, run) == left(owner, run, "checkpoint_write") == []
        assert len(left(owner, synced)) == 15


async def test_a_sweep_does_no_more_than_it_is_told_and_the_oldest_first(
    pool: Database, owner: psycopg.Connection
) -> None:
    with owner:
        runs = [ended(owner, LOCAL_TENANT, days=30 + n, checkpoints=2) for n in range(5)]
        assert await retention.prune_checkpoints(pool, 7, 2) == 2
        assert [len(left(owner, run)) for run in runs] == [6, 6, 6, 2, 2]
        owner.execute("set enable_seqscan = off")
        due = (
            b"explain select id from app.run where durability = 'sync' and ended_at < now() and pruned_at is null "
            b"order by ended_at limit 2"
        )
        plan = " ".join(line for (line,) in owner.execute(due))
        assert "run_to_prune" in plan
        assert "Sort" not in plan


async def test_neither_durability_keeps_checkpoints_of_the_other_from_being_removed(
    pool: Database, owner: psycopg.Connection
) -> None:
    with owner:
        rollouts = [ended(owner, LOCAL_TENANT, days=40, durability="exit", checkpoints=1) for _ in range(6)]
        requests = [ended(owner, LOCAL_TENANT, checkpoints=2) for _ in range(3)]

        async def remaining() -> tuple[int, int, int]:
            pruned = await retention.prune_checkpoints(pool, 7, 4)
            return (
                pruned,
                sum(len(left(owner, run)) == 6 for run in requests),
                sum(bool(left(owner, r)) for r in rollouts),
            )

        assert await remaining() == (4, 1, 4)  # half of each
        assert await remaining() == (4, 0, 1)  # where one has less, more of the other
        assert await remaining() == (1, 0, 0)


async def test_a_rollout_that_ends_without_a_checkpoint_is_never_due(pool: Database, owner: psycopg.Connection) -> None:
    with owner:
        bare, with_some = [
            ended(owner, LOCAL_TENANT, days=None, durability="exit", kind="rollout", checkpoints=n) for n in (0, 1)
        ]
        for run in (bare, with_some):
            async with pool.transaction(LOCAL_TENANT) as connection:
                await runs.set_run_status(connection, run, RunStatus.CANCELLED)
        assert owner.execute("select id from app.run where pruned_at is not null").fetchall() == [(bare,)]
        assert await retention.prune_checkpoints(pool, 7, 50) == 1
        assert left(owner, with_some) == []


async def test_a_run_is_pruned_once_and_one_that_another_worker_prunes_is_left_to_it(
    pool: Database, owner: psycopg.Connection, owner_url: str
) -> None:
    with owner:
        held, free = ended(owner, LOCAL_TENANT, days=31), ended(owner, LOCAL_TENANT)
        with psycopg.connect(owner_url) as other:
            other.execute("select from app.run where id = %s for update", (held,))
            async with asyncio.timeout(20):  # who waited would end by Postgres' own lock_timeout
                assert await retention.prune_checkpoints(pool, 7, 50) == 2
        assert (len(left(owner, held)), len(left(owner, free))) == (15, 2)
        pruned = "select pruned_at from app.run where id = %s"
        at = owner.execute(pruned, (free,)).fetchone()
        async with pool.transaction(LOCAL_TENANT) as connection:
            assert await retention.prune_run(connection, free) == 0
        assert owner.execute(pruned, (free,)).fetchone() == at


def add_files(owner: psycopg.Connection, run_id: UUID, count: int, days: float) -> None:
    owner.execute(
        "insert into app.run_file (run_id, sha256, name, tenant_id, media_type, body, created_at) "
        "select id, '\\x01', n::text, tenant_id, 'image/png', 'x', now() - %s * interval '1 day' - n * interval '1 s' "
        "from app.run, generate_series(1, %s) as n where id = %s",
        (days, count, run_id),
    )


async def test_old_files_of_runs_that_continue_keep_no_files_of_ended_ones(
    pool: Database, owner: psycopg.Connection
) -> None:
    with owner:
        going, recent = ended(owner, LOCAL_TENANT, days=None), ended(owner, LOCAL_TENANT, days=1)
        old = [ended(owner, LOCAL_TENANT) for _ in range(3)]
        for run, count, days in ((going, 9, 90), (recent, 9, 80), (old[0], 9, 40), (old[1], 1, 35), (old[2], 1, 30)):
            add_files(owner, run, count, days)
        assert await retention.delete_run_files(pool, 7, 2) == 2  # runs, not files
        stored = owner.execute("select run_id from app.run_file group by 1").fetchall()
        assert {run for (run,) in stored} == {going, recent, old[2]}
        assert await retention.delete_run_files(pool, 7, 2) == 1
        assert await retention.delete_run_files(pool, 7, 2) == 0
        assert owner.execute("select count(*) from app.run_file").fetchone() == (18,)


READ = """
    select relname, seq_scan, idx_tup_fetch + seq_tup_read from pg_stat_user_tables
     where relname in ('run', 'run_file') order by 1
"""


async def test_a_sweep_reads_little_more_than_it_returns(pool: Database, owner: psycopg.Connection) -> None:
    """With statistics of the planner and without."""
    with owner:
        fill(owner, 4000)
        for analyzed in (False, True):
            if analyzed:
                owner.execute("vacuum analyze app.run, app.run_file")
            for sweep, expected in (("sweep_ended_runs", 100), ("sweep_run_files", 40)):
                before = read(owner)
                due = f"select count(*) from app.{sweep}(interval '7 days', 100)"
                assert owner.execute(due.encode()).fetchone() == (expected,)
                for (_, scans, rows), (table, scans_after, rows_after) in zip(before, read(owner), strict=True):
                    assert (scans_after, rows_after - rows < 250) == (scans, True), (sweep, table, rows_after - rows)


def fill(owner: psycopg.Connection, count: int) -> None:
    """Runs, half of them at exit, of which few ended long ago, each with a file as old."""
    owner.execute(
        "with made as (select gen_random_uuid() as id, n from generate_series(1, %s) as n), threads as ("
        "  insert into app.thread (id, tenant_id, title) select id, %s, '' from made) "
        "insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy, "
        "                     tool_policy_sha256, budget, status, durability, ended_at) "
        "select id, %s, id, 'c', '1', '', '{}', '{}', '', '{}', 'done', case when n %% 2 = 0 then 'sync' else 'exit' "
        "       end, now() - case when n <= 40 then 30 else 1 end * interval '1 day' - n * interval '1 s' from made",
        (count, LOCAL_TENANT, LOCAL_TENANT),
    )
    owner.execute(
        "insert into app.run_file (run_id, sha256, name, tenant_id, media_type, body, created_at) "
        "select id, '\\x01', 'a', tenant_id, 'image/png', 'x', ended_at from app.run"
    )


def read(owner: psycopg.Connection) -> list[tuple[str, int, int]]:
    """How often each table was read whole, and how many of its rows were read."""
    owner.execute("select pg_stat_force_next_flush()")
    owner.execute("select pg_stat_clear_snapshot()")
    return owner.execute(READ.encode()).fetchall()


async def test_files_of_runs_are_kept_as_long_as_the_settings_say(pool: Database, owner: psycopg.Connection) -> None:
    with owner:
        old, recent = ended(owner, LOCAL_TENANT), ended(owner, LOCAL_TENANT, days=1)
        for run, days in ((old, 30), (recent, 1)):
            owner.execute(
                "insert into app.run_file (run_id, sha256, name, tenant_id, media_type, body, created_at) "
                "values (%s, '\\x01', 'plot.png', %s, 'image/png', 'x', now() - %s * interval '1 day')",
                (run, LOCAL_TENANT, days),
            )
        assert await retention.delete_run_files(pool, 7, 50) == 1
        assert owner.execute("select run_id from app.run_file").fetchall() == [(recent,)]


async def test_spent_login_links_and_sessions_go(pool: Database, owner: psycopg.Connection, other_tenant: UUID) -> None:
    with owner:
        for name, used, hours in (("used", "now()", 1), ("expired", "null", -1), ("fresh", "null", 1)):
            owner.execute(
                f"insert into app.login_link (token_sha256, tenant_id, expires_at, used_at) "
                f"values (%s, %s, now() + %s * interval '1 hour', {used})".encode(),
                (name.encode(), other_tenant, hours),
            )
        for name, hours in (("expired", -1), ("fresh", 1)):
            owner.execute(
                "insert into app.session (token_sha256, tenant_id, csrf_token, expires_at) "
                "values (%s, %s, 'x', now() + %s * interval '1 hour')",
                (name.encode(), other_tenant, hours),
            )
        assert await retention.delete_expired_logins(pool, 50) == 3
        assert owner.execute("select token_sha256 from app.login_link").fetchall() == [(b"fresh",)]
        assert owner.execute("select token_sha256 from app.session").fetchall() == [(b"fresh",)]

"""What is removed of ended runs after a time, and what never is."""

from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.storage import retention
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

ADD_RUN = """
    insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256,
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
    tenant: UUID,
    *,
    days: float | None = 30,
    durability: str = "sync",
    kind: str = "ask",
    checkpoints: int = 5,
) -> UUID:
    """A run that ended so many days ago, with checkpoints of its graph, of a called subgraph, and of one with memory.

    `days` None: it still goes on.
    """
    run = new_id()
    owner.execute("insert into app.thread (id, tenant_id, title) values (%s, %s, 't')", (run, tenant))
    status = "queued" if days is None else "done"
    owner.execute(ADD_RUN, (run, tenant, run, status, kind, durability, days))
    owner.execute(ADD_STEP, (run, tenant))
    for ns in ("", "node:task", "memory"):
        for n in range(checkpoints):
            owner.execute(ADD_CHECKPOINT, (run, ns, f"c{n}", tenant, run, n))
            owner.execute(ADD_WRITE, (run, ns, f"c{n}", tenant, run))
    return run


def left(owner: psycopg.Connection, run: UUID, table: str = "checkpoint") -> list[tuple[str, str]]:
    query = f"select ns, checkpoint_id from app.{table} where run_id = %s order by 1, 2"
    return [(ns, name) for ns, name in owner.execute(query.encode(), (run,))]


async def test_of_a_run_that_ended_long_ago_only_what_the_next_run_goes_on_from_is_kept(
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


async def test_files_of_runs_are_kept_as_long_as_the_settings_say(pool: Database, owner: psycopg.Connection) -> None:
    with owner:
        old, recent = ended(owner, LOCAL_TENANT), ended(owner, LOCAL_TENANT, days=1)
        for run, days in ((old, 30), (recent, 1)):
            owner.execute(
                "insert into app.run_file (run_id, sha256, name, tenant_id, media_type, body, created_at) "
                "values (%s, '\\x01', 'plot.png', %s, 'image/png', 'x', now() - %s * interval '1 day')",
                (run, LOCAL_TENANT, days),
            )
        assert await retention.drop_run_files(pool, 7, 50) == 1
        assert owner.execute("select run_id from app.run_file").fetchall() == [(recent,)]


async def test_spent_login_links_and_sessions_go(pool: Database, owner: psycopg.Connection, other_tenant: UUID) -> None:
    with owner:
        for name, used, hours in (("used", "now()", 1), ("expired", "null", -1), ("fresh", "null", 1)):
            owner.execute(
                f"insert into app.login (token_sha256, tenant_id, expires_at, used_at) "
                f"values (%s, %s, now() + %s * interval '1 hour', {used})".encode(),
                (name.encode(), other_tenant, hours),
            )
        for name, hours in (("expired", -1), ("fresh", 1)):
            owner.execute(
                "insert into app.session (token_sha256, tenant_id, csrf_token, expires_at) "
                "values (%s, %s, 'x', now() + %s * interval '1 hour')",
                (name.encode(), other_tenant, hours),
            )
        assert await retention.drop_logins(pool, 50) == 3
        assert owner.execute("select token_sha256 from app.login").fetchall() == [(b"fresh",)]
        assert owner.execute("select token_sha256 from app.session").fetchall() == [(b"fresh",)]

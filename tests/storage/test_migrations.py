"""Migrations on databases that hold something: each later version keeps every row of the one before, and works."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from psycopg.types.json import Jsonb

from offing.core.usage import UsageDelta
from offing.local import Servers
from offing.resources import migrations_dir
from offing.storage import groups, rollouts, runs, steps
from offing.storage.heartbeat import HeartbeatConnection
from offing.storage.migrate import LOCAL_TENANT, SchemaMismatch, is_current, migrate, migrations_in
from offing.storage.plain_state import serializer
from offing.storage.pool import Database
from offing_workers.saver import FencedSaver
from tests.conftest import at_database
from tests.storage.builders import TERM, a_step

VERSIONS = tuple(m.version for m in migrations_in(migrations_dir()))

RUN = UUID("01980000-0000-7000-8000-000000000001")

ROLLOUT = UUID("01980000-0000-7000-8000-000000000002")
"""Ended, and not settled."""

LATER = UUID("01980000-0000-7000-8000-000000000003")
"""A rollout of the version that knows when it is due."""

POPULATE = {
    "0001_runs": """
        insert into app.tenant (id, name) values ('01980000-0000-7000-8000-00000000000a', 'other');
        insert into app.api_key (id, tenant_id, name, secret_sha256) values ('k', %(tenant)s, 'key', '\\x01');
        insert into app.login (token_sha256, tenant_id, expires_at) values ('\\x02', %(tenant)s, now() + '1 hour');
        insert into app.session (token_sha256, tenant_id, csrf_token, expires_at)
        values ('\\x03', %(tenant)s, 'csrf', now() + '1 hour');
        insert into app.thread (id, tenant_id, title) values (%(run)s, %(tenant)s, 'thread');
        insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256,
                             budget, status, next_seq)
        values (%(run)s, %(tenant)s, %(run)s, 'counting', '1', 'Why?', '{}', '{}', '', '{"turns": 3}', 'queued', 2);
        insert into app.step (run_id, seq, tenant_id, fence, kind, label, title, payload)
        values (%(run)s, 1, %(tenant)s, 0, 'queued', 'queued', 'Why?', '{"question": "Why?"}');
        insert into app.intent (run_id, superstep, path, ordinal, tenant_id, fence, tool, args, effect)
        values (%(run)s, 1, 'p', 0, %(tenant)s, 1, 'launch', '{}', 'at_most_once');
        insert into app.text_part (tenant_id, sha256, body) values (%(tenant)s, '\\x04', 'part');
        insert into app.turn (run_id, seq, tenant_id, role, engine, prompt, trainable)
        values (%(run)s, 1, %(tenant)s, 'speaker', 'scripted', '[]', 'sft');
        insert into app.checkpoint (thread_id, checkpoint_id, tenant_id, run_id, fence, superstep, body, metadata)
        values (%(run)s, 'c1', %(tenant)s, %(run)s, 1, 1, '\\x80', '{}');
        insert into app.checkpoint_write (thread_id, checkpoint_id, task_id, idx, tenant_id, run_id, channel, type,
                                          body)
        values (%(run)s, 'c1', 't', -3, %(tenant)s, %(run)s, '__interrupt__', 'msgpack', '\\x80');
        insert into app.spend (tenant_id, day, used) values (%(tenant)s, current_date, 0.5);
    """,
    "0002_library": """
        insert into app.snapshot (tenant_id, sha256, media_type, body)
        values (%(tenant)s, '\\x05', 'text/plain', 'Salt comes from rivers.');
        insert into app.artefact (id, tenant_id, snapshot, extractor, sha256, body, length)
        values (%(run)s, %(tenant)s, '\\x05', 'plain 1', '\\x05', 'Salt comes from rivers.', 23);
        insert into app.source (id, tenant_id, name, title, artefact_id)
        values (%(run)s, %(tenant)s, 'salt.txt', 'Salt', %(run)s);
    """,
    "0003_reports": """
        insert into app.report (run_id, version, tenant_id, seq, status, reason, body)
        values (%(run)s, 1, %(tenant)s, 1, 'complete', 'answered', '{}');
        insert into app.citation (run_id, version, number, tenant_id, artefact_id, source_id, start_at, end_at, quote,
                                  title)
        values (%(run)s, 1, 1, %(tenant)s, %(run)s, %(run)s, 0, 4, 'Salt', 'Salt');
        insert into app.reward (id, tenant_id, run_id, target, report, scorer, version, value)
        values (%(run)s, %(tenant)s, %(run)s, 'report', 1, 'person:me', 1, 1);
    """,
    "0005_passages": """
        insert into app.passage (artefact_id, ordinal, tenant_id, start_at, end_at, heading)
        values (%(run)s, 0, %(tenant)s, 0, 23, '');
        insert into app.posting (tenant_id, term, artefact_id, passages, weights)
        values (%(tenant)s, 'salt', %(run)s, '{0}', '{1.0}');
        insert into app.source_past (source_id, artefact_id, tenant_id) values (%(run)s, %(run)s, %(tenant)s);
    """,
    "0006_reservations": """
        update app.run set reserved_usd = 0.25 where id = %(run)s;
    """,
    "0007_trajectories": """
        insert into app.policy_version (id, tenant_id, name, version, kind, uri, sha256)
        values (%(run)s, %(tenant)s, 'planner', 1, 'full', 'planner@1', 'aa');
        insert into app.policy_version (id, tenant_id, name, version, parent_id, kind, uri, sha256, state)
        values (%(rollout)s, %(tenant)s, 'planner', 2, %(run)s, 'lora', 'planner@2', 'bb', 'active');
        insert into app.task (id, tenant_id, dataset, question, content_sha256)
        values (%(run)s, %(tenant)s, 'salt', 'Why?', 'cc');
        insert into app.task_reference (task_id, tenant_id, answers) values (%(run)s, %(tenant)s, '["Rivers"]');
        insert into app.batch (id, tenant_id, request) values (%(run)s, %(tenant)s, '{}');
        insert into app.rollout_group (id, tenant_id, batch_id, task_id, graph, graph_version, engines, policies,
                                       scorers, size, seed, attempts)
        values (%(run)s, %(tenant)s, %(run)s, %(run)s, 'counting', '1', '{}', '{}',
                '[{"name": "exact_match", "version": "1", "weight": 1, "options": {}}]', 1, 7, 3);
        insert into app.thread (id, tenant_id, title) values (%(rollout)s, %(tenant)s, 'rollout');
        insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256,
                             budget, status, stop_reason, next_seq, ended_at, kind, durability)
        values (%(rollout)s, %(tenant)s, %(rollout)s, 'counting', '1', 'Why?', '{}', '{}', '', '{"turns": 3}', 'done',
                'answered', 2, now() - interval '1 hour', 'rollout', 'exit');
        insert into app.rollout (run_id, group_id, tenant_id, member) values (%(rollout)s, %(run)s, %(tenant)s, 0);
        insert into app.step (run_id, seq, tenant_id, fence, kind, label, title, payload)
        values (%(rollout)s, 1, %(tenant)s, 0, 'queued', 'queued', 'Why?', '{"question": "Why?"}');
        insert into app.segment (run_id, idx, tenant_id, role, fracture)
        values (%(rollout)s, 0, %(tenant)s, 'speaker', 'root');
        insert into app.turn (run_id, seq, tenant_id, role, engine, prompt, trainable, segment, prompt_offset,
                              prompt_ids, completion_ids, logprobs, mask, policy, policy_version_id)
        values (%(rollout)s, 1, %(tenant)s, 'speaker', 'policy', '[]', 'rl', 0, 0, '\\x010000', '\\x020000',
                '\\x000080bf', '\\x01', 'planner@2', %(rollout)s);
        insert into app.span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token)
        values (%(rollout)s, 1, 0, %(tenant)s, 'action', 0, 4, 0, 1);
        insert into app.reward (id, tenant_id, run_id, target, scorer, version, value, failure)
        values (%(rollout)s, %(tenant)s, %(rollout)s, 'run', 'rubric_judge', 1, null, 'overloaded');
        insert into app.ledger (train_run, run_id, tenant_id, step, reason)
        values (%(run)s, %(rollout)s, %(tenant)s, 1, 'kept');
    """,
    "0008_collection": """
        insert into app.batch (id, tenant_id, request, groups, cancelled_at, idempotency_key, request_sha256)
        values (%(rollout)s, %(tenant)s, '{}', 1, now(), 'key', 'dd');
        insert into app.thread (id, tenant_id, title, kind) values (%(later)s, %(tenant)s, 'second', 'rollout');
        insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256,
                             budget, status, next_seq, kind, durability)
        values (%(later)s, %(tenant)s, %(later)s, 'counting', '1', 'Why?', '{}', '{}', '', '{"turns": 3}', 'running', 2,
                'rollout', 'exit');
        insert into app.rollout (run_id, group_id, tenant_id, member, attempt)
        values (%(later)s, %(run)s, %(tenant)s, 0, 2);
        update app.run set status = 'done', stop_reason = 'answered', ended_at = now() where id = %(later)s;
    """,
    "0012_training": """
        insert into app.train_job (id, tenant_id, kind, name, config, config_sha256, seed, produced_id)
        values (%(run)s, %(tenant)s, 'train', 'planner', '{}', 'ee', 7, %(rollout)s);
        insert into app.train_metric (job_id, tenant_id, step, name, value)
        values (%(run)s, %(tenant)s, 1, 'reward', 0.5);
        insert into app.train_state (job_id, name, tenant_id, step, body)
        values (%(run)s, 'tracker', %(tenant)s, 1, '{"a": 1}');
        insert into app.train_event (id, tenant_id, job_id, policy_version_id, kind)
        values (%(run)s, %(tenant)s, %(run)s, %(rollout)s, 'registered');
        insert into app.evaluation (id, tenant_id, policy_version_id, dataset, mode, graph, seed, batch_id)
        values (%(run)s, %(tenant)s, %(rollout)s, 'salt', 'greedy', 'counting', 7, %(run)s);
        insert into app.evaluation_result (evaluation_id, task_id, member, tenant_id, run_id, reward, outcome, turns,
                                           tokens)
        values (%(run)s, %(run)s, 0, %(tenant)s, %(rollout)s, 1, 'answered', 1, 9);
    """,
    "0013_prompt_libraries": """
        insert into app.prompt_library (policy_version_id, tenant_id, experiences, cases)
        values (%(rollout)s, %(tenant)s, '{"experiences": [], "next_id": 1}', '{"cases": []}');
    """,
    "0015_run_files": """
        insert into app.run_file (run_id, sha256, name, tenant_id, media_type, body)
        values (%(run)s, '\\x06', 'plot.png', %(tenant)s, 'image/png', '\\x89');
    """,
    "0016_questions": """
        insert into app.question (run_id, seq, tenant_id, kind, answered_at, answer, answerer, answered_by)
        values (%(run)s, 1, %(tenant)s, 'ask', now(), '{"text": "Rivers"}', 'person', 'page');
    """,
    "0017_child_runs": """
        insert into app.child_run (run_id, tenant_id, parent_id, superstep, path, ordinal, depth)
        values (%(rollout)s, %(tenant)s, %(run)s, 1, 'send', 0, 1);
    """,
    "0019_lease_watch": """
        insert into app.lease_watch (kind, since, at) values ('run', now(), now());
    """,
    "0025_epochs": """
        insert into app.reservation (run_id, day, tenant_id, usd) values (%(run)s, current_date, %(tenant)s, 0.25);
    """,
    "0029_claims_of_lost_runs": """
        insert into app.reservation (run_id, fence, day, tenant_id, usd)
        values (%(run)s, 0, current_date, %(tenant)s, 0.25);
    """,
    "0031_checkpoint_values": """
        insert into app.checkpoint_value (thread_id, ns, channel, version, tenant_id, type, items, body)
        values (%(run)s, '', 'messages', '00000001.00000000', %(tenant)s, 'list', 1, '\\x01');
    """,
    "0033_store_items": """
        insert into app.store_item (tenant_id, namespace, key, value, run_id)
        values (%(tenant)s, 'memories.ada', 'cat', '{"text": "tea"}', %(run)s);
    """,
}
"""Rows for the tables of each version, as that version's code would have written them."""

UNTIL = {"0006_reservations": "0025_epochs", "0025_epochs": "0029_claims_of_lost_runs"}
"""What a version stored, and the later one that stores it otherwise."""

CHANGED = {"reserved_usd", "pruned_at"}
"""Columns that a later version gave up, with what was in them, or fills in."""

_serial = count(1)


@pytest.fixture
def empty(servers: Servers) -> Iterator[Servers]:
    """A database without any migration."""
    name = f"migrated{next(_serial)}"
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        owner.execute(f"create database {name}".encode())
        owner_url, app_url = at_database(servers.owner_url, name), at_database(servers.app_url, name)
        yield Servers(owner_url, app_url, servers.redis_url)
        owner.execute(f"drop database {name} with (force)".encode())


def bring_to(version: str, empty: Servers, folder: Path) -> None:
    """Migrate as the code of that version would have."""
    for path in migrations_dir().glob("[0-9]*.sql"):
        if path.stem <= version:
            shutil.copy(path, folder)
    migrate(empty.owner_url, folder=folder)


def populate(empty: Servers, version: str) -> None:
    values = {"run": str(RUN), "rollout": str(ROLLOUT), "later": str(LATER), "tenant": str(LOCAL_TENANT)}
    with psycopg.connect(empty.owner_url, cursor_factory=psycopg.ClientCursor) as connection:
        for added, statements in POPULATE.items():
            if added <= version < UNTIL.get(added, "9999"):
                connection.execute(statements.encode(), values)


def content(url: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'app' order by 1").fetchall()
        return {
            t: [row for (row,) in connection.execute(f"select to_jsonb(x) from app.{t} x".encode())] for (t,) in tables
        }


def lost(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that are not among those that came later, whatever columns were added or dropped on purpose."""
    kept = [{name: value for name, value in row.items() if name not in CHANGED} for row in before]
    return [row for row in kept if not any(row.items() <= new.items() for new in after)]


@pytest.mark.parametrize("version", VERSIONS[:-1])
async def test_later_migrations_keep_a_populated_database_and_it_works(
    empty: Servers, tmp_path: Path, version: str
) -> None:
    bring_to(version, empty, tmp_path)
    populate(empty, version)
    before = content(empty.owner_url)
    assert migrate(empty.owner_url, folder=migrations_dir()) == VERSIONS[VERSIONS.index(version) + 1 :]
    after = content(empty.owner_url)
    assert {table: lost(rows, after[table]) for table, rows in before.items() if lost(rows, after[table])} == {}
    await works(empty)


async def works(found: Servers) -> None:
    """A run of before is claimed, kept and appended to by the application's role."""
    heart = HeartbeatConnection(found.app_url)
    async with Database(found.app_url, most=2) as database:
        claim = await runs.claim(database, RUN, "worker", TERM)
        assert claim is not None
        assert [wish.run for wish in heart.beat([claim.fence], TERM)] == [RUN]
        heart.close()
        async with database.transaction(LOCAL_TENANT) as connection:
            await steps.append(connection, claim.fence, TERM, [a_step()], UsageDelta(turns=1))
            assert [s.seq for s in await steps.after(connection, RUN, 0, 10)] == [1, 2]


EARLY, LATE = str(UUID(int=1)), str(UUID(int=2**127))

OLD_CHECKPOINT = """
    insert into app.checkpoint (thread_id, checkpoint_id, parent_id, tenant_id, run_id, fence, superstep, body,
                                metadata)
    values (%s, %s, %s, %s, %s, 1, %s, %s, %s)
"""


def answered(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("y" * 500, id=f"a{len(state['messages'])}")]}


async def test_a_thread_goes_on_from_checkpoints_that_were_stored_whole(empty: Servers, tmp_path: Path) -> None:
    """Written in another order than that of their supersteps, and with ids of clocks that disagree."""
    bring_to("0030_retention_by_run", empty, tmp_path)
    populate(empty, "0030_retention_by_run")
    said: list[BaseMessage] = [HumanMessage("x" * 500, id=str(n)) for n in range(3)]
    with psycopg.connect(empty.owner_url) as connection:
        for id, parent, step in ((EARLY, LATE, 3), (LATE, None, 2)):
            checkpoint = empty_checkpoint() | {"id": id, "channel_values": {"messages": said[:step]}}
            checkpoint["channel_versions"] = {"messages": f"{step:08d}"}
            body, metadata = serializer().dumps_typed(checkpoint)[1], Jsonb({"source": "loop", "step": step})
            connection.execute(OLD_CHECKPOINT, (RUN, id, parent, LOCAL_TENANT, RUN, step, body, metadata))
    migrate(empty.owner_url, folder=migrations_dir())
    async with Database(empty.app_url, most=2) as database:
        claim = await runs.claim(database, RUN, "worker", TERM)
        assert claim is not None
        builder: Any = StateGraph(MessagesState)
        builder.add_node("answer", answered)
        builder.add_edge(START, "answer")
        config: RunnableConfig = {"configurable": {"thread_id": "t"}}
        for asked in ("4", "5"):
            graph: Any = builder.compile(checkpointer=FencedSaver(database, claim.fence, content=()))
            assert (await graph.aget_state(config)).values["messages"][:3] == said
            await graph.ainvoke({"messages": [HumanMessage("z" * 500, id=asked)]}, config)
        past = [one.values.get("messages", []) async for one in graph.aget_state_history(config, limit=8)]
        assert [len(messages) for messages in past] == [7, 6, 5, 5, 4, 3, 3, 2]
        assert past[5] == past[6] == said


async def test_what_was_collected_before_there_was_a_batch_to_show_is_settled_and_counted(
    empty: Servers, tmp_path: Path
) -> None:
    bring_to("0007_trajectories", empty, tmp_path)
    populate(empty, "0007_trajectories")
    migrate(empty.owner_url, folder=migrations_dir())
    async with Database(empty.app_url, most=2) as database:
        assert await rollouts.sweep(database, 0, 10) == [(ROLLOUT, LOCAL_TENANT)]
        async with database.transaction(LOCAL_TENANT) as connection:
            progress = (await groups.progress(connection, [RUN]))[RUN]
            batch = await groups.batch(connection, RUN)
    assert (batch.groups, progress.made, progress.unsettled) == (1, 1, 1)
    assert {t["title"]: t["kind"] for t in content(empty.owner_url)["thread"]} == {
        "thread": "ask",
        "rollout": "rollout",
    }


def test_deleting_a_tenant_leaves_rows_of_no_table(empty: Servers, tmp_path: Path) -> None:
    bring_to(VERSIONS[-1], empty, tmp_path)
    populate(empty, VERSIONS[-1])
    with psycopg.connect(empty.owner_url) as connection:
        connection.execute("delete from app.tenant where id = %s", (LOCAL_TENANT,))
    left = {table: rows for table, rows in content(empty.owner_url).items() if rows}
    assert [t["name"] for t in left.pop("tenant")] == ["other"]
    assert len(left.pop("lease_watch")) == 1  # the platform's, and no tenant's
    assert left == {}


def test_every_table_of_the_newest_version_has_rows_in_these_tests(empty: Servers, tmp_path: Path) -> None:
    bring_to(VERSIONS[-1], empty, tmp_path)
    populate(empty, VERSIONS[-1])
    assert [table for table, rows in content(empty.owner_url).items() if not rows] == []


def test_migrating_again_changes_nothing(empty: Servers) -> None:
    assert migrate(empty.owner_url, folder=migrations_dir()) == VERSIONS
    assert migrate(empty.owner_url, folder=migrations_dir()) == ()
    assert is_current(empty.owner_url, migrations_dir())


def test_a_database_of_newer_code_is_refused(empty: Servers, tmp_path: Path) -> None:
    migrate(empty.owner_url, folder=migrations_dir())
    for path in sorted(migrations_dir().glob("[0-9]*.sql"))[:-1]:
        shutil.copy(path, tmp_path)
    with pytest.raises(SchemaMismatch, match="newer"):
        migrate(empty.owner_url, folder=tmp_path)


def test_a_migration_that_was_changed_after_it_was_applied_is_refused(empty: Servers, tmp_path: Path) -> None:
    bring_to(VERSIONS[-1], empty, tmp_path)
    first = tmp_path / f"{VERSIONS[0]}.sql"
    first.write_text(first.read_text() + "\n-- changed\n")
    with pytest.raises(SchemaMismatch, match="changed"):
        migrate(empty.owner_url, folder=tmp_path)


def test_a_migration_that_fails_leaves_the_version_before(empty: Servers, tmp_path: Path) -> None:
    bring_to(VERSIONS[-1], empty, tmp_path)
    (tmp_path / "9999_broken.sql").write_text("create table app.half (id uuid); select broken;")
    with pytest.raises(psycopg.Error):
        migrate(empty.owner_url, folder=tmp_path)
    assert is_current(empty.owner_url, migrations_dir())
    assert "half" not in content(empty.owner_url)


def test_the_applications_role_owns_nothing_and_passes_no_row_security(empty: Servers) -> None:
    migrate(empty.owner_url, folder=migrations_dir())
    with psycopg.connect(empty.owner_url) as connection:
        role = "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles where rolname = 'offing_app'"
        owned = "select count(*) from pg_tables where schemaname = 'app' and tableowner = 'offing_app'"
        bare = """
            select relname from pg_class c join pg_namespace n on n.oid = relnamespace
             where nspname = 'app' and relkind = 'r' and not (relrowsecurity and relforcerowsecurity)
        """
        assert connection.execute(role).fetchone() == (False, False, False, False)
        assert connection.execute(owned).fetchone() == (0,)
        assert connection.execute(bare).fetchall() == []

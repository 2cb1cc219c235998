"""Migrations are forward only: a later one keeps every row, and what cannot be brought forward is rejected."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.usage import UsageDelta
from offing.local import ServerUrls
from offing.packaged_files import get_migrations_dir
from offing.storage import claims, steps
from offing.storage.heartbeat import HeartbeatConnection
from offing.storage.migrate import (
    CREATE_MIGRATION_TABLE,
    INSERT_MIGRATION,
    LOCAL_TENANT,
    SchemaMismatchError,
    is_current,
    load_migrations,
    migrate,
)
from offing.storage.pool import Database
from tests.conftest import at_database
from tests.storage.builders import TERM, a_step

VERSIONS = tuple(m.version for m in load_migrations(get_migrations_dir()))

RUN = UUID("01980000-0000-7000-8000-000000000001")

ROLLOUT = UUID("01980000-0000-7000-8000-000000000002")
"""Ended, and not finalized."""

POPULATE = {
    "0001_tenants": """
        insert into app.tenant (id, name) values ('01980000-0000-7000-8000-00000000000a', 'other');
        insert into app.api_key (id, tenant_id, name, secret_sha256) values ('k', %(tenant)s, 'key', '\\x01');
        insert into app.login_link (token_sha256, tenant_id, expires_at) values ('\\x02', %(tenant)s, now() + '1 hour');
        insert into app.session (token_sha256, tenant_id, csrf_token, expires_at)
        values ('\\x03', %(tenant)s, 'csrf', now() + '1 hour');
    """,
    "0002_runs": """
        insert into app.thread (id, tenant_id, title) values (%(run)s, %(tenant)s, 'thread');
        insert into app.thread (id, tenant_id, title, kind) values (%(rollout)s, %(tenant)s, 'rollout', 'rollout');
        insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                             tool_policy_sha256, budget, status, next_seq)
        values (%(run)s, %(tenant)s, %(run)s, 'counting', '1', 'Why?', '{}', '{}', '', '{"max_turns": 3}', 'queued', 2);
        insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                             tool_policy_sha256, budget, status, stop_reason, next_seq, ended_at, kind, durability)
        values (%(rollout)s, %(tenant)s, %(rollout)s, 'counting', '1', 'Why?', '{}', '{}', '', '{"max_turns": 3}',
                'done', 'answered', 2, now() - interval '1 hour', 'rollout', 'exit');
        insert into app.step (run_id, seq, tenant_id, fence, kind, label, title, payload)
        values (%(run)s, 1, %(tenant)s, 0, 'queued', 'queued', 'Why?', '{"question": "Why?"}');
        insert into app.step (run_id, seq, tenant_id, fence, kind, label, title, payload)
        values (%(rollout)s, 1, %(tenant)s, 0, 'queued', 'queued', 'Why?', '{"question": "Why?"}');
        insert into app.intent (run_id, superstep, path, ordinal, tenant_id, fence, tool, args, side_effect)
        values (%(run)s, 1, 'p', 0, %(tenant)s, 1, 'launch', '{}', 'at_most_once');
        insert into app.input_request (run_id, seq, tenant_id, kind, responded_at, response, responder, responded_by)
        values (%(run)s, 1, %(tenant)s, 'free_text', now(), '{"text": "Rivers"}', 'person', 'web');
        insert into app.child_run (run_id, tenant_id, parent_id, superstep, path, ordinal, depth)
        values (%(rollout)s, %(tenant)s, %(run)s, 1, 'send', 0, 1);
        insert into app.run_file (run_id, sha256, name, tenant_id, media_type, body)
        values (%(run)s, '\\x06', 'plot.png', %(tenant)s, 'image/png', '\\x89');
    """,
    "0003_claims": """
        insert into app.lease_watch (kind, watched_since, last_watched_at) values ('run', now(), now());
    """,
    "0004_spending": """
        insert into app.daily_spend (tenant_id, day, used_usd) values (%(tenant)s, current_date, 0.5);
        insert into app.reservation (run_id, fence, day, tenant_id, reserved_usd)
        values (%(run)s, 0, current_date, %(tenant)s, 0.25);
    """,
    "0005_checkpoints": """
        insert into app.checkpoint (thread_id, checkpoint_id, tenant_id, run_id, fence, superstep, body, metadata)
        values (%(run)s, 'c1', %(tenant)s, %(run)s, 1, 1, '\\x80', '{}');
        insert into app.checkpoint_write (thread_id, checkpoint_id, task_id, idx, tenant_id, run_id, channel, type,
                                          body)
        values (%(run)s, 'c1', 't', -3, %(tenant)s, %(run)s, '__interrupt__', 'msgpack', '\\x80');
        insert into app.checkpoint_value (thread_id, ns, channel, version, tenant_id, type, item_count, body)
        values (%(run)s, '', 'messages', '00000001.00000000', %(tenant)s, 'list', 1, '\\x01');
    """,
    "0006_library": """
        insert into app.snapshot (tenant_id, sha256, media_type, body)
        values (%(tenant)s, '\\x05', 'text/plain', 'Salt comes from rivers.');
        insert into app.extracted_text (id, tenant_id, snapshot_sha256, extractor, sha256, body, length_chars)
        values (%(run)s, %(tenant)s, '\\x05', 'plain 1', '\\x05', 'Salt comes from rivers.', 23);
        insert into app.source (id, tenant_id, name, title, text_id)
        values (%(run)s, %(tenant)s, 'salt.txt', 'Salt', %(run)s);
        insert into app.source_history (source_id, text_id, tenant_id) values (%(run)s, %(run)s, %(tenant)s);
        insert into app.passage (text_id, ordinal, tenant_id, start_char, end_char, heading)
        values (%(run)s, 0, %(tenant)s, 0, 23, '');
    """,
    "0007_reports": """
        insert into app.report (run_id, version, tenant_id, seq, status, stop_reason, body)
        values (%(run)s, 1, %(tenant)s, 1, 'complete', 'answered', '{}');
        insert into app.citation (run_id, report_version, number, tenant_id, text_id, source_id, start_char, end_char,
                                  quote, title)
        values (%(run)s, 1, 1, %(tenant)s, %(run)s, %(run)s, 0, 4, 'Salt', 'Salt');
        insert into app.reward (id, tenant_id, run_id, target, report_version, scorer, version, value)
        values (%(run)s, %(tenant)s, %(run)s, 'report', 1, 'person:me', 1, 1);
        insert into app.reward (id, tenant_id, run_id, target, scorer, version, value, failure)
        values (%(rollout)s, %(tenant)s, %(rollout)s, 'run', 'rubric_judge', 1, null, 'overloaded');
    """,
    "0008_trajectories": """
        insert into app.text_part (tenant_id, sha256, body) values (%(tenant)s, '\\x04', 'part');
        insert into app.role_call (run_id, seq, tenant_id, role, engine, prompt, trainable)
        values (%(run)s, 1, %(tenant)s, 'speaker', 'scripted', '[]', 'sft');
        insert into app.segment (run_id, idx, tenant_id, role, boundary_reason)
        values (%(rollout)s, 0, %(tenant)s, 'speaker', 'root');
        insert into app.role_call (run_id, seq, tenant_id, role, engine, prompt, trainable, segment_idx,
                                   prompt_offset, prompt_ids, completion_ids, logprobs, loss_mask, policy,
                                   policy_version_id)
        values (%(rollout)s, 1, %(tenant)s, 'speaker', 'policy', '[]', 'rl', 0, 0, '\\x010000', '\\x020000',
                '\\x000080bf', '\\x01', 'planner@2', %(rollout)s);
        insert into app.completion_span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token,
                                         end_token)
        values (%(rollout)s, 1, 0, %(tenant)s, 'action', 0, 4, 0, 1);
    """,
    "0009_rollouts": """
        insert into app.task (id, tenant_id, dataset, question, content_sha256)
        values (%(run)s, %(tenant)s, 'salt', 'Why?', 'cc');
        insert into app.task_reference (task_id, tenant_id, answers) values (%(run)s, %(tenant)s, '["Rivers"]');
        insert into app.rollout_batch (id, tenant_id, request, group_count) values (%(run)s, %(tenant)s, '{}', 1);
        insert into app.rollout_group (id, tenant_id, batch_id, task_id, graph, graph_version, engines,
                                       policy_version_ids, scorers, size, seed, max_attempts)
        values (%(run)s, %(tenant)s, %(run)s, %(run)s, 'counting', '1', '{}', '{}',
                '[{"name": "exact_match", "version": "1", "weight": 1, "options": {}}]', 1, 7, 3);
        insert into app.rollout (run_id, group_id, tenant_id, member, due_at)
        values (%(rollout)s, %(run)s, %(tenant)s, 0, now());
    """,
    "0010_training": """
        insert into app.policy_version (id, tenant_id, name, version, kind, uri, sha256)
        values (%(run)s, %(tenant)s, 'planner', 1, 'full', 'planner@1', 'aa');
        insert into app.policy_version (id, tenant_id, name, version, parent_id, kind, uri, sha256, state)
        values (%(rollout)s, %(tenant)s, 'planner', 2, %(run)s, 'lora', 'planner@2', 'bb', 'active');
        insert into app.prompt_library (policy_version_id, tenant_id, experiences, cases)
        values (%(rollout)s, %(tenant)s, '{"experiences": [], "next_id": 1}', '{"cases": []}');
        insert into app.training_job (id, tenant_id, kind, name, config, config_sha256, seed,
                                      produced_version_id)
        values (%(run)s, %(tenant)s, 'train', 'planner', '{}', 'ee', 7, %(rollout)s);
        insert into app.training_metric (job_id, tenant_id, step, name, value)
        values (%(run)s, %(tenant)s, 1, 'reward', 0.5);
        insert into app.plugin_state (job_id, name, tenant_id, step, body)
        values (%(run)s, 'tracker', %(tenant)s, 1, '{"a": 1}');
        insert into app.training_event (id, tenant_id, job_id, policy_version_id, kind)
        values (%(run)s, %(tenant)s, %(run)s, %(rollout)s, 'registered');
        insert into app.ledger (job_id, run_id, tenant_id, step, reason)
        values (%(run)s, %(rollout)s, %(tenant)s, 1, 'used');
        insert into app.evaluation (id, tenant_id, policy_version_id, dataset, mode, graph, seed, batch_id)
        values (%(run)s, %(tenant)s, %(rollout)s, 'salt', 'greedy', 'counting', 7, %(run)s);
        insert into app.evaluation_result (evaluation_id, task_id, member, tenant_id, run_id, reward, outcome, turns,
                                           tokens)
        values (%(run)s, %(run)s, 0, %(tenant)s, %(rollout)s, 1, 'answered', 1, 9);
    """,
    "0011_store": """
        insert into app.store_item (tenant_id, namespace, key, value, run_id)
        values (%(tenant)s, 'memories.ada', 'cat', '{"text": "tea"}', %(run)s);
    """,
    "0015_experiments": """
        insert into app.experiment (id, tenant_id, name, dataset, seed, scorers, request_sha256)
        values (%(run)s, %(tenant)s, '', 'salt', 7, '[]', 'dd');
        insert into app.experiment_task (experiment_id, task_id, tenant_id, number)
        values (%(run)s, %(run)s, %(tenant)s, 0);
        insert into app.experiment_configuration (experiment_id, number, tenant_id, name, graph, graph_version, engines,
                                                  budget, batch_id)
        values (%(run)s, 0, %(tenant)s, 'default', 'counting', '1', '{}', '{}', %(run)s);
        insert into app.experiment_result (experiment_id, number, task_id, tenant_id, run_id, outcome, scores, turns,
                                           tokens, cost_usd, seconds)
        values (%(run)s, 0, %(run)s, %(tenant)s, %(rollout)s, 'answered', '{}', 1, 9, 0, 1);
        insert into app.experiment_judgment (experiment_id, number, task_id, tenant_id, run_id, base_run_id, verdict)
        values (%(run)s, 0, %(run)s, %(tenant)s, %(rollout)s, %(rollout)s, 'tie');
    """,
    "0016_library_index": """
        insert into app.index_counter (tenant_id, next_passage, next_segment) values (%(tenant)s, 1, 2);
        insert into app.index_segment (tenant_id, segment, first_passage, end_passage, bucket_count)
        values (%(tenant)s, 1, 0, 1, 1);
        insert into app.posting_bucket (tenant_id, segment, bucket, body) values (%(tenant)s, 1, 0, '\\x00');
    """,
    "0017_vectors": """
        insert into app.embedding_model (tenant_id, id, key) values (%(tenant)s, 7, 'model');
        insert into app.text_vector (tenant_id, model_id, text_id, first_passage, vectors, signatures)
        values (%(tenant)s, 7, %(run)s, 0, '\\x00', '\\x00');
    """,
    "0021_providers": """
        insert into app.provider (tenant_id, name, litellm_provider, key_id, key_ciphertext, key_set_at)
        values (%(tenant)s, 'openai', 'openai', 'k1', '\\x00', clock_timestamp());
        insert into app.preset (tenant_id, name, engines, budget) values (%(tenant)s, 'fast', '{}', '{}');
    """,
    "0026_run_organization": """
        insert into app.run_tag (run_id, tag, tenant_id, position, run_created_at)
        select id, 'sea', tenant_id, 1, created_at from app.run where id = %(run)s;
        update app.run set title = 'Salt', pinned_at = now(), archived_at = now() where id = %(run)s;
    """,
    "0036_metric_totals": """
        insert into app.uncounted_run (run_id, tenant_id) values (%(rollout)s, %(tenant)s);
        insert into app.run_total select * from app.sum_runs(array[%(rollout)s]::uuid[]);
        insert into app.step_total values (%(tenant)s, 'note', 'note', 1, 0.5, 1, 0);
        insert into app.role_call_total
        values (%(tenant)s, 'planner', 'litellm', 'm', 100, 10, 0.25, 0, 0, 0, '{0}', 0, 0);
    """,
    "0040_ended_run_usage": """
        insert into app.ended_run_usage (run_id, tenant_id, cost_micros, work_ms) values (%(run)s, %(tenant)s, 5, 7);
    """,
    "0059_training_signals": """
        insert into app.answer_correction (id, tenant_id, run_id, answer, text_origin, given_by)
        values (%(run)s, %(tenant)s, %(run)s, 'Rivers', 'person', 'key');
        insert into app.run_training_consent (run_id, tenant_id, is_allowed, decided_by)
        values (%(run)s, %(tenant)s, true, 'key');
    """,
    "0060_task_origins": """
        insert into app.task_set (id, tenant_id, dataset, request, left_out, train_count, held_out_count, created_by)
        values (%(run)s, %(tenant)s, 'salt', '{}', '[]', 1, 0, 'key');
        insert into app.task_origin (task_id, tenant_id, task_set_id, run_id, split_run_id, signals)
        values (%(run)s, %(tenant)s, %(run)s, %(run)s, %(run)s, '[]');
    """,
    "0068_recorded_words": """
        insert into app.recorded_word (tenant_id, word, text_id) select tenant_id, 'salt', id from app.extracted_text;
    """,
    "0028_tool_policies": """
        insert into app.tool_policy (tenant_id, name, policy) values (%(tenant)s, 'sums', '{}');
    """,
    "0029_installation": """
        insert into app.worker_process (name, version, slots, runs) values ('host:1:a', '0.1.0', 200, 0);
    """,
    "0030_asking": """
        insert into app.question_preset (id, tenant_id, name, settings)
        values ('01980000-0000-7000-8000-00000000000c', %(tenant)s, 'Long work', '{"budget": {"max_turns": 256}}');
    """,
    "0034_share_links": """
        insert into app.report_share (id, tenant_id, run_id, report_version, token_sha256, shows_question, expires_at)
        values (%(run)s, %(tenant)s, %(run)s, 1, sha256('token'), true, now() + '30 days');
    """,
    "0035_notifications": """
        insert into app.webhook (id, tenant_id, address, events, key_id, secret_ciphertext)
        values (%(run)s, %(tenant)s, 'https://hooks.example/', array['run.done'], 'k1', '\\x05');
        insert into app.run_event (id, tenant_id, run_id, kind) values (%(run)s, %(tenant)s, %(run)s, 'run.done');
        insert into app.webhook_attempt (webhook_id, event_id, number, tenant_id, status, ms)
        values (%(run)s, %(run)s, 1, %(tenant)s, 503, 12);
    """,
    "0047_langgraph": """
        insert into app.langgraph_run (run_id, tenant_id, assistant_id, multitask, arguments)
        values (%(run)s, %(tenant)s, %(run)s, 'enqueue', '{"input": null}');
        insert into app.langgraph_thread (thread_id, tenant_id, metadata) values (%(run)s, %(tenant)s, '{"a": 1}');
        insert into app.assistant (id, tenant_id, version) values (%(run)s, %(tenant)s, 1);
        insert into app.assistant_version (assistant_id, version, tenant_id, graph, name)
        values (%(run)s, 1, %(tenant)s, 'counting', 'Mine');
    """,
    "0048_crons": """
        insert into app.cron (id, tenant_id, assistant_id, schedule, multitask, arguments, owner)
        values (%(run)s, %(tenant)s, %(run)s, '0 9 * * 1', 'enqueue', '{"input": null}', 'key:k');
        insert into app.run_webhook (run_id, tenant_id, address) values (%(run)s, %(tenant)s, 'https://hooks.example/');
    """,
}
"""Rows for every table, by the migration that creates it."""

LATER = """
    alter table app.run add column note text not null default '';
    create table app.run_note (run_id uuid primary key, tenant_id uuid not null, body text not null);
    select app.protect_table('app.run_note');
    insert into app.run_note (run_id, tenant_id, body) select id, tenant_id, question from app.run;
"""
"""What a later version might change."""

_serial = count(1)


@pytest.fixture
def empty(servers: ServerUrls) -> Iterator[ServerUrls]:
    """A database without any migration."""
    name = f"migrated{next(_serial)}"
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        owner.execute(f"create database {name}".encode())
        owner_url, app_url = at_database(servers.owner_url, name), at_database(servers.app_url, name)
        yield ServerUrls(owner_url, app_url, servers.redis_url)
        owner.execute(f"drop database {name} with (force)".encode())


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The migrations of a later version: those of today and one more."""
    for path in get_migrations_dir().glob("[0-9]*.sql"):
        shutil.copy(path, tmp_path)
    (tmp_path / "9000_notes.sql").write_text(LATER)
    return tmp_path


def populate(empty: ServerUrls) -> None:
    """Apply the baseline and add rows to each of its tables."""
    migrate(empty.owner_url, folder=get_migrations_dir())
    values = {"run": str(RUN), "rollout": str(ROLLOUT), "tenant": str(LOCAL_TENANT)}
    with psycopg.connect(empty.owner_url, cursor_factory=psycopg.ClientCursor) as connection:
        for statements in POPULATE.values():
            connection.execute(statements.encode(), values)


def content(url: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'app' order by 1").fetchall()
        return {
            t: [row for (row,) in connection.execute(f"select to_jsonb(x) from app.{t} x".encode())] for (t,) in tables
        }


def missing(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that are not among those that came later, whatever columns were added."""
    return [row for row in before if not any(row.items() <= new.items() for new in after)]


async def test_a_later_migration_keeps_a_populated_database_and_it_works(empty: ServerUrls, later: Path) -> None:
    populate(empty)
    before = content(empty.owner_url)
    assert migrate(empty.owner_url, folder=later) == ("9000_notes",)
    assert migrate(empty.owner_url, folder=later) == ()
    after = content(empty.owner_url)
    assert {table: missing(rows, after[table]) for table, rows in before.items() if missing(rows, after[table])} == {}
    assert {note["run_id"] for note in after["run_note"]} == {str(RUN), str(ROLLOUT)}
    await works(empty)


async def works(result: ServerUrls) -> None:
    """A run of before is claimed, kept and appended to by the application's role, which may use new tables."""
    heart = HeartbeatConnection(result.app_url)
    async with Database(result.app_url, max_connections=2) as database:
        claim = await claims.claim_run(database, RUN, "worker", TERM)
        assert claim is not None
        assert [request.run_id for request in heart.renew_leases([claim.fence], TERM)] == [RUN]
        heart.close()
        async with database.transaction(LOCAL_TENANT) as connection:
            await steps.append_steps(connection, claim.fence, TERM, [a_step()], UsageDelta(turns=1))
            assert [s.seq for s in await steps.list_steps_after(connection, RUN, 0, 10)] == [1, 2]
            seen = await connection.execute("select count(*) from run_note")
            assert await seen.fetchone() == (2,)


def test_there_is_no_way_back_from_a_later_migration(empty: ServerUrls, later: Path) -> None:
    populate(empty)
    migrate(empty.owner_url, folder=later)
    with pytest.raises(SchemaMismatchError, match="newer than this code: it has 9000_notes"):
        migrate(empty.owner_url, folder=get_migrations_dir())


def test_a_later_migration_that_was_changed_after_it_was_applied_is_rejected(empty: ServerUrls, later: Path) -> None:
    populate(empty)
    migrate(empty.owner_url, folder=later)
    before = content(empty.owner_url)
    (later / "9000_notes.sql").write_text(f"{LATER} -- changed")
    with pytest.raises(SchemaMismatchError, match="9000_notes was changed"):
        migrate(empty.owner_url, folder=later)
    assert content(empty.owner_url) == before


def test_a_database_of_before_the_baseline_is_rejected_and_says_what_to_do(empty: ServerUrls, tmp_path: Path) -> None:
    for name in ("0001_runs", "0002_library", "0003_reports"):
        (tmp_path / f"{name}.sql").write_text(
            "create schema if not exists app; create table if not exists app.tenant "
            "(id uuid primary key, name text, daily_spend_usd numeric, training_opt_in boolean);"
        )
    with psycopg.connect(empty.owner_url, autocommit=True) as connection:
        connection.execute(CREATE_MIGRATION_TABLE)
        for migration in load_migrations(tmp_path):
            connection.execute(migration.sql.encode())
            connection.execute(INSERT_MIGRATION, (migration.version, migration.sha256, 1))
    for refuse in (migrate, is_current):
        with pytest.raises(SchemaMismatchError, match=r"earlier version of Offing.*Set OFFING_HOME to a new directory"):
            refuse(empty.owner_url, folder=get_migrations_dir())
    assert list(content(empty.owner_url)) == ["tenant"]


def test_deleting_a_tenant_leaves_rows_of_no_table(empty: ServerUrls) -> None:
    populate(empty)
    with psycopg.connect(empty.owner_url) as connection:
        connection.execute("delete from app.tenant where id = %s", (LOCAL_TENANT,))
    left = {table: rows for table, rows in content(empty.owner_url).items() if rows}
    assert [t["name"] for t in left.pop("tenant")] == ["other"]
    assert len(left.pop("lease_watch")) == 1  # the platform's, and no tenant's
    assert len(left.pop("worker_process")) == 1  # likewise
    assert left == {}


def test_every_table_of_the_newest_version_has_rows_in_these_tests(empty: ServerUrls) -> None:
    populate(empty)
    assert [table for table, rows in content(empty.owner_url).items() if not rows] == []


def test_migrating_again_changes_nothing(empty: ServerUrls) -> None:
    assert migrate(empty.owner_url, folder=get_migrations_dir()) == VERSIONS
    assert migrate(empty.owner_url, folder=get_migrations_dir()) == ()
    assert is_current(empty.owner_url, get_migrations_dir())


def test_a_migration_that_fails_leaves_the_version_before(empty: ServerUrls, later: Path) -> None:
    migrate(empty.owner_url, folder=get_migrations_dir())
    (later / "9000_notes.sql").write_text("create table app.half (id uuid); select broken;")
    with pytest.raises(psycopg.Error):
        migrate(empty.owner_url, folder=later)
    assert is_current(empty.owner_url, get_migrations_dir())
    assert "half" not in content(empty.owner_url)


def test_the_applications_role_owns_nothing_and_passes_no_row_security(empty: ServerUrls) -> None:
    migrate(empty.owner_url, folder=get_migrations_dir())
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

"""Database access for backups.

The functions describe a database, find out whether it is empty, and restore what a dump does not
contain. They run as the owner of the tables, who sees the rows of all tenants through a row
security policy.
"""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from offing.storage.migrate import CREATE_MIGRATION_TABLE, LIST_APPLIED

SERVER_VERSION = "select current_setting('server_version_num')::int / 10000"

LIST_MIGRATION_ROWS = "select version, sha256, applied_at, ms from public.offing_migration order by version"

INSERT_MIGRATION_ROW = "insert into public.offing_migration (version, sha256, applied_at, ms) values (%s, %s, %s, %s)"

LIST_TABLES = """
    select relname from pg_class where relnamespace = to_regnamespace('app') and relkind in ('r', 'p') order by relname
"""

LIST_POLICIES = """
    select tablename, policyname, roles = '{public}', qual, with_check from pg_policies
     where schemaname = 'app' order by 1, 2
"""

COUNT_CONNECTIONS = """
    select count(*) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()
       and usesysid is not null and coalesce(backend_type, 'client backend') = 'client backend'
"""
"""An owner without special privileges cannot see `backend_type` of other roles' connections.
Autovacuum has no role.
"""

RELEASE_CLAIMS = (
    "update app.run set lease_until = null where status = 'running'",
    "update app.training_job set lease_until = null where state = 'running'",
)
"""Claims of runs and jobs at the time of the backup do not exist any more."""

BEGIN_SNAPSHOT = (
    "set transaction isolation level repeatable read, read only",
    "set local idle_in_transaction_session_timeout = 0",  # a dump may take long
)

LIST_WEIGHTS = """
    select name || '@' || version, uri, state in ('retired', 'blocked') from app.policy_version
     where kind <> 'prompt_library' order by name, version
"""
"""Prompt libraries have no folder: their text is in the database."""

LIST_CHECKPOINTS = """
    select id, checkpoint, last_good_step, state = 'failed' from app.training_job
     where checkpoint <> '' and state not in ('done', 'cancelled') order by id
"""
"""Checkpoints of jobs that can continue. A failed job continues when a person resumes it."""

RELOCATE_FOLDERS = (
    ("policies", "update app.policy_version set uri = %s || substr(uri, %s) where starts_with(uri, %s)"),
    (
        "training",
        "update app.training_job set checkpoint = %s || substr(checkpoint, %s) where starts_with(checkpoint, %s)",
    ),
)
"""By folder of a backup: the statement that changes the paths below it."""

RELOCATE_PATH = (
    "update app.policy_version set uri = %s where uri = %s",
    "update app.training_job set checkpoint = %s where checkpoint = %s",
)

INITIAL_TABLES = ("lease_watch", "login", "session", "tenant", "worker_process")
"""Tables that already contain rows in a new installation."""


@dataclass(frozen=True, slots=True)
class RowSecurityPolicy:
    """A row security policy. After a restore, the owner's role may have another name."""

    table: str
    name: str
    is_public: bool
    """If false, the policy applies to the owner only."""
    using: str | None
    check: str | None


@dataclass(frozen=True, slots=True)
class PolicyWeights:
    """A policy version with weights."""

    label: str
    uri: str
    """Folder of the weights."""
    is_unused: bool
    """Retired or blocked: no new run gets the version."""


@dataclass(frozen=True, slots=True)
class JobCheckpoint:
    """The checkpoint from which a training job continues."""

    job_id: UUID
    folder: str
    """Folder of the checkpoint."""
    last_good_step: int
    """The training step to which the job returns when a guard finds a violation."""
    has_failed: bool
    """The job continues only when a person resumes it."""


@dataclass(frozen=True, slots=True)
class DatabaseSnapshot:
    """Files outside the database that one snapshot of it refers to."""

    snapshot_name: str
    """Name of the snapshot, for `pg_dump`."""
    weights: list[PolicyWeights]
    checkpoints: list[JobCheckpoint]


@dataclass(frozen=True, slots=True)
class RelocatedPaths:
    """Old and new paths of the files in a backup."""

    folders: Mapping[str, tuple[str, str]]
    """Old and new folder, by name in the backup."""
    paths: Mapping[str, str]
    """Old and new path of rows whose files were not below such a folder under its own name."""


@dataclass(frozen=True, slots=True)
class DatabaseDescription:
    """The properties of a database that its dump does not contain."""

    postgres_version: int
    """Major version of Postgres."""
    migrations: list[tuple[str, str, datetime, int]]
    """Applied migrations: version, SHA-256, time and duration in milliseconds."""
    policies: list[RowSecurityPolicy]


def describe_database(owner_url: str) -> DatabaseDescription:
    """Return what must be restored in addition to the dump of a database."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(CREATE_MIGRATION_TABLE)
        return DatabaseDescription(
            get_server_version(connection),
            [tuple(row) for row in connection.execute(LIST_MIGRATION_ROWS)],
            [RowSecurityPolicy(*row) for row in connection.execute(LIST_POLICIES)],
        )


def get_server_version(connection: psycopg.Connection) -> int:
    row = connection.execute(SERVER_VERSION).fetchone()
    assert row is not None
    return int(row[0])


def get_major_version(owner_url: str) -> int:
    """Return the major version of the server."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        return get_server_version(connection)


def list_applied_migrations(owner_url: str) -> dict[str, str]:
    """Return the SHA-256 of each migration that was applied."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(CREATE_MIGRATION_TABLE)
        return dict(connection.execute(LIST_APPLIED).fetchall())


def find_used_table(owner_url: str) -> str | None:
    """Return a table that contains user data. `None` means that nothing would be lost."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        for (table,) in connection.execute(LIST_TABLES).fetchall():
            query = sql.SQL("select exists (select from app.{})").format(sql.Identifier(table))
            row = connection.execute(query).fetchone()
            if table not in INITIAL_TABLES and row is not None and row[0]:
                return str(table)
    return None


def count_other_connections(owner_url: str, timeout_seconds: float = 5) -> int:
    """Return how many other connections the database has.

    Wait up to `timeout_seconds` until there are none. A server lists a connection for a moment
    after its client has closed it, including those of this process.
    """
    deadline = time.monotonic() + timeout_seconds
    with psycopg.connect(owner_url, autocommit=True) as connection:
        while True:
            row = connection.execute(COUNT_CONNECTIONS).fetchone()
            if row is None or not row[0] or time.monotonic() > deadline:
                return int(row[0]) if row else 0
            time.sleep(0.05)


def drop_schema(owner_url: str) -> None:
    """Drop the schema of an installation without data."""
    with psycopg.connect(owner_url, autocommit=True) as connection, connection.transaction():
        connection.execute("drop schema if exists app cascade")
        connection.execute("drop table if exists public.offing_migration")


@contextmanager
def open_snapshot(owner_url: str) -> Generator[DatabaseSnapshot]:
    """Open a snapshot of the database. Other connections can use it until the block ends."""
    with psycopg.connect(owner_url) as connection:
        for statement in BEGIN_SNAPSHOT:
            connection.execute(statement)
        row = connection.execute("select pg_export_snapshot()").fetchone()
        assert row is not None
        weights = [PolicyWeights(*columns) for columns in connection.execute(LIST_WEIGHTS)]
        yield DatabaseSnapshot(
            row[0], weights, [JobCheckpoint(*columns) for columns in connection.execute(LIST_CHECKPOINTS)]
        )


def complete_restore(owner_url: str, description: DatabaseDescription, relocated: RelocatedPaths) -> None:
    """Complete a restored database.

    Create its row security policies for this owner, store its migrations and the new paths of
    its files, and release its claims.
    """
    with psycopg.connect(owner_url, autocommit=True) as connection, connection.transaction():
        for policy in description.policies:
            connection.execute(_create_policy_statement(policy))
        connection.execute(CREATE_MIGRATION_TABLE)
        for row in description.migrations:
            connection.execute(INSERT_MIGRATION_ROW, row)
        # the trigger rejects changes of paths
        connection.execute("alter table app.policy_version disable trigger user")
        _relocate_paths(connection, relocated)
        connection.execute("alter table app.policy_version enable trigger user")
        for statement in RELEASE_CLAIMS:
            connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _relocate_paths(connection: psycopg.Connection, relocated: RelocatedPaths) -> None:
    for folder, statement in RELOCATE_FOLDERS:
        if folder in relocated.folders:
            before, now = relocated.folders[folder]
            connection.execute(statement.encode(), (now, len(before) + 1, f"{before}/"))
    for before, now in relocated.paths.items():
        for statement in RELOCATE_PATH:
            connection.execute(statement.encode(), (now, before))


def _create_policy_statement(policy: RowSecurityPolicy) -> sql.Composed:
    parts = [
        sql.SQL("create policy {} on app.{} to {}").format(
            sql.Identifier(policy.name),
            sql.Identifier(policy.table),
            sql.SQL("public" if policy.is_public else "current_user"),
        )
    ]
    for word, expression in (("using", policy.using), ("with check", policy.check)):
        if expression is not None:
            parts.append(sql.SQL(" {} ({})").format(sql.SQL(word), sql.SQL(expression)))  # pyright: ignore[reportArgumentType]
    return sql.Composed(parts)


def split_password(url: str) -> tuple[str, str | None]:
    """Split a URL into a URL without password and the password.

    The first may appear in a list of processes.
    """
    parameters: dict[str, Any] = conninfo_to_dict(url)
    password = parameters.pop("password", None)
    return make_conninfo(**parameters), password

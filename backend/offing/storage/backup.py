"""What a backup needs of the database: what it is, whether it is empty, and what a dump of it does not carry over.

Runs as the owner of the tables, who sees the rows of every tenant through a policy of its own. Knows no file.
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

from offing.storage.migrate import APPLIED, LEDGER

SERVER = "select current_setting('server_version_num')::int / 10000"

LEDGER_ROWS = "select version, sha256, applied_at, ms from public.offing_migration order by version"

ADD_LEDGER = "insert into public.offing_migration (version, sha256, applied_at, ms) values (%s, %s, %s, %s)"

TABLES = """
    select relname from pg_class where relnamespace = to_regnamespace('app') and relkind in ('r', 'p') order by relname
"""

POLICIES = """
    select tablename, policyname, roles = '{public}', qual, with_check from pg_policies
     where schemaname = 'app' order by 1, 2
"""

CONNECTED = """
    select count(*) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()
       and usesysid is not null and coalesce(backend_type, 'client backend') = 'client backend'
"""
"""An owner without special rights sees no `backend_type` of other roles' connections. Autovacuum has no role."""

RELEASE = (
    "update app.run set lease_until = null where status = 'running'",
    "update app.train_job set lease_until = null where state = 'running'",
)
"""Nobody who held a run or a job when the backup was made still does."""

SEEN = (
    "set transaction isolation level repeatable read, read only",
    "set local idle_in_transaction_session_timeout = 0",  # a dump may take long
)

WEIGHTS = """
    select name || '@' || version, uri, state in ('retired', 'bad') from app.policy_version
     where kind <> 'prompts' order by name, version
"""
"""The texts of a prompt library are in the database."""

CHECKPOINTS = """
    select id, checkpoint, good_step, state = 'failed' from app.train_job
     where checkpoint <> '' and state not in ('done', 'cancelled') order by id
"""
"""Of jobs that can go on. One that failed does when a person resumes it."""

MOVES = (
    ("policies", "update app.policy_version set uri = %s || substr(uri, %s) where starts_with(uri, %s)"),
    (
        "training",
        "update app.train_job set checkpoint = %s || substr(checkpoint, %s) where starts_with(checkpoint, %s)",
    ),
)
"""By folder of a backup: what changes the addresses below it."""

MOVE_ONE = (
    "update app.policy_version set uri = %s where uri = %s",
    "update app.train_job set checkpoint = %s where checkpoint = %s",
)

UNSEEN = ("lease_watch", "login", "session", "tenant")
"""Tables that an installation has rows in before anything was done with it."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of row-level security. Its owner's role may have another name where it is restored."""

    table: str
    name: str
    everybody: bool
    """False: for the owner alone."""
    using: str | None
    check: str | None


@dataclass(frozen=True, slots=True)
class Weights:
    """A policy version with weights."""

    label: str
    uri: str
    """Their folder."""
    unused: bool
    """Retired or bad: no new run gets it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a training job goes on from."""

    job: UUID
    address: str
    """Its folder."""
    good_step: int
    """The step that the job goes back to when its guards find something."""
    failed: bool
    """The job goes on only when a person resumes it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one view of the database names outside of it."""

    snapshot: str
    """Name of the view, for `pg_dump`."""
    weights: list[Weights]
    checkpoints: list[Checkpoint]


@dataclass(frozen=True, slots=True)
class Moved:
    """Where folders lay that came with a backup, and where they lie now."""

    folders: Mapping[str, tuple[str, str]]
    """By name in the backup."""
    addresses: Mapping[str, str]
    """Those of rows that did not lie below such a folder under its own name."""


@dataclass(frozen=True, slots=True)
class Described:
    """A database as its dump does not tell it."""

    server: int
    """Postgres' major version."""
    ledger: list[tuple[str, str, datetime, int]]
    """Migrations that were applied: version, SHA-256, when, milliseconds."""
    policies: list[Policy]


def describe(owner_url: str) -> Described:
    """Return what a restored database must get besides its dump."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(LEDGER)
        return Described(
            server_version(connection),
            [tuple(row) for row in connection.execute(LEDGER_ROWS)],
            [Policy(*row) for row in connection.execute(POLICIES)],
        )


def server_version(connection: psycopg.Connection) -> int:
    row = connection.execute(SERVER).fetchone()
    assert row is not None
    return int(row[0])


def major_of(owner_url: str) -> int:
    """Return the major version of the server."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        return server_version(connection)


def applied(owner_url: str) -> dict[str, str]:
    """Return the SHA-256 of each migration that was applied."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(LEDGER)
        return dict(connection.execute(APPLIED).fetchall())


def find_contents(owner_url: str) -> str | None:
    """Return a table that holds something of a user's. `None` means that nothing would be lost."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            query = sql.SQL("select exists (select from app.{})").format(sql.Identifier(table))
            row = connection.execute(query).fetchone()
            if table not in UNSEEN and row is not None and row[0]:
                return str(table)
    return None


def others_connected(owner_url: str, patience: float = 5) -> int:
    """Return how many other connections the database still has after `patience` seconds, or 0 as soon as it has none.

    A server lists a connection for a moment after its client has closed it, one of this process included.
    """
    deadline = time.monotonic() + patience
    with psycopg.connect(owner_url, autocommit=True) as connection:
        while True:
            row = connection.execute(CONNECTED).fetchone()
            if row is None or not row[0] or time.monotonic() > deadline:
                return int(row[0]) if row else 0
            time.sleep(0.05)


def clear(owner_url: str) -> None:
    """Remove the schema of an installation that holds nothing."""
    with psycopg.connect(owner_url, autocommit=True) as connection, connection.transaction():
        connection.execute("drop schema if exists app cascade")
        connection.execute("drop table if exists public.offing_migration")


@contextmanager
def seen(owner_url: str) -> Generator[Seen]:
    """A view of the database, which is kept for others to use until the block ends."""
    with psycopg.connect(owner_url) as connection:
        for statement in SEEN:
            connection.execute(statement)
        row = connection.execute("select pg_export_snapshot()").fetchone()
        assert row is not None
        weights = [Weights(*found) for found in connection.execute(WEIGHTS)]
        yield Seen(row[0], weights, [Checkpoint(*found) for found in connection.execute(CHECKPOINTS)])


def complete(owner_url: str, described: Described, moved: Moved) -> None:
    """Make a restored database whole: its policies for this owner, its ledger, where its files lie now, and its runs
    free to be claimed."""
    with psycopg.connect(owner_url, autocommit=True) as connection, connection.transaction():
        for policy in described.policies:
            connection.execute(_policy(policy))
        connection.execute(LEDGER)
        for row in described.ledger:
            connection.execute(ADD_LEDGER, row)
        connection.execute("alter table app.policy_version disable trigger user")  # it keeps addresses as they are
        _move(connection, moved)
        connection.execute("alter table app.policy_version enable trigger user")
        for statement in RELEASE:
            connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _move(connection: psycopg.Connection, moved: Moved) -> None:
    for folder, statement in MOVES:
        if folder in moved.folders:
            before, now = moved.folders[folder]
            connection.execute(statement.encode(), (now, len(before) + 1, f"{before}/"))
    for before, now in moved.addresses.items():
        for statement in MOVE_ONE:
            connection.execute(statement.encode(), (now, before))


def _policy(policy: Policy) -> sql.Composed:
    parts = [
        sql.SQL("create policy {} on app.{} to {}").format(
            sql.Identifier(policy.name),
            sql.Identifier(policy.table),
            sql.SQL("public" if policy.everybody else "current_user"),
        )
    ]
    for word, expression in (("using", policy.using), ("with check", policy.check)):
        if expression is not None:
            parts.append(sql.SQL(" {} ({})").format(sql.SQL(word), sql.SQL(expression)))  # pyright: ignore[reportArgumentType]
    return sql.Composed(parts)


def without_password(url: str) -> tuple[str, str | None]:
    """Return an address that may stand in a list of processes, and the password that was in it."""
    known: dict[str, Any] = conninfo_to_dict(url)
    password = known.pop("password", None)
    return make_conninfo(**known), password

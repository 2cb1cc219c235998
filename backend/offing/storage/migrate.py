"""Brings a database to the version of this code: numbered SQL files, forward only, each in one transaction.

The only home of schema changes and of the application's role. Runs as the owner; nothing else does.
"""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg
from psycopg import sql

from offing.core.errors import OffingError

LOCAL_TENANT = UUID("00000000-0000-7000-8000-000000000001")
"""The tenant of a self-hosted installation until others are made."""

LOCK = 0x0FF1_16
"""Key of the advisory lock that one migrating process holds."""

LEDGER = """
    create table if not exists public.offing_migration (
      version text primary key, sha256 text not null, applied_at timestamptz not null default clock_timestamp(),
      ms integer not null)
"""

APPLIED = "select version, sha256 from public.offing_migration"

NOTE = "insert into public.offing_migration (version, sha256, ms) values (%s, %s, %s)"

ROLE_EXISTS = "select 1 from pg_roles where rolname = %s"

ADD_LOCAL_TENANT = "insert into app.tenant (id, name) values (%s, 'local') on conflict do nothing"

SETTLE_NAMES = """
    do $$
    declare
      called regprocedure;
    begin
      for called in
        select oid from pg_proc
         where pronamespace = 'app'::regnamespace and (prosecdef or prorettype = 'trigger'::regtype)
           and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, app, pg_temp']
      loop
        execute format('alter function %s set search_path = pg_catalog, app, pg_temp', called);
      end loop;
    end $$
"""
"""Functions that run as the owner look names up where only the owner can put them, whichever migration made them."""


class SchemaMismatch(OffingError):
    """A migration that this database has applied is not the one in this version of the code."""

    code = "schema_mismatch"


@dataclass(frozen=True, slots=True)
class Migration:
    version: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations_in(folder: Path) -> tuple[Migration, ...]:
    """The files of a folder in order of their numbers."""
    return tuple(Migration(path.stem, path.read_text()) for path in sorted(folder.glob("[0-9]*.sql")))


def migrate(
    owner_url: str, *, folder: Path, app_role: str = "offing_app", app_password: str | None = None
) -> tuple[str, ...]:
    """Apply what is missing; the versions applied, empty when there was nothing to do. Safe to run at once from many.

    `app_password` None: the role has none, for servers whose socket is private to us.
    """
    with psycopg.connect(owner_url, autocommit=True) as connection:
        _lock(connection)
        connection.execute(LEDGER)
        _ensure_role(connection, app_role, app_password)
        pending = _pending(connection, migrations_in(folder))
        for migration in pending:
            _apply(connection, migration)
        connection.execute(SETTLE_NAMES)
        _grant(connection, app_role)
        connection.execute(ADD_LOCAL_TENANT, (LOCAL_TENANT,))
        return tuple(m.version for m in pending)


def is_current(url: str, folder: Path) -> bool:
    """Whether every migration of the folder is applied, unchanged."""
    with psycopg.connect(url, autocommit=True) as connection:
        return not _pending(connection, migrations_in(folder))


def _lock(connection: psycopg.Connection) -> None:
    # Polled: a session waiting inside pg_advisory_lock holds a snapshot that `create index concurrently` waits for.
    while connection.execute("select pg_try_advisory_lock(%s)", (LOCK,)).fetchone() != (True,):
        time.sleep(0.05)


def _pending(connection: psycopg.Connection, known: tuple[Migration, ...]) -> tuple[Migration, ...]:
    applied = dict(connection.execute(APPLIED).fetchall())
    for migration in known:
        if applied.get(migration.version, migration.sha256) != migration.sha256:
            raise SchemaMismatch(f"{migration.version} was changed after it was applied; add a new migration instead.")
    newer = set(applied) - {m.version for m in known}
    if newer:
        raise SchemaMismatch(f"The database is newer than this code: it has {', '.join(sorted(newer))}.")
    return tuple(m for m in known if m.version not in applied)


def _apply(connection: psycopg.Connection, migration: Migration) -> None:
    began = time.monotonic()
    with connection.transaction():
        connection.execute(migration.text.encode())
        ms = int((time.monotonic() - began) * 1000)
        connection.execute(NOTE, (migration.version, migration.sha256, ms))


def _ensure_role(connection: psycopg.Connection, role: str, password: str | None) -> None:
    name = sql.Identifier(role)
    if connection.execute(ROLE_EXISTS, (role,)).fetchone() is None:
        connection.execute(sql.SQL("create role {} login nosuperuser nobypassrls nocreatedb nocreaterole").format(name))
    if password is not None:
        connection.execute(sql.SQL("alter role {} password {}").format(name, sql.Literal(password)))


def _grant(connection: psycopg.Connection, role: str) -> None:
    name = sql.Identifier(role)
    for statement in (
        "grant usage on schema app to {}",
        "grant select, insert, update, delete on all tables in schema app to {}",
        "grant usage on all sequences in schema app to {}",
        "revoke execute on all functions in schema app from public",
        "grant execute on all functions in schema app to {}",
        "grant select on public.offing_migration to {}",
        "revoke insert, update, delete on app.tenant from {}",
        "grant update (daily_spend_usd, training_opt_in) on app.tenant to {}",
        "revoke update, delete on app.step from {}",
        "grant update (payload, title, detail) on app.step to {}",
    ):
        connection.execute(sql.SQL(statement).format(name))  # "{}" is the role, where the statement names it

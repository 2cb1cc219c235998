"""Migration of a database to the schema of this code.

Migrations are numbered SQL files, forward only, each applied in one transaction. The first files
are the baseline of the schema; a later change is a new file. A database that was created before
the baseline is rejected. Migrations also create the application's role. They run as the owner of
the database.
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
"""The tenant of a self-hosted installation, as long as no other tenants are created."""

LOCK_KEY = 0x0FF1_16
"""Key of the advisory lock that a migrating process holds."""

CREATE_MIGRATION_TABLE = """
    create table if not exists public.offing_migration (
      version text primary key, sha256 text not null, applied_at timestamptz not null default clock_timestamp(),
      ms integer not null)
"""

LIST_APPLIED = "select version, sha256 from public.offing_migration"

INSERT_MIGRATION = "insert into public.offing_migration (version, sha256, ms) values (%s, %s, %s)"

ROLE_EXISTS = "select 1 from pg_roles where rolname = %s"

ADD_LOCAL_TENANT = "insert into app.tenant (id, name) values (%s, 'local') on conflict do nothing"

SET_SEARCH_PATHS = """
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
"""Functions that run with the owner's rights get a search path to which only the owner can add
objects, in all migrations.
"""


BEFORE_BASELINE = (
    "The database was created by an earlier version of Offing, whose schema this version cannot upgrade. "
    "Set OFFING_HOME to a new directory, or DATABASE_URL to an empty database. "
    "To use the old data, run the version of Offing that created it."
)


class SchemaMismatchError(OffingError):
    """The database contains a migration that differs from the one in this version of the code."""

    code = "schema_mismatch"


@dataclass(frozen=True, slots=True)
class Migration:
    version: str
    sql: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations(folder: Path) -> tuple[Migration, ...]:
    """Return the migrations of a folder in the order of their numbers."""
    return tuple(Migration(path.stem, path.read_text()) for path in sorted(folder.glob("[0-9]*.sql")))


def migrate(
    owner_url: str, *, folder: Path, app_role: str = "offing_app", app_password: str | None = None
) -> tuple[str, ...]:
    """Apply the missing migrations and return their versions, empty if there are none.

    Several processes may call it at once. If `app_password` is `None`, the role gets no
    password. This is meant for servers with a private socket.
    """
    with psycopg.connect(owner_url, autocommit=True) as connection:
        _acquire_lock(connection)
        connection.execute(CREATE_MIGRATION_TABLE)
        pending = _list_pending(connection, load_migrations(folder))
        _ensure_role(connection, app_role, app_password)
        for migration in pending:
            _apply(connection, migration)
        connection.execute(SET_SEARCH_PATHS)
        _grant_privileges(connection, app_role)
        connection.execute(ADD_LOCAL_TENANT, (LOCAL_TENANT,))
        return tuple(m.version for m in pending)


def is_current(url: str, folder: Path) -> bool:
    """Return whether all migrations of the folder are applied and unchanged."""
    with psycopg.connect(url, autocommit=True) as connection:
        return not _list_pending(connection, load_migrations(folder))


def _acquire_lock(connection: psycopg.Connection) -> None:
    # Poll: a waiter in pg_advisory_lock holds a snapshot that `create index concurrently` awaits.
    while connection.execute("select pg_try_advisory_lock(%s)", (LOCK_KEY,)).fetchone() != (True,):
        time.sleep(0.05)


def _list_pending(connection: psycopg.Connection, migrations: tuple[Migration, ...]) -> tuple[Migration, ...]:
    applied = dict(connection.execute(LIST_APPLIED).fetchall())
    if applied and migrations and migrations[0].version not in applied:
        raise SchemaMismatchError(BEFORE_BASELINE)
    for migration in migrations:
        if applied.get(migration.version, migration.sha256) != migration.sha256:
            raise SchemaMismatchError(
                f"{migration.version} was changed after it was applied; add a new migration instead."
            )
    newer = set(applied) - {m.version for m in migrations}
    if newer:
        raise SchemaMismatchError(f"The database is newer than this code: it has {', '.join(sorted(newer))}.")
    return tuple(m for m in migrations if m.version not in applied)


def _apply(connection: psycopg.Connection, migration: Migration) -> None:
    began = time.monotonic()
    with connection.transaction():
        connection.execute(migration.sql.encode())
        ms = int((time.monotonic() - began) * 1000)
        connection.execute(INSERT_MIGRATION, (migration.version, migration.sha256, ms))


def _ensure_role(connection: psycopg.Connection, role: str, password: str | None) -> None:
    name = sql.Identifier(role)
    if connection.execute(ROLE_EXISTS, (role,)).fetchone() is None:
        connection.execute(sql.SQL("create role {} login nosuperuser nobypassrls nocreatedb nocreaterole").format(name))
    if password is not None:
        connection.execute(sql.SQL("alter role {} password {}").format(name, sql.Literal(password)))


TENANT_SETTINGS = ("max_daily_spend_usd", "training_opt_in", "default_preset")
"""Columns of a tenant that the application may change."""


def _list_tenant_settings(connection: psycopg.Connection) -> list[str]:
    """Return those of the columns that the database has. One of an earlier version lacks some."""
    query = "select attname from pg_attribute where attrelid = 'app.tenant'::regclass and attname = any(%s)"
    return [name for (name,) in connection.execute(query, (list(TENANT_SETTINGS),))]


def _grant_privileges(connection: psycopg.Connection, role: str) -> None:
    name = sql.Identifier(role)
    for statement in (
        "grant usage on schema app to {}",
        "grant select, insert, update, delete on all tables in schema app to {}",
        "grant usage on all sequences in schema app to {}",
        "revoke execute on all functions in schema app from public",
        "grant execute on all functions in schema app to {}",
        "grant select on public.offing_migration to {}",
        "revoke insert, update, delete on app.tenant from {}",
        "revoke update, delete on app.step from {}",
        "grant update (payload, title, detail) on app.step to {}",
    ):
        connection.execute(sql.SQL(statement).format(name))  # "{}" is the role, where the statement names it
    settings = sql.SQL(", ").join(map(sql.Identifier, _list_tenant_settings(connection)))
    connection.execute(sql.SQL("grant update ({}) on app.tenant to {}").format(settings, name))

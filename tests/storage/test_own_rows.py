"""No row refers to another tenant's row, and no session's own tables stand in for ours.

Both walk the catalog, so that a table or a function that is added tomorrow is held to it, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from offing.clock import new_id
from offing.storage.migrate import LOCAL_TENANT

FOREIGN_KEYS = """
    select k.conrelid::regclass::text, k.conname, k.confrelid::regclass::text,
           (select array_agg(a.attname order by n) from unnest(k.conkey) with ordinality as c(at, n)
              join pg_attribute a on a.attrelid = k.conrelid and a.attnum = c.at),
           (select array_agg(a.attname order by n) from unnest(k.confkey) with ordinality as c(at, n)
              join pg_attribute a on a.attrelid = k.confrelid and a.attnum = c.at)
      from pg_constraint k
     where k.contype = 'f' and k.connamespace = 'app'::regnamespace and k.confrelid <> 'app.tenant'::regclass
     order by 1, 2
"""

COLUMNS = """
    select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef, a.attgenerated <> ''
      from pg_attribute a where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped
"""

CHECKS = "select conname from pg_constraint where conrelid = %s::regclass and contype = 'c'"

TABLES = "select relname from pg_class where relnamespace = 'app'::regnamespace and relkind in ('r', 'p')"

RUN_AS_OWNER = """
    select oid::regprocedure::text, coalesce(proconfig, '{}') from pg_proc
     where pronamespace = 'app'::regnamespace and (prosecdef or prorettype = 'trigger'::regtype)
"""

VALUES = {
    "uuid": lambda: new_id(),
    "bytea": lambda: b"x" * 32,
    "boolean": lambda: True,
    "jsonb": lambda: "{}",
    "text": lambda: str(new_id()),
}
"""Values that a column of a type takes. Others take 1, or now."""


@dataclass(frozen=True, slots=True)
class Key:
    """A foreign key: its table, its name, what it refers to, and both sides' columns in order."""

    table: str
    name: str
    parent: str
    columns: list[str]
    referred: list[str]


@pytest.fixture
def owner(owner_url: str) -> Iterator[psycopg.Connection]:
    """A superuser's connection on which nothing but foreign keys is checked."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def app(app_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(app_url, autocommit=True) as connection:
        yield connection


def keys(connection: psycopg.Connection) -> list[Key]:
    return [Key(*row) for row in connection.execute(FOREIGN_KEYS)]


def _value(kind: str) -> object:
    if kind.endswith("[]"):
        return []
    if kind.startswith(("timestamp", "date")):
        return "2026-01-01"
    make = VALUES.get(kind)
    return 1 if make is None else make()


def _row(connection: psycopg.Connection, table: str, tenant_id: UUID) -> dict[str, object]:
    """A row of the tenant's that has everything that the table insists on, and random ids."""
    columns = connection.execute(COLUMNS, (table,)).fetchall()
    row = {
        name: _value(kind) for name, kind, needed, inputs, created in columns if needed and not inputs and not created
    }
    return row | {"tenant_id": tenant_id}


def _insert(connection: psycopg.Connection, table: str, row: dict[str, object]) -> None:
    statement = sql.SQL("insert into {} ({}) values ({})").format(
        sql.Identifier(*table.split(".")),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder() * len(row)),
    )
    connection.execute(statement, list(row.values()))


def _without_checks(connection: psycopg.Connection, *tables: str) -> None:
    """Leaves foreign keys and row-level security as all that may reject a row."""
    for table in tables:
        for (name,) in connection.execute(CHECKS, (table,)).fetchall():
            connection.execute(
                sql.SQL("alter table {} drop constraint {}").format(
                    sql.Identifier(*table.split(".")), sql.Identifier(name)
                )
            )


def test_every_foreign_key_between_tables_of_tenants_carries_the_tenant(owner: psycopg.Connection) -> None:
    result = keys(owner)
    assert len(result) > 40
    assert [key for key in result if "tenant_id" not in key.columns or "tenant_id" not in key.referred] == []


def test_no_foreign_key_accepts_the_row_of_another_tenant(owner: psycopg.Connection) -> None:
    theirs = new_id()
    owner.execute("insert into app.tenant (id, name) values (%s, 'other')", (theirs,))
    result = keys(owner)
    _without_checks(owner, *{key.table for key in result}, *{key.parent for key in result})
    for key in result:
        with owner.transaction(force_rollback=True):
            owner.execute("set local session_replication_role = replica")  # the parent's own parents need not exist
            parent = _row(owner, key.parent, theirs)
            _insert(owner, key.parent, parent)
            owner.execute("set local session_replication_role = origin")
            values = {
                column: parent[referred]
                for column, referred in zip(key.columns, key.referred, strict=True)
                if column != "tenant_id"
            }
            _only(owner, key)
            owner.execute("set local role offing_app")
            owner.execute("select set_config('app.tenant', %s, true)", (str(LOCAL_TENANT),))
            with pytest.raises(psycopg.errors.ForeignKeyViolation) as error, owner.transaction():
                _insert(owner, key.table, _row(owner, key.table, LOCAL_TENANT) | values)
            assert error.value.diag.constraint_name == key.name
            owner.execute("select set_config('app.tenant', %s, true)", (str(theirs),))
            _insert(owner, key.table, _row(owner, key.table, theirs) | values)  # its own tenant may


def _only(connection: psycopg.Connection, key: Key) -> None:
    """Leaves the table this foreign key and no other, so that a rejection is its own."""
    for other in keys(connection):
        if other.table == key.table and other.name != key.name:
            connection.execute(
                sql.SQL("alter table {} drop constraint {}").format(
                    sql.Identifier(*key.table.split(".")), sql.Identifier(other.name)
                )
            )


def test_every_function_that_runs_as_the_owner_looks_through_temporary_names_last(owner: psycopg.Connection) -> None:
    rows = owner.execute(RUN_AS_OWNER).fetchall()
    assert len(rows) > 12
    assert [name for name, config in rows if "search_path=pg_catalog, app, pg_temp" not in config] == []


def test_a_temporary_table_is_not_taken_for_one_of_ours(owner: psycopg.Connection, app: psycopg.Connection) -> None:
    owner.execute("""
        create function app.probe() returns bigint language sql security definer set search_path = pg_catalog, app as
          $$ select count(*) from session $$""")
    forge(owner, app)
    assert app.execute("select app.probe()").fetchone() == (1,)  # the attack works on a path that does not name pg_temp
    owner.execute("alter function app.probe() set search_path = pg_catalog, app, pg_temp")
    assert app.execute("select app.probe()").fetchone() == (0,)
    assert app.execute("select * from app.find_session('forged')").fetchall() == []
    assert app.execute("select app.redeem_login_link('forged')").fetchone() == (None,)
    assert app.execute("select app.authenticate_api_key('forged', 'forged')").fetchone() == (None,)
    assert app.execute("select * from app.claim_run(%s, 'me', '1 minute')", (LOCAL_TENANT,)).fetchall() == []


def forge(owner: psycopg.Connection, app: psycopg.Connection) -> None:
    """A table of the session's own for each of ours, with a row where that opens a door, and types of usual names."""
    for (table,) in owner.execute(TABLES).fetchall():
        app.execute(sql.SQL("create temp table {} (like app.{})").format(*[sql.Identifier(table)] * 2))
        app.execute(sql.SQL("grant all on pg_temp.{} to public").format(sql.Identifier(table)))
    app.execute("""
        insert into pg_temp.session (token_sha256, tenant_id, csrf_token, created_at, expires_at)
        values ('forged', %s, 'x', now(), 'infinity')""", (LOCAL_TENANT,))  # fmt: skip
    for name in ("uuid", "text", "interval", "bytea", "timestamptz"):
        app.execute(sql.SQL("create domain pg_temp.{} as pg_catalog.int4 check (false)").format(sql.Identifier(name)))

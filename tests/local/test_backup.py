"""Backups: what is in one comes back, whoever owns the tables, and runs that were under way go on."""

import asyncio
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from psycopg import sql

from offing.bus.hints import BusHints
from offing.cli.backup import read_backup, refuse_newer, write_backup
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.local import Servers
from offing.local.archive import read_manifest
from offing.local.datadir import layout
from offing.local.servers import addresses
from offing.resources import migrations_dir
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT, is_current, migrate
from offing.storage.pool import Database
from tests.conftest import at_database
from tests.local.test_up import end, start
from tests.storage.test_migrations import POPULATE, RUN
from tests.workers.processes import with_tests

GRAPHS = "tests.workers.graphs:counting"

PATIENCE = 120.0

TABLES = "select relname from pg_class where relnamespace = 'app'::regnamespace and relkind = 'r'"

LEFT_OUT = {"login", "session", "lease_watch"}


def counted(url: str) -> dict[str, int]:
    """Rows of each table that a backup keeps."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = {name for (name,) in connection.execute(TABLES)} - LEFT_OUT
        queries = {name: sql.SQL("select count(*) from app.{}").format(sql.Identifier(name)) for name in names}
        return {name: connection.execute(query).fetchall()[0][0] for name, query in queries.items()}


@pytest.fixture
def owners(servers: Servers, template_database: str) -> Iterator[tuple[Servers, Servers]]:
    """Two databases of two owners, neither of them a superuser. The application's role is there already."""
    made: list[Servers] = []
    with psycopg.connect(servers.owner_url, autocommit=True) as root:
        for name in ("first_owner", "second_owner"):
            known = sql.Identifier(name)
            root.execute(sql.SQL("create role {} login nosuperuser nobypassrls").format(known))
            root.execute(sql.SQL("create database {} owner {}").format(known, known))
            owner = at_database(servers.owner_url, name).replace("offing_owner@", f"{name}@")
            made.append(Servers(owner, at_database(servers.app_url, name), servers.redis_url))
        yield made[0], made[1]
        for name in ("first_owner", "second_owner"):
            root.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
            root.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def populated(servers: Servers) -> None:
    """Rows in most tables, of two tenants."""
    migrate(servers.owner_url, folder=migrations_dir(), app_role=servers.app_role, app_password=None)
    values = {"tenant": LOCAL_TENANT, "run": RUN, "rollout": UUID(int=RUN.int + 1)}
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        for version in ("0001_runs", "0002_library", "0003_reports", "0005_passages"):
            for statement in POPULATE[version].split(";\n"):
                if statement.strip():
                    owner.execute(statement.encode(), values)


def home(folder: Path) -> Settings:
    return Settings(home=folder, database_url=None, redis_url=None)


def test_an_owner_without_special_rights_backs_up_all_tenants_and_another_owner_restores_them(
    owners: tuple[Servers, Servers], tmp_path: Path
) -> None:
    first, second = owners
    populated(first)
    weights = tmp_path / "one" / "policies" / "planner@1"
    weights.mkdir(parents=True)
    (weights / "model.safetensors").write_bytes(b"weights")
    with psycopg.connect(first.owner_url, autocommit=True) as owner:
        owner.execute(
            "insert into app.policy_version (id, tenant_id, name, version, kind, uri, sha256) "
            "values (%s, %s, 'planner', 1, 'full', %s, 'aa')",
            (RUN, LOCAL_TENANT, str(weights)),
        )
        owner.execute("insert into app.thread (id, tenant_id, title) select id, id, name from app.tenant")
    before, file = counted(first.owner_url), tmp_path / "all.backup"
    assert write_backup(home(tmp_path / "one"), first.owner_url, file) == []
    assert file.stat().st_mode & 0o777 == 0o600

    migrate(second.owner_url, folder=migrations_dir(), app_role=second.app_role, app_password=None)  # was started once
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    assert counted(second.owner_url) == before
    assert sum(before.values()) > 15
    assert is_current(second.owner_url, migrations_dir())
    with psycopg.connect(second.owner_url, autocommit=True) as owner:
        ((uri,),) = owner.execute("select uri from app.policy_version").fetchall()
        assert uri == str(tmp_path / "two" / "policies" / "planner@1")
        protected = owner.execute(
            "select count(*) from pg_class where relnamespace = 'app'::regnamespace and relkind = 'r' "
            "and not (relrowsecurity and relforcerowsecurity)"
        ).fetchone()
        assert protected == (0,)
    assert (Path(uri) / "model.safetensors").read_bytes() == b"weights"
    with psycopg.connect(second.app_url, autocommit=True) as app:
        assert app.execute("select count(*) from app.thread").fetchone() == (0,)
        app.execute("select set_config('app.tenant', %s, false)", (str(LOCAL_TENANT),))
        assert app.execute("select count(*) from app.thread").fetchone() == (2,)


def test_a_backup_goes_over_nothing_and_into_no_older_version(owners: tuple[Servers, Servers], tmp_path: Path) -> None:
    first, second = owners
    populated(first)
    file = tmp_path / "all.backup"
    write_backup(home(tmp_path / "one"), first.owner_url, file)
    manifest = read_manifest(file)
    with pytest.raises(Conflict, match="not empty: its table"):
        read_backup(home(tmp_path / "two"), first, file, manifest)
    newer = manifest | {"ledger": [*manifest["ledger"], ["0999_later", "aa", "2027-01-01", 1]]}
    with pytest.raises(Conflict, match="0999_later"):
        refuse_newer(newer)
    (tmp_path / "two" / "policies" / "planner@1").mkdir(parents=True)
    with pytest.raises(Conflict, match="policies is not empty"):
        read_backup(home(tmp_path / "two"), second, file, manifest)
    assert list((tmp_path / "two").glob("tmp*")) == []
    for broken in (b"", b"no tar", file.read_bytes()[:2000]):
        (tmp_path / "broken").write_bytes(broken)
        with pytest.raises(InvalidInput, match="FILE"):
            read_backup(home(tmp_path / "three"), second, tmp_path / "broken", read_manifest(tmp_path / "broken"))


def test_no_secret_stands_in_a_backup(owners: tuple[Servers, Servers], tmp_path: Path) -> None:
    first, _ = owners
    populated(first)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "app-password").write_text("hunter2")
    file = tmp_path / "all.backup"
    write_backup(home(tmp_path / "one"), first.owner_url, file)
    with tarfile.open(file) as archive:
        assert set(archive.getnames()) == {"manifest.json", "database.dump"}
    assert b"hunter2" not in file.read_bytes()
    assert "first_owner" not in orjson.dumps(read_manifest(file)).decode()


def offing(folder: Path, *words: str) -> str:
    """Runs a command for the home in a folder, as docs/operations.md writes it."""
    done = subprocess.run(
        [sys.executable, "-m", "offing.cli", *words],
        env={**os.environ, **environment(folder)},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(folder: Path) -> dict[str, str]:
    return {"OFFING_HOME": str(folder / "data"), "OFFING_GRAPHS": GRAPHS, "PYTHONPATH": with_tests()}


def documented() -> list[list[str]]:
    """The commands of the section on backups in the manual, without the program's name."""
    manual = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    block = manual.partition("## Backup\n\n```sh\n")[2].partition("```")[0]
    return [line.partition("#")[0].split()[1:] for line in block.splitlines()]


async def submitted(servers: Servers) -> UUID:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": 500}
    request = RunRequest(
        "Count",
        "counting",
        budget=Budget(turns=30),
        engines={"speaker": EngineChoice(engine="scripted", options=options)},
    )
    async with Database(servers.app_url, most=2) as database, BusHints(servers.redis_url) as hints:
        return (await submit(database, hints, LOCAL_TENANT, request, graphs=installed(GRAPHS))).run.id


def told(servers: Servers, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(servers.owner_url, autocommit=True) as connection:
        return connection.execute(query.encode(), parameters).fetchall()


def until(servers: Servers, query: str, run: UUID) -> None:
    deadline = time.monotonic() + PATIENCE
    while told(servers, query, run) != [(True,)]:
        assert time.monotonic() < deadline, told(servers, "select status, error, next_seq from app.run")
        time.sleep(0.1)


STEPS = "select seq, kind, title, payload from app.step where run_id = %s order by seq"


@pytest.mark.timeout(600)
def test_a_run_goes_on_where_a_backup_in_its_middle_was_restored(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write, bring_back = documented()
    one.mkdir()
    two.mkdir()
    up = start(one, **environment(one))
    try:
        up.link()
        servers = addresses(home(one / "data"), layout(one / "data"))
        run = asyncio.run(submitted(servers))
        until(servers, "select next_seq > 20 from app.run where id = %s", run)
        offing(one, *write)
        until(servers, "select next_seq > 30 from app.run where id = %s", run)
    finally:
        end(up)
    (one / "all.backup").rename(two / "all.backup")
    offing(two, *bring_back)
    up = start(two, **environment(two))
    try:
        up.link()
        servers = addresses(home(two / "data"), layout(two / "data"))
        until(servers, "select status = 'done' from app.run where id = %s", run)
        steps = told(servers, STEPS, run)
        calls = told(servers, "select count(*), count(distinct seq) from app.turn where run_id = %s", run)
    finally:
        end(up)
    assert [seq for seq, *_ in steps] == list(range(1, len(steps) + 1))
    spoken = [(kind, title) for _, kind, title, _ in steps if kind == "plan"]
    assert spoken == [("plan", f"w{turn}") for turn in range(1, 31)]
    assert calls == [(30, 30)]
    assert [kind for _, kind, *_ in steps].count("tool") == 30
    assert steps[-1][1] == "ended"

"""Backups: what is in one is restored under any owner of the tables, and active runs continue."""

import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from psycopg import sql

from offing.bus.notifier import BusNotifier
from offing.cli import backup
from offing.cli.backup import check_not_newer, read_backup, write_backup
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.local import ServerUrls
from offing.local.archive import read_manifest
from offing.local.data_directory import locate_data_directory
from offing.local.servers import get_server_urls
from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE, accept_server, list_accepted_servers, parse_server
from offing.packaged_files import get_migrations_dir
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
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

LEFT_OUT = {"login_link", "session", "lease_watch", "worker_process"}


def counted(url: str) -> dict[str, int]:
    """Rows of each table that a backup keeps."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = {name for (name,) in connection.execute(TABLES)} - LEFT_OUT
        queries = {name: sql.SQL("select count(*) from app.{}").format(sql.Identifier(name)) for name in names}
        return {name: connection.execute(query).fetchall()[0][0] for name, query in queries.items()}


@pytest.fixture
def owners(servers: ServerUrls, template_database: str) -> Iterator[tuple[ServerUrls, ServerUrls]]:
    """Two databases of two owners, neither of them a superuser. The application's role is there already."""
    created: list[ServerUrls] = []
    with psycopg.connect(servers.owner_url, autocommit=True) as root:
        for name in ("first_owner", "second_owner"):
            known = sql.Identifier(name)
            root.execute(sql.SQL("create role {} login nosuperuser nobypassrls").format(known))
            root.execute(sql.SQL("create database {} owner {}").format(known, known))
            owner = at_database(servers.owner_url, name).replace("offing_owner@", f"{name}@")
            created.append(ServerUrls(owner, at_database(servers.app_url, name), servers.redis_url))
        yield created[0], created[1]
        for name in ("first_owner", "second_owner"):
            root.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
            root.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def populated(servers: ServerUrls) -> None:
    """Rows in most tables, of two tenants."""
    migrate(servers.owner_url, folder=get_migrations_dir(), app_role=servers.app_role, app_password=None)
    values = {"tenant": LOCAL_TENANT, "run": RUN, "rollout": UUID(int=RUN.int + 1)}
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        for version, statements in POPULATE.items():
            for statement in statements.split(";\n") if version < "0008_trajectories" else ():
                if statement.strip():
                    owner.execute(statement.encode(), values)


def home(folder: Path, **more: Any) -> Settings:
    return Settings(home=folder, database_url=None, redis_url=None, **more)


@pytest.fixture(autouse=True)
def private_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepted model servers are in each home, and not in the file that all tests share."""
    monkeypatch.delenv(ACCEPTED_SERVERS_VARIABLE, raising=False)


def file_in(folder: Path, name: str = "model.safetensors", text: str = "weights") -> Path:
    """The folder, with a file in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def add_version(servers: ServerUrls, version: int, uri: Path, state: str = "candidate") -> None:
    query_rows(
        servers,
        "insert into app.policy_version (id, tenant_id, name, version, kind, uri, sha256, state) "
        "values (%s, %s, 'planner', %s, 'full', %s, 'aa', %s) returning 1",
        UUID(int=RUN.int + version),
        LOCAL_TENANT,
        version,
        str(uri),
        state,
    )


JOB = UUID(int=RUN.int + 100)


def add_job(servers: ServerUrls, checkpoint: Path, state: str = "running") -> None:
    """A training job that has done seven steps."""
    query_rows(
        servers,
        "insert into app.training_job (id, tenant_id, kind, name, config, config_sha256, seed, state, step, "
        "last_good_step, checkpoint) values (%s, %s, 'train', 'planner', '{}', 'ee', 7, %s, 7, 6, %s) returning 1",
        JOB,
        LOCAL_TENANT,
        state,
        str(checkpoint),
    )


def test_an_owner_without_special_rights_backs_up_all_tenants_and_another_owner_restores_them(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path
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
        owner.execute(
            "insert into app.login_link select sha256(id::text::bytea), id, now() + interval '1 day' from app.tenant"
        )
    before, file = counted(first.owner_url), tmp_path / "all.backup"
    assert write_backup(home(tmp_path / "one"), first.owner_url, file) == []
    assert file.stat().st_mode & 0o777 == 0o600

    migrate(
        second.owner_url, folder=get_migrations_dir(), app_role=second.app_role, app_password=None
    )  # was started once
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    assert counted(second.owner_url) == before
    assert sum(before.values()) > 15
    assert is_current(second.owner_url, get_migrations_dir())
    with psycopg.connect(second.owner_url, autocommit=True) as owner:
        assert owner.execute("select 1 from app.login_link").fetchall() == []
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
        assert app.execute("select count(*) from app.thread").fetchone() == (3,)


def test_a_backup_goes_over_nothing_and_into_no_older_version(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path
) -> None:
    first, second = owners
    populated(first)
    file = tmp_path / "all.backup"
    write_backup(home(tmp_path / "one"), first.owner_url, file)
    manifest = read_manifest(file)
    with pytest.raises(Conflict, match=r"is not empty\. The table"):
        read_backup(home(tmp_path / "two"), first, file, manifest)
    newer = manifest | {"migrations": [*manifest["migrations"], ["0999_later", "aa", "2027-01-01", 1]]}
    with pytest.raises(Conflict, match="0999_later"):
        check_not_newer(newer)
    (tmp_path / "two" / "policies" / "planner@1").mkdir(parents=True)
    with pytest.raises(Conflict, match="policies is not empty"):
        read_backup(home(tmp_path / "two"), second, file, manifest)
    assert list((tmp_path / "two").glob("tmp*")) == []
    for broken in (b"", b"no tar", file.read_bytes()[:2000]):
        (tmp_path / "broken").write_bytes(broken)
        with pytest.raises(InvalidInput, match="FILE"):
            read_backup(home(tmp_path / "three"), second, tmp_path / "broken", read_manifest(tmp_path / "broken"))


def test_no_secret_stands_in_a_backup(owners: tuple[ServerUrls, ServerUrls], tmp_path: Path) -> None:
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


def test_linked_weights_are_in_a_backup_as_files(owners: tuple[ServerUrls, ServerUrls], tmp_path: Path) -> None:
    first, second = owners
    populated(first)
    shared, one = file_in(tmp_path / "shared" / "qwen"), tmp_path / "one"
    (one / "policies" / "planner@2").mkdir(parents=True)
    (one / "policies" / "planner@1").symlink_to(shared)
    (one / "policies" / "planner@2" / "model.safetensors").symlink_to(shared / "model.safetensors")
    for version in (1, 2):
        add_version(first, version, (one / "policies" / f"planner@{version}").resolve())
    file = tmp_path / "all.backup"
    assert write_backup(home(one), first.owner_url, file) == []
    shutil.rmtree(tmp_path / "shared")
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    uris = query_rows(second, "select uri from app.policy_version order by version")
    assert uris == [(str(tmp_path / "two" / "policies" / f"planner@{version}"),) for version in (1, 2)]
    assert [(Path(uri) / "model.safetensors").read_text() for (uri,) in uris] == ["weights", "weights"]


def test_the_whole_folder_of_policies_may_be_a_link(owners: tuple[ServerUrls, ServerUrls], tmp_path: Path) -> None:
    first, second = owners
    populated(first)
    disk, other_disk = file_in(tmp_path / "disk" / "planner@1").parent, tmp_path / "other disk"
    for folder, position in (("one", disk), ("two", other_disk)):
        position.mkdir(exist_ok=True)
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "policies").symlink_to(position)
    (other_disk / "lost+found").mkdir()  # what a disk of its own has
    add_version(first, 1, disk / "planner@1")
    file = tmp_path / "all.backup"
    write_backup(home(tmp_path / "one"), first.owner_url, file)
    shutil.rmtree(disk)
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    assert query_rows(second, "select uri from app.policy_version") == [(str(other_disk / "planner@1"),)]
    assert (other_disk / "planner@1" / "model.safetensors").read_text() == "weights"


def test_a_link_that_leads_nowhere_or_in_a_circle_is_named_before_there_is_a_backup(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path
) -> None:
    first, _ = owners
    populated(first)
    folder = file_in(tmp_path / "one" / "policies" / "planner@1")
    for name, aim, text in (
        ("dead", tmp_path / "nothing", "nothing, which does not exist"),
        ("loop", folder, "contains it"),
    ):
        (folder / name).symlink_to(aim)
        with pytest.raises(Conflict, match=f"{name} is a link .*{text}"):
            write_backup(home(tmp_path / "one"), first.owner_url, tmp_path / "all.backup")
        (folder / name).unlink()
    assert not (tmp_path / "all.backup").exists()


def test_a_training_job_continues_from_where_its_checkpoint_was_restored(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path
) -> None:
    first, second = owners
    populated(first)
    job = tmp_path / "one" / "training" / str(JOB)
    for step in ("step-000005-1", "step-000006-1", "step-000007-2", ".step-000008-2.new"):
        file_in(job / step, "state.json", step)
    file_in(job, "metrics.jsonl", "{}")
    add_job(first, job / "step-000007-2")
    file = tmp_path / "all.backup"
    assert write_backup(home(tmp_path / "one"), first.owner_url, file) == []
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    restored = tmp_path / "two" / "training" / str(JOB)
    assert query_rows(second, "select checkpoint from app.training_job") == [(str(restored / "step-000007-2"),)]
    assert (restored / "step-000007-2" / "state.json").read_text() == "step-000007-2"
    assert sorted(path.name for path in restored.iterdir()) == ["metrics.jsonl", "step-000006-1", "step-000007-2"]


def test_a_checkpoint_is_found_by_another_spelling_of_its_home(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path
) -> None:
    first, second = owners
    populated(first)
    (tmp_path / "alias").symlink_to(tmp_path / "one")
    position = Path("training", str(JOB), "step-000007-2")
    file_in(tmp_path / "one" / position, "state.json")
    add_job(first, tmp_path / "alias" / position)
    file = tmp_path / "all.backup"
    assert write_backup(home(tmp_path / "one"), first.owner_url, file) == []
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    assert query_rows(second, "select checkpoint from app.training_job") == [(str(tmp_path / "two" / position),)]


def test_what_others_remove_during_a_backup_is_in_it_where_a_row_names_it(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = owners
    populated(first)
    one, position = tmp_path / "one", Path("training", str(JOB), "step-000007-2")
    file_in(one / position, "state.json", "seven")
    graph = file_in(one / "graphs" / ("a" * 64), "pyproject.toml", "[project]")
    passing = [file_in(one / "policies" / name) for name in (".export-1", "planner@9")]
    add_job(first, one / position)
    dumping(monkeypatch, lambda: [shutil.rmtree(path) for path in (one / position, graph, *passing)])
    file = tmp_path / "all.backup"
    assert write_backup(home(one), first.owner_url, file) == []
    assert [path.name for path in (one / position).parent.iterdir()] == []
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    assert (tmp_path / "two" / position / "state.json").read_text() == "seven"
    assert (tmp_path / "two" / "graphs" / graph.name / "pyproject.toml").read_text() == "[project]"
    assert not (tmp_path / "two" / "policies").exists()


def test_a_backup_holds_the_checkpoint_that_its_dump_names_while_the_job_continues(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = owners
    populated(first)
    job = tmp_path / "one" / "training" / str(JOB)
    file_in(job / "step-000007-2", "state.json", "seven")
    add_job(first, job / "step-000007-2")

    def step() -> None:
        later = file_in(job / "step-000012-2", "state.json", "twelve")
        query_rows(
            first, "update app.training_job set step = 12, last_good_step = 11, checkpoint = %s returning 1", str(later)
        )
        shutil.rmtree(job / "step-000007-2")

    dumping(monkeypatch, step, before=True)
    file = tmp_path / "all.backup"
    write_backup(home(tmp_path / "one"), first.owner_url, file)
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    ((done, checkpoint),) = query_rows(second, "select step, checkpoint from app.training_job")
    assert (done, (Path(checkpoint) / "state.json").read_text()) == (7, "seven")


def dumping(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], *, before: bool = False) -> None:
    """Writes from another connection while the database is dumped."""
    dump = backup.dump_schema

    def slowly(*inputs: Any, **named: Any) -> None:
        if before:
            work()
        dump(*inputs, **named)
        if not before:
            work()

    monkeypatch.setattr(backup, "dump_schema", slowly)


def test_what_a_row_needs_and_is_not_there_is_named_instead_of_a_backup_without_it(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = owners
    populated(first)
    one, file = tmp_path / "one", tmp_path / "all.backup"
    weights = file_in(one / "policies" / "planner@1")
    step = one / "training" / str(JOB) / "step-000007-2"
    add_version(first, 1, weights)
    add_version(first, 2, one / "policies" / "planner@2", "retired")
    add_job(first, step)
    (one / "training").mkdir()
    with pytest.raises(Conflict, match=f"step-000007-2, which training job {JOB} needs, does not exist"):
        write_backup(home(one), first.owner_url, file)
    query_rows(first, "update app.training_job set state = 'failed' returning 1")
    left_out = write_backup(home(one), first.owner_url, file)
    assert [text.partition(", which")[0] for text in left_out] == [
        "the weights of planner@2",
        f"the checkpoint of training job {JOB}",
    ]
    file.unlink()
    file_in(one / "policies" / "planner@3")
    dumping(monkeypatch, lambda: shutil.rmtree(weights))
    with pytest.raises(Conflict, match="planner@1, which policy version planner@1 needs, does not exist"):
        write_backup(home(one), first.owner_url, file)
    with pytest.raises(Conflict, match="offing policy set-state planner@1 blocked"):
        write_backup(home(one), first.owner_url, file)
    assert not file.exists()


def test_a_restore_that_finds_no_place_changes_nothing_and_can_be_repeated(
    owners: tuple[ServerUrls, ServerUrls], tmp_path: Path
) -> None:
    first, second = owners
    populated(first)
    file_in(tmp_path / "one" / "graphs" / ("a" * 64))
    file_in(tmp_path / "one" / "policies" / "planner@1")
    before, file, two = counted(first.owner_url), tmp_path / "all.backup", tmp_path / "two"
    write_backup(home(tmp_path / "one"), first.owner_url, file)
    manifest = read_manifest(file)
    (tmp_path / "full").write_text("no folder can be made here")
    with pytest.raises(Conflict, match=r"cannot be restored: .*full"):
        read_backup(home(two, policy_dir=tmp_path / "full" / "policies"), second, file, manifest)
    broken = manifest | {"policies": [manifest["policies"][0] | {"using": "no expression"}]}
    with pytest.raises(psycopg.errors.SyntaxError):
        read_backup(home(two), second, file, broken)
    assert [path for folder in ("policies", "graphs") for path in (two / folder).glob("*")] == []
    read_backup(home(two), second, file, manifest)
    assert counted(second.owner_url) == before
    assert (two / "policies" / "planner@1" / "model.safetensors").read_text() == "weights"


def test_accepted_model_servers_come_back(owners: tuple[ServerUrls, ServerUrls], tmp_path: Path) -> None:
    first, second = owners
    populated(first)
    accept_server({"OFFING_HOME": str(tmp_path / "one")}, "http://127.0.0.1:11434")
    file = tmp_path / "all.backup"
    write_backup(home(tmp_path / "one"), first.owner_url, file)
    read_backup(home(tmp_path / "two"), second, file, read_manifest(file))
    assert list_accepted_servers({"OFFING_HOME": str(tmp_path / "two")}) == {parse_server("http://127.0.0.1:11434", "")}


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
    return {"OFFING_HOME": str(folder / "data"), "OFFING_EXTRA_GRAPHS": GRAPHS, "PYTHONPATH": with_tests()}


def documented() -> list[list[str]]:
    """The commands of the section on backups in the manual, without the program's name."""
    manual = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    block = manual.partition("## Backup\n\n```sh\n")[2].partition("```")[0]
    return [line.partition("#")[0].split()[1:] for line in block.splitlines()]


async def submitted(servers: ServerUrls) -> UUID:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": 500}
    request = RunRequest(
        "Count",
        "counting",
        budget=Budget(max_turns=30),
        engines={"speaker": EngineConfig(engine="scripted", options=options)},
    )
    async with Database(servers.app_url, max_connections=2) as database, BusNotifier(servers.redis_url) as notifier:
        return (await submit_run(database, notifier, LOCAL_TENANT, request, graphs=open_registry(GRAPHS))).run.id


def query_rows(servers: ServerUrls, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(servers.owner_url, autocommit=True) as connection:
        return connection.execute(query.encode(), parameters).fetchall()


def until(servers: ServerUrls, query: str, run_id: UUID) -> None:
    deadline = time.monotonic() + PATIENCE
    while query_rows(servers, query, run_id) != [(True,)]:
        assert time.monotonic() < deadline, query_rows(servers, "select status, error, next_seq from app.run")
        time.sleep(0.1)


STEPS = "select seq, kind, title, payload from app.step where run_id = %s order by seq"


@pytest.mark.timeout(600)
def test_a_run_continues_where_a_backup_in_its_middle_was_restored(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write, bring_back = documented()
    one.mkdir()
    two.mkdir()
    up = start(one, **environment(one))
    try:
        up.link()
        servers = get_server_urls(home(one / "data"), locate_data_directory(one / "data"))
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
        servers = get_server_urls(home(two / "data"), locate_data_directory(two / "data"))
        until(servers, "select status = 'done' from app.run where id = %s", run)
        steps = query_rows(servers, STEPS, run)
        calls = query_rows(servers, "select count(*), count(distinct seq) from app.role_call where run_id = %s", run)
    finally:
        end(up)
    assert [seq for seq, *_ in steps] == list(range(1, len(steps) + 1))
    spoken = [(kind, title) for _, kind, title, _ in steps if kind == "plan"]
    assert spoken == [("plan", f"w{turn}") for turn in range(1, 31)]
    assert calls == [(30, 30)]
    assert [kind for _, kind, *_ in steps].count("tool_result") == 30
    assert steps[-1][1] == "ended"

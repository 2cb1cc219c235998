"""The embedded servers: who may run them, who may reach them, and what survives which death."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import redis

from offing.local import open_servers
from offing.local.child_environment import SYSTEM_VARIABLES
from offing.settings import Settings
from tests.local.processes import (
    SERVERS_PROCESS,
    ServersProcess,
    as_nobody,
    environment,
    eventually,
    holding,
    missing,
    python_for,
    servers_of,
)

WITHOUT_NAMESPACES = Path(__file__).with_name("without_namespaces.py")


def answers(holder: ServersProcess) -> bool:
    """Whether both servers do what a client asks."""
    with psycopg.connect(holder.owner_url) as connection, redis.Redis.from_url(holder.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        return connection.execute("select 1").fetchone() == (1,) and client.ping() is True  # pyright: ignore[reportUnknownMemberType]


def needs_root() -> None:
    if os.geteuid() != 0:
        missing("only root can show this")


def test_root_runs_both_without_changing_the_owner_of_any_file(home: Path) -> None:
    needs_root()
    with holding(home) as holder:
        assert answers(holder)
        assert {path.lstat().st_uid for path in home.rglob("*")} == {0}


def test_the_servers_do_not_inherit_the_keys_of_providers(home: Path) -> None:
    with holding(home, ANTHROPIC_API_KEY="canary", DATABASE_URL="canary", PGOPTIONS="canary") as holder:
        assert answers(holder)
        result = holder.each(lambda p: (p.name(), p.environ()))
    assert {name for name, _ in result} >= {"postgres", "valkey-server"}
    for name, environment_of in result:
        assert "canary" not in environment_of.values(), name
        assert set(environment_of) <= {*SYSTEM_VARIABLES, "LC_CTYPE", "PGDATA"}, name


def test_root_runs_both_where_namespaces_are_rejected(home: Path) -> None:
    needs_root()
    with holding(home, before=[sys.executable, WITHOUT_NAMESPACES]) as holder:
        assert answers(holder)
        assert {user for name, user in holder.each(lambda p: (p.name(), p.uids().effective)) if name == "postgres"} == {
            65534
        }


def test_data_made_in_a_namespace_is_still_used_where_namespaces_are_rejected(home: Path) -> None:
    needs_root()
    with holding(home) as holder, psycopg.connect(holder.owner_url) as connection:
        connection.execute("create table kept as select 42 as n")
    with (
        holding(home, before=[sys.executable, WITHOUT_NAMESPACES]) as holder,
        psycopg.connect(holder.owner_url) as connection,
    ):
        assert connection.execute("select n from kept").fetchone() == (42,)


def test_an_ordinary_user_runs_both(home_of_nobody: Path) -> None:
    before = as_nobody()
    with holding(home_of_nobody, before=before, python=python_for(before)) as holder:
        assert answers(holder)
        assert set(holder.each(lambda p: p.uids().effective)) == {home_of_nobody.stat().st_uid}


def test_a_user_without_a_name_runs_both(home: Path) -> None:
    needs_root()
    nameless = 54321
    os.chown(home, nameless, nameless)
    with holding(home, before=as_nobody(nameless), python=python_for(as_nobody(nameless))) as holder:
        assert answers(holder)
        assert set(holder.each(lambda p: p.uids().effective)) == {nameless}


def test_data_that_root_left_is_rejected_with_the_remedy(home_of_nobody: Path) -> None:
    needs_root()
    with holding(home_of_nobody):
        pass
    before = as_nobody()
    completed = subprocess.run(
        [*before, python_for(before), SERVERS_PROCESS, home_of_nobody],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=environment(),
    )
    assert "Conflict" in completed.stderr
    assert f"chown -R $(id -u):$(id -g) {home_of_nobody}" in completed.stderr


def test_the_servers_listen_on_private_unix_sockets_alone(home: Path) -> None:
    with holding(home) as holder:
        tcp = [c for result in holder.each(lambda p: p.net_connections("inet")) for c in result]
        assert tcp == []
        sockets = Path(parse_qs(urlsplit(holder.owner_url).query)["host"][0])
        for folder in (sockets, sockets.parent, Path(urlsplit(holder.redis_url).path).parent, home / "pg", home / "kv"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_another_user_cannot_connect(home: Path) -> None:
    needs_root()
    with holding(home) as holder:
        path = urlsplit(holder.redis_url).path
        before = as_nobody()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
        done = psutil.Popen([*before, python_for(before), "-c", code], stderr=-3)
        assert done.wait(10) != 0


def test_no_server_outlives_a_killed_supervisor(home: Path) -> None:
    with holding(home) as holder:
        connection = psycopg.connect(holder.owner_url)
        assert {"postgres", "valkey-server"} <= set(holder.each(lambda p: p.name()))
        holder.process.kill()
        assert eventually(lambda: not servers_of(home))
        connection.close()


def test_a_stopped_supervisor_leaves_no_process_and_no_socket(home: Path) -> None:
    with holding(home) as holder:
        run = Path(urlsplit(holder.redis_url).path).parents[1]
        holder.process.terminate()
        assert holder.process.wait(10) == 0
        assert servers_of(home) == []
        assert not run.exists()


def test_what_was_committed_survives_the_death_of_everything(home: Path) -> None:
    with holding(home) as holder:
        with psycopg.connect(holder.owner_url) as connection:
            connection.execute("create table kept as select generate_series(1, 1000) as n")
        with redis.Redis.from_url(holder.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
            client.set("kept", "yes")
        time.sleep(1.2)  # the key-value server writes once per second
        holder.process.kill()
        holder.each(lambda p: p.kill())
    with holding(home) as holder:
        with psycopg.connect(holder.owner_url) as connection:
            assert connection.execute("select count(*) from kept").fetchone() == (1000,)
        with redis.Redis.from_url(holder.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
            assert client.get("kept") == b"yes"


def test_servers_left_behind_are_stopped_before_new_ones_start(home: Path) -> None:
    with holding(home) as holder:
        left_behind = holder.servers()
        holder.each(lambda p: p.suspend())  # not even the kernel's request to die is heeded by a stopped valkey
        holder.process.kill()
        holder.process.wait()
        with holding(home) as second:
            assert answers(second)
            assert not {p.pid for p in second.servers()} & {p.pid for p in left_behind}


def test_a_recorded_pid_that_belongs_to_another_user_is_not_touched(home: Path) -> None:
    with holding(home):
        pass
    (home / "pg" / "postmaster.pid").write_text(f"{os.getpid()}\n{home / 'pg'}\n")
    with holding(home) as holder:
        assert answers(holder)


def test_a_second_process_shares_the_servers_of_the_first(home: Path) -> None:
    with holding(home) as holder:
        before = {p.pid for p in holder.servers()}
        with open_servers(Settings(home=home, database_url=None, redis_url=None)) as servers:
            assert (servers.owner_url, servers.redis_url) == (holder.owner_url, holder.redis_url)
            assert {
                pid for pid, parent in holder.each(lambda p: (p.pid, p.ppid())) if parent == holder.process.pid
            } <= before
        assert answers(holder)


def test_the_first_process_waits_for_the_second_before_it_stops_the_servers(home: Path) -> None:
    with holding(home) as holder:
        with open_servers(Settings(home=home, database_url=None, redis_url=None)):
            holder.process.terminate()
            time.sleep(0.5)
            assert answers(holder)
        assert holder.process.wait(10) == 0


def test_unreadable_key_value_data_is_moved_aside(home: Path) -> None:
    with holding(home):
        pass
    manifest = next((home / "kv" / "appendonlydir").glob("*.manifest"))
    manifest.write_text("no manifest at all\n")
    with holding(home) as holder:
        assert answers(holder)
    assert (home / "kv.unreadable").is_dir()

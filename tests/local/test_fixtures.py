"""The root fixtures give what they promise."""

import os
import signal
import subprocess
from pathlib import Path

import psycopg
import redis

from tests.conftest import PrivateServers
from tests.memory_folder import PREFIX, has_room, remove_abandoned


def test_each_test_gets_a_migrated_database_of_its_own(owner_url: str, app_url: str) -> None:
    with psycopg.connect(owner_url) as owner, psycopg.connect(app_url) as app:
        assert owner.execute("select count(*) from public.offing_migration").fetchone() != (0,)
        who = app.execute("select current_user, rolsuper, rolbypassrls from pg_roles where rolname = current_user")
        assert who.fetchone() == ("offing_app", False, False)


def test_the_key_value_server_is_empty(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        assert client.dbsize() == 0  # pyright: ignore[reportUnknownMemberType]


def test_private_servers_come_back_after_a_kill_with_what_was_committed(private_servers: PrivateServers) -> None:
    servers, supervisor = private_servers.servers, private_servers.supervisor
    with psycopg.connect(servers.owner_url) as owner:
        owner.execute("create table kept as select 1 as n")
    for name, sent in (("postgres", signal.SIGQUIT), ("valkey", signal.SIGKILL)):
        os.kill(supervisor.get_pid(name), sent)
        supervisor.restart(name)
    with psycopg.connect(servers.owner_url) as owner:
        assert owner.execute("select n from kept").fetchone() == (1,)
    with redis.Redis.from_url(servers.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        assert client.ping()  # pyright: ignore[reportUnknownMemberType]


def test_only_what_dead_processes_left_in_memory_is_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    left, used, foreign = (tmp_path / f"{PREFIX}{name}" for name in (f"{dead.pid}-a", f"{os.getpid()}-b", "c"))
    for folder in (left, used, foreign):
        (folder / "pg").mkdir(parents=True)
    remove_abandoned(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([used, foreign])


def test_servers_are_on_disk_where_there_is_no_memory_for_files(tmp_path: Path) -> None:
    assert not has_room(tmp_path / "absent")

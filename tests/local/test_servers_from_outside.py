"""Debian's Postgres and Redis, run by another user on TCP with passwords, take the place of the embedded ones."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import redis
from pydantic import SecretStr

from offing.local import open_servers
from offing.packaged_files import get_migrations_dir
from offing.settings import Settings
from offing.storage.migrate import migrate
from tests.local.processes import NOBODY, as_nobody, eventually, servers_of
from tests.ports import free_port
from tests.programs import unavailable

PASSWORD = "p@ss/word"
AS_A_URL_HAS_IT = "p%40ss%2Fword"


@dataclass(frozen=True, slots=True)
class Outside:
    """Addresses as an operator would put them into the environment."""

    database_url: str
    redis_url: str

    def settings(self, home: Path) -> Settings:
        return Settings(home=home, database_url=SecretStr(self.database_url), redis_url=SecretStr(self.redis_url))


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    with _postgres() as database_url, _redis(folder) as redis_url:
        yield Outside(database_url, redis_url)


@contextmanager
def _postgres() -> Generator[str]:
    results = sorted(Path(os.environ.get("POSTGRES_FOLDER", "/usr/lib/postgresql")).glob("*/bin"))
    if not results:
        unavailable("Debian's postgresql is not installed")
    data = Path(tempfile.mkdtemp(prefix="offing-outside-"))
    (data / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (data, data / "password"):
            os.chown(path, NOBODY, NOBODY)
    port, binaries = free_port(), results[-1]
    cluster = data / "cluster"
    made_by = ["-D", cluster, "-U", "operator", "--auth=scram-sha-256", f"--pwfile={data / 'password'}"]
    like_debian = ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    initdb = [*as_nobody(), binaries / "initdb", *made_by, *like_debian]
    subprocess.run(initdb, check=True, capture_output=True, cwd="/")
    options = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={data}"]
    server = subprocess.Popen(
        [*as_nobody(), binaries / "postgres", "-D", cluster, *options, "-c", "fsync=off"],
        stderr=subprocess.DEVNULL,
        cwd="/",
    )
    base = f"postgresql://operator:{AS_A_URL_HAS_IT}@127.0.0.1:{port}"
    try:
        assert eventually(lambda: _accepts(f"{base}/postgres"), 20)
        with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
            connection.execute("create database research")
        yield f"{base}/research"
    finally:
        server.terminate()
        server.wait(20)
        shutil.rmtree(data)


@contextmanager
def _redis(folder: Path) -> Generator[str]:
    program = shutil.which("redis-server")
    if program is None:
        unavailable("Debian's redis-server is not installed")
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--requirepass", "secret", "--save", "", "--dir", folder]
    server = subprocess.Popen([str(program), *options], stdout=subprocess.DEVNULL)
    url = f"redis://:secret@127.0.0.1:{port}/0"
    try:
        assert eventually(lambda: _pings(url), 10)
        yield url
    finally:
        server.terminate()
        server.wait(10)


def _accepts(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def _pings(url: str) -> bool:
    with redis.Redis.from_url(url) as client:  # pyright: ignore[reportUnknownMemberType]
        try:
            return client.ping() is True  # pyright: ignore[reportUnknownMemberType]
        except redis.ConnectionError:
            return False


def test_nothing_is_started_beside_servers_from_outside(outside: Outside, home: Path) -> None:
    with open_servers(outside.settings(home)) as servers:
        assert (servers.owner_url, servers.redis_url) == (outside.database_url, outside.redis_url)
        assert servers_of(home) == []


def test_the_application_signs_in_to_them_under_its_own_role_and_password(outside: Outside, home: Path) -> None:
    with open_servers(outside.settings(home)) as servers:
        migrate(
            servers.owner_url,
            folder=get_migrations_dir(),
            app_role=servers.app_role,
            app_password=servers.app_password,
        )
        with psycopg.connect(servers.app_url) as connection:
            who = connection.execute("select current_user, rolsuper from pg_roles where rolname = current_user")
            assert who.fetchone() == ("offing_app", False)


def test_the_generated_password_is_kept_for_this_user_alone(outside: Outside, home: Path) -> None:
    with open_servers(outside.settings(home)) as first:
        pass
    with open_servers(outside.settings(home)) as second:
        assert second.app_url == first.app_url
    assert stat.S_IMODE((home / "app-password").stat().st_mode) == 0o600


def test_one_from_outside_goes_with_one_embedded(outside: Outside, home: Path) -> None:
    settings = Settings(home=home, database_url=SecretStr(outside.database_url), redis_url=None)
    with open_servers(settings) as servers:
        assert _accepts(servers.owner_url)
        assert _pings(servers.redis_url)
        assert {p.name() for p in servers_of(home)} == {"valkey-server"}


def test_no_address_is_shown_by_a_repr(outside: Outside, home: Path) -> None:
    with open_servers(outside.settings(home)) as servers:
        rendered = repr(servers) + repr(outside.settings(home))
        assert PASSWORD not in rendered
        assert AS_A_URL_HAS_IT not in rendered
        assert "secret" not in rendered

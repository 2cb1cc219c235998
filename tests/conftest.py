"""Real servers for every test that wants them.

One embedded Postgres and one Valkey a test process, without durability, in memory where it has room
(`tests/memory_folder.py`); they die with it. A test that takes `owner_url` or `app_url` gets a freshly migrated
database of its own, cloned from a template and dropped afterwards; `redis_url` is an emptied server.
"""

import os
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import redis
import structlog
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from xdist.remote import Producer
from xdist.scheduler import Scheduling

from offing.garbage_collection import collect_rarely, configure_garbage_collection
from offing.local import ServerUrls, open_servers
from offing.local.data_directory import ExclusiveLock, prepare_data_directory
from offing.local.servers import get_server_urls, join_or_lock, run_servers
from offing.local.supervisor import Supervisor
from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE
from offing.models.key_file import KEY_FILE_VARIABLE, create_key_file
from offing.settings import Settings
from tests.memory_folder import open_server_folder
from tests.scheduling import Grouped, GroupTimes, find_turn

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Otherwise each of the hundreds of processes that tests start compiles all that it imports.

collect_rarely()
# Otherwise the objects of all test modules are scanned again and again while they are imported.

_serial = count(1)

HERE = Path(__file__).parent

structlog.configure(
    processors=[structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
)
"""What a test's own process logs is plain: colors hide what a test looks for, and the values of all variables of an
exception take seconds to draw."""

hypothesis_settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("busy")
"""How fast examples are made says what else the machine does, and nothing of the code."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--moments", type=int, default=2, metavar="N", help="random moments at which each fault strikes (tests/chaos)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tests never touch the servers or the home that the environment names. They may be told of another browser.

    Which model servers are accepted stands in a file of the test process's own, for whatever it starts, and so does the
    key that encrypts keys of providers.
    """
    for name in [n for n in os.environ if n in ("DATABASE_URL", "REDIS_URL") or n.startswith("OFFING_")]:
        if name != "OFFING_CHROMIUM":
            del os.environ[name]
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(GroupTimes())
    folder = tempfile.TemporaryDirectory(prefix="offing-accepted-")
    config.add_cleanup(folder.cleanup)
    os.environ[ACCEPTED_SERVERS_VARIABLE] = str(Path(folder.name, "engine-servers"))
    os.environ[KEY_FILE_VARIABLE] = str(Path(folder.name, "provider.key"))
    create_key_file(Path(folder.name, "provider.key"))


def pytest_sessionstart() -> None:
    """Entry points are known from the installation, which a change of `pyproject.toml` makes out of date."""
    declared = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    expected = {(group, name, target) for group, named in declared.items() for name, target in named.items()}
    known = {(point.group, point.name, point.value) for point in distribution("offing").entry_points}
    if missing := sorted(expected - known):
        again = f"{sys.executable} -m pip install --no-deps --no-build-isolation -e ."
        pytest.exit(f"{missing[0][1]} of {missing[0][0]} is not installed; install the checkout again: {again}", 4)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under `-n`, long ones first."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: find_turn(item.nodeid))


def pytest_collection_finish() -> None:
    """What was imported stays, so that tests do not scan it for garbage again and again."""
    configure_garbage_collection()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Grouped(config, log)


@pytest.fixture(scope="session")
def servers() -> Iterator[ServerUrls]:
    """Servers shared by the session; make no assumption about what else is in them."""
    with (
        open_server_folder() as home,
        open_servers(Settings(home=home, database_url=None, redis_url=None), durable=False) as result,
    ):
        yield result


@dataclass(frozen=True, slots=True)
class PrivateServers:
    """Servers of one test's own, to be killed: `supervisor.pid(name)`, `supervisor.restart(name)` with the names
    `postgres` and `valkey`. Nobody restarts them but the test."""

    servers: ServerUrls
    supervisor: Supervisor


@pytest.fixture
def private_servers() -> Iterator[PrivateServers]:
    """Migrated servers that this test may kill. They keep what they wrote through a killed process."""
    from offing.packaged_files import get_migrations_dir
    from offing.storage.migrate import migrate

    with open_server_folder() as home:
        settings = Settings(home=home, database_url=None, redis_url=None)
        paths, supervisor = prepare_data_directory(settings.home), Supervisor()
        lock = join_or_lock(paths)
        assert isinstance(lock, ExclusiveLock)
        with run_servers(settings, paths, lock, supervisor):
            server_urls = get_server_urls(settings, paths)
            migrate(
                server_urls.owner_url, folder=get_migrations_dir(), app_role=server_urls.app_role, app_password=None
            )
            yield PrivateServers(server_urls, supervisor)


@dataclass(frozen=True, slots=True)
class Database:
    """One test's database."""

    name: str
    owner_url: str
    app_url: str


@pytest.fixture(scope="session")
def template_database(servers: ServerUrls) -> str:
    """A migrated database that nobody connects to, for cloning."""
    from offing.packaged_files import get_migrations_dir
    from offing.storage.migrate import migrate

    name = "offing_template"
    _as_owner(servers, f"create database {name}")
    migrate(
        at_database(servers.owner_url, name),
        folder=get_migrations_dir(),
        app_role=servers.app_role,
        app_password=servers.app_password,
    )
    return name


@pytest.fixture
def database(servers: ServerUrls, template_database: str) -> Iterator[Database]:
    """A migrated database of this test's own."""
    name = f"t{next(_serial)}"
    _as_owner(servers, CLONE.format(name=name, template=template_database))
    yield Database(name, at_database(servers.owner_url, name), at_database(servers.app_url, name))
    _as_owner(servers, f"drop database {name} with (force)")


@pytest.fixture
def owner_url(database: Database) -> str:
    return database.owner_url


@pytest.fixture
def app_url(database: Database) -> str:
    return database.app_url


@pytest.fixture
def redis_url(servers: ServerUrls) -> str:
    with redis.Redis.from_url(servers.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        client.flushall()  # pyright: ignore[reportUnknownMemberType]
    return servers.redis_url


CLONE = "create database {name} template {template} strategy file_copy"
"""The usual strategy writes every page to the log, which takes about three times as much CPU time."""


def at_database(url: str, name: str) -> str:
    """`url` with another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _as_owner(servers: ServerUrls, statement: str) -> None:
    with psycopg.connect(servers.owner_url, autocommit=True) as connection:
        connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]

"""A real worker process for tests, on the test's own database and the session's Valkey."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
import redis

from offing.bus.notifier import BusNotifier
from offing.core.run import RunStatus
from offing.core.step import Step
from offing.local import ServerUrls
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from tests.conftest import CLONE, at_database
from tests.workers.processes import ALL_GRAPHS, Worker, spawn
from tests.workers.rollout_batches import Collector, Sql

_serial = count(1)

StartWorker = Callable[..., Worker]


@pytest.fixture
def start_worker(app_url: str, redis_url: str) -> Iterator[StartWorker]:
    """Starts workers with short leases; none outlives the test.

    `ready` False: it may die of a run before it says that it is ready, because it looks for runs from its start.
    """
    started: list[Worker] = []
    with tempfile.TemporaryDirectory() as folder:

        def start(*, ready: bool = True, **more: str) -> Worker:
            worker = spawn(Path(folder), str(len(started)), app_url, redis_url, **more)
            started.append(worker)
            if ready:
                worker.await_ready()
            return worker

        yield start
        for worker in started:
            worker.child.kill()
            worker.child.wait()
            print(f"worker {worker.child.pid} wrote:\n{worker.log.read_text()}")


@dataclass
class Platform:
    """What a client of the services sees."""

    database: Database
    notifier: BusNotifier
    tenant: UUID = LOCAL_TENANT

    async def submit(self, request: RunRequest) -> RunRow:
        submitted = await submit_run(
            self.database, self.notifier, self.tenant, request, graphs=open_registry(ALL_GRAPHS)
        )
        return submitted.run

    async def run(self, id: UUID) -> RunRow:
        async with self.database.transaction(self.tenant) as connection:
            return await runs.get_run(connection, id)

    async def steps(self, id: UUID) -> list[Step]:
        async with self.database.transaction(self.tenant) as connection:
            return await steps.list_steps_after(connection, id, 0, 100_000)

    async def until(self, id: UUID, expected: Callable[[RunRow], bool], seconds: float = 100) -> RunRow:
        """The run once it is as wanted."""
        give_up = time.monotonic() + seconds
        while not expected(row := await self.run(id)):
            if time.monotonic() > give_up:
                raise AssertionError(f"the run is still {row.status}: {await self.steps(id)}")
            await asyncio.sleep(0.05)
        return row

    async def ended(self, id: UUID, seconds: float = 100) -> RunRow:
        return await self.until(id, lambda row: row.is_terminal, seconds)

    async def running(self, id: UUID) -> RunRow:
        return await self.until(id, lambda row: row.status is RunStatus.RUNNING)


@pytest.fixture
async def platform(app_url: str, redis_url: str) -> AsyncIterator[Platform]:
    async with Database(app_url, max_connections=4) as database, BusNotifier(redis_url) as notifier:
        yield Platform(database, notifier)


@pytest.fixture
async def collector(app_url: str) -> AsyncIterator[Collector]:
    async with Database(app_url, max_connections=8) as database:
        yield Collector(database)


@pytest.fixture
def sql(owner_url: str) -> Sql:
    """Runs a statement as the owner."""

    def execute(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(owner_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    return execute


@dataclass(frozen=True)
class SharedServers:
    """A database and a worker that the tests of a module share."""

    owner_url: str
    app_url: str
    redis_url: str


@pytest.fixture(scope="module")
def shared_servers(
    request: pytest.FixtureRequest, servers: ServerUrls, template_database: str
) -> Iterator[SharedServers]:
    name = f"standing{next(_serial)}"
    with psycopg.connect(servers.owner_url, autocommit=True) as owner, tempfile.TemporaryDirectory() as folder:
        owner.execute(CLONE.format(name=name, template=template_database).encode())
        with redis.Redis.from_url(servers.redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
            client.flushall()  # pyright: ignore[reportUnknownMemberType]
        owner_url, app_url = at_database(servers.owner_url, name), at_database(servers.app_url, name)
        module = cast(object, request.module)  # pyright: ignore[reportUnknownMemberType]
        more: dict[str, str] = getattr(module, "ENVIRONMENT", {})
        worker = spawn(Path(folder), name, app_url, servers.redis_url, **more)
        worker.await_ready()
        yield SharedServers(owner_url, app_url, servers.redis_url)
        worker.kill()
        print(f"the standing worker wrote:\n{worker.log.read_text()}")
        owner.execute(f"drop database {name} with (force)".encode())


@pytest.fixture
async def shared_platform(shared_servers: SharedServers) -> AsyncIterator[Platform]:
    """A client of a platform whose worker serves every test of the module; its environment is the module's ENVIRONMENT.

    No test of the module may start another worker: there is one Valkey, and each would consume the messages of the
    other's runs.
    """
    async with (
        Database(shared_servers.app_url, max_connections=4) as database,
        BusNotifier(shared_servers.redis_url) as notifier,
    ):
        yield Platform(database, notifier)

"""A stage a module, and the moments at which a module's fault strikes."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from offing.bus.notifier import BusNotifier
from offing.services.ingestion import Upload
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.chaos import checker
from tests.chaos.graphs import GRAPH_NAMES
from tests.chaos.library import DOCUMENTS
from tests.chaos.loop_trial import START, Home, killed, strike
from tests.chaos.private_stack import PrivateStack, raised, struck
from tests.chaos.trial import Client, Kind, Moment, Trial
from tests.documents import ingest_uploads

SEED = int(os.environ.get("CHAOS_SEED", "0"))
"""Another one strikes at other moments."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `moment` runs once for each of `--moments`, one that takes `rare_moment` for every fourth."""
    count = int(str(metafunc.config.getoption("--moments")))
    for name, times in (("moment", count), ("rare_moment", max(1, count // 4))):
        if name in metafunc.fixturenames:
            fault = metafunc.function.__name__.removeprefix("test_").replace("_", " ")
            moments = [Moment(fault, n, SEED) for n in range(1, times + 1)]
            metafunc.parametrize(name, moments, ids=[f"moment-{m.number}-seed-{m.seed}" for m in moments])


@contextmanager
def staged() -> Generator[PrivateStack]:
    """A stage with the library in it."""
    with tempfile.TemporaryDirectory(prefix="offing-chaos-", ignore_cleanup_errors=True) as folder:
        stack = raised(Path(folder))
        try:
            asyncio.run(_fill(stack))
            yield stack
        finally:
            struck(stack)


async def _fill(stack: PrivateStack) -> None:
    uploads = [Upload(name, text.encode()) for name, text in DOCUMENTS.items()]
    async with Database(stack.servers.app_url, max_connections=2) as database:
        taken = await ingest_uploads(database, LOCAL_TENANT, uploads)
    assert {i.outcome for i in taken} == {"added"}, taken


@pytest.fixture(scope="module")
def stack() -> Iterator[PrivateStack]:
    with staged() as stack:
        yield stack


_undisturbed_rows: dict[Kind, checker.Rows] = {}


@pytest.fixture(scope="module")
def plain(stack: PrivateStack) -> dict[Kind, checker.Rows]:
    """What undisturbed runs of each kind leave; made once, on the first stage."""
    if not _undisturbed_rows:
        stack.lone_worker()
        trial = asyncio.run(_undisturbed(stack))
        _undisturbed_rows.update((s.kind, stack.facts(s.run)) for s in trial.subjects)
        assert {
            kind: checker.violations(rows) for kind, rows in _undisturbed_rows.items() if checker.violations(rows)
        } == {}
    return _undisturbed_rows


async def _undisturbed(stack: PrivateStack) -> Trial:
    async with connected(stack) as client:
        trial = await client.trial(Moment("nothing", 0, 0), "steady", *GRAPH_NAMES)
        trial.until_ended()
        return trial


@asynccontextmanager
async def connected(stack: PrivateStack) -> AsyncGenerator[Client]:
    async with (
        Database(stack.servers.app_url, max_connections=4) as database,
        BusNotifier(stack.servers.redis_url) as notifier,
    ):
        yield Client(stack, database, notifier)


@pytest.fixture
async def client(stack: PrivateStack) -> AsyncIterator[Client]:
    async with connected(stack) as client:
        yield client


@pytest.fixture(scope="session")
def begun() -> Iterator[Home]:
    """A home whose loop has its start; it came there in spite of everything that was killed on the way."""
    with tempfile.TemporaryDirectory(prefix="offing-loop-", ignore_cleanup_errors=True) as folder:
        home = Home(Path(folder))
        home.path.mkdir()
        first = home.loop(
            strike("48 demonstrations", "valkey"),
            strike("48 demonstrations", "worker", amid=True),
            strike("train forward", "postgres", times=2),
            strike("train saving", "engine", times=4),
            strike("train saved", "loop", times=6),
        )
        assert killed(first), first.output
        second = home.loop(strike(f"the initial version is {START}", "loop"))
        assert killed(second), second.output
        assert (len(first.struck), len(second.struck)) == (5, 1)
        home.save_copy("begun")
        yield home

"""Everything stands still for longer than a lease, in the middle of slow calls: nobody has claimed the runs, so their
workers keep them, and what the model answers meanwhile is recorded and not asked for again."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from offing.bus.hints import BusHints
from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.chaos.stage import Stage, raised, struck
from tests.wire.replies import Completion, Reply, Slow
from tests.wire.server import Received, WireServer
from tests.workers.processes import GRAPHS, LEASE

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

RUNS = 6

PAUSE = LEASE + 1.5
"""Seconds: past every lease."""

ANSWER_SECONDS = PAUSE + 3
"""So long a first answer takes; it comes after the pause."""


def answer(request: Received) -> Reply:
    """The first turn's slowly, the second's at once."""
    said = Completion(text='{"word": "salt"}')
    return Slow(said, ANSWER_SECONDS) if "turn 1" in json.dumps(request.body) else said


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Servers of their own, without a library."""
    with tempfile.TemporaryDirectory(prefix="offing-chaos-", ignore_cleanup_errors=True) as folder:
        stage = raised(Path(folder))
        try:
            yield stage
        finally:
            struck(stage)


def postgres(stage: Stage) -> list[int]:
    """The server and each of its processes."""
    server = psutil.Process(stage.supervisor.pid("postgres"))
    return [server.pid, *(child.pid for child in server.children(recursive=True))]


def send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)


@asynccontextmanager
async def asking(stage: Stage, server: WireServer) -> AsyncGenerator[list[UUID]]:
    """Runs, all of them waiting for their first answer."""
    choice = EngineChoice(engine="litellm", model="openai/stand-in", api_base=server.url, options={"form": "text"})
    request = RunRequest("Count", "counting", budget=Budget(turns=2), engines={"speaker": choice})
    async with Database(stage.servers.app_url, most=2) as database, BusHints(stage.servers.redis_url) as hints:
        graphs = installed(GRAPHS)
        runs = [(await submit(database, hints, LOCAL_TENANT, request, graphs=graphs)).run.id for _ in range(RUNS)]
        await asyncio.to_thread(stage.until, "every call", lambda: len(server.requests) == RUNS, 60)
        yield runs


@pytest.mark.parametrize("frozen", ["everything", "postgres", "workers"])
async def test_a_pause_past_the_lease_takes_no_run_from_its_worker_and_throws_no_answer_away(
    stage: Stage, frozen: str
) -> None:
    """Of two workers that stood still, one comes back a little before the other, whose runs it could sweep."""
    workers = [stage.spawn_worker(OFFING_GRAPHS=GRAPHS, OFFING_SLICE_SECONDS="600") for _ in range(2)]
    for worker in workers:
        await asyncio.to_thread(worker.await_ready)
    paused = [w.pid for w in workers] if frozen != "postgres" else []
    paused += postgres(stage) if frozen != "workers" else []
    async with WireServer(answer) as server, asking(stage, server) as runs:
        send(paused, signal.SIGSTOP)
        await asyncio.sleep(PAUSE)
        first, *others = reversed(paused)
        rest = [pid for pid in others if pid != workers[0].pid]
        send([first, *rest], signal.SIGCONT)
        await asyncio.sleep(1.0)
        send(paused, signal.SIGCONT)
        await asyncio.to_thread(stage.until, "all to end", lambda: all(map(stage.ended, runs)), 90)
        found = stage.rows("select status, stop_reason, fence from app.run where id = any(%s)", runs)
        assert found == [("done", "answered", 1)] * RUNS
        assert len(server.requests) == 2 * RUNS

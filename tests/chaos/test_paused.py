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

from offing.bus.notifier import BusNotifier
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.chaos.private_stack import PrivateStack, raised, struck
from tests.model_provider.replies import Completion, Reply, Slow
from tests.model_provider.server import Received, WireServer
from tests.workers.processes import GRAPHS, LEASE

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

RUNS = 6

PAUSE = LEASE + 1.5
"""Seconds: past every lease."""

ANSWER_SECONDS = PAUSE + 3
"""So long a first answer takes; it comes after the pause."""


def answer(request: Received) -> Reply:
    """The first turn's slowly, the second's at once."""
    text = Completion(text='{"word": "salt"}')
    return Slow(text, ANSWER_SECONDS) if "turn 1" in json.dumps(request.body) else text


@pytest.fixture
def stack() -> Iterator[PrivateStack]:
    """Servers of their own, without a library."""
    with tempfile.TemporaryDirectory(prefix="offing-chaos-", ignore_cleanup_errors=True) as folder:
        stack = raised(Path(folder))
        try:
            yield stack
        finally:
            struck(stack)


def postgres(stack: PrivateStack) -> list[int]:
    """The server and each of its processes."""
    server = psutil.Process(stack.supervisor.get_pid("postgres"))
    return [server.pid, *(child.pid for child in server.children(recursive=True))]


def send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)


@asynccontextmanager
async def slow_runs(stack: PrivateStack, server: WireServer) -> AsyncGenerator[list[UUID]]:
    """Runs, all of them waiting for their first answer."""
    choice = EngineConfig(
        engine="litellm", model="openai/stand-in", api_base=server.url, options={"output_mode": "text"}
    )
    request = RunRequest("Count", "counting", budget=Budget(max_turns=2), engines={"speaker": choice})
    async with (
        Database(stack.servers.app_url, max_connections=2) as database,
        BusNotifier(stack.servers.redis_url) as notifier,
    ):
        graphs = open_registry(GRAPHS)
        runs = [
            (await submit_run(database, notifier, LOCAL_TENANT, request, graphs=graphs)).run.id for _ in range(RUNS)
        ]
        await asyncio.to_thread(stack.until, "every call", lambda: len(server.requests) == RUNS, 60)
        yield runs


@pytest.mark.parametrize("frozen", ["everything", "postgres", "workers"])
async def test_a_pause_past_the_lease_takes_no_run_from_its_worker_and_throws_no_answer_away(
    stack: PrivateStack, frozen: str
) -> None:
    """Of two workers that stood still, one comes back a little before the other, whose runs it could sweep."""
    workers = [stack.spawn_worker(OFFING_EXTRA_GRAPHS=GRAPHS, OFFING_SLICE_MAX_SECONDS="600") for _ in range(2)]
    for worker in workers:
        await asyncio.to_thread(worker.await_ready)
    paused = [w.pid for w in workers] if frozen != "postgres" else []
    paused += postgres(stack) if frozen != "workers" else []
    async with WireServer(answer) as server, slow_runs(stack, server) as runs:
        send(paused, signal.SIGSTOP)
        await asyncio.sleep(PAUSE)
        first, *others = reversed(paused)
        rest = [pid for pid in others if pid != workers[0].pid]
        send([first, *rest], signal.SIGCONT)
        await asyncio.sleep(1.0)
        send(paused, signal.SIGCONT)
        await asyncio.to_thread(stack.until, "all to end", lambda: all(map(stack.ended, runs)), 90)
        rows = stack.rows("select status, stop_reason, fence from app.run where id = any(%s)", runs)
        assert rows == [("done", "answered", 1)] * RUNS
        assert len(server.requests) == 2 * RUNS

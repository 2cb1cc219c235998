"""The shipped platform for benchmarks: real servers, a real worker process, runs submitted as by the API."""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from offing.bus.live_events import StepsEvent
from offing.bus.notifier import BusNotifier
from offing.cli.hooks import build_hooks
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.core.step import Step, StepKind
from offing.local.servers import ServerUrls
from offing.local.stack import count_worker_processes, open_stack
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.settings import load_settings
from offing.storage import runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from tests.bench.graphs import NAMES

ROOT = Path(__file__).parents[2]


@contextmanager
def measured_stack(workers: int = 1, **environment: str) -> Generator[ServerUrls]:
    """Start durable embedded servers and workers with shipped settings, except for `environment`.

    `workers` 0 means as many processes as `offing up` starts on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="offing-bench-") as home:
        folders = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        expected = {"OFFING_HOME": home, "OFFING_EXTRA_GRAPHS": NAMES, "PYTHONPATH": folders, **environment}
        before = {name: os.environ.get(name) for name in expected}
        os.environ.update(expected)
        try:
            settings = load_settings(None)
            with open_stack(
                settings, build_hooks(), worker_count=workers or count_worker_processes(settings)
            ) as servers:
                yield servers
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def worker_pid() -> int:
    """Return the pid of the only worker process of the stack, a child of this process."""
    ours = ["pgrep", "-P", str(os.getpid()), "-f", "offing_workers"]
    return int(subprocess.run(ours, capture_output=True, text=True, check=True).stdout.split()[0])


@dataclass(frozen=True, slots=True)
class Timed:
    """Times of one run, in seconds since just before its submission."""

    run: UUID
    first_event: float
    """Until a subscriber had the first step of a worker."""
    result: float
    """Until the subscriber had the last step."""


@dataclass(frozen=True, slots=True)
class Client:
    """Submits runs and follows them without polling."""

    database: Database
    notifier: BusNotifier

    async def submit(self, request: RunRequest) -> RunRow:
        graphs = open_registry(NAMES)
        return (await submit_run(self.database, self.notifier, LOCAL_TENANT, request, graphs=graphs)).run

    async def timed(self, request: RunRequest) -> Timed:
        """Follow one run as the event stream does: read the log once, then the bus events."""
        began = time.perf_counter()
        run = await self.submit(request)
        first, seen = 0.0, 0
        async with self.notifier.live.subscribe(LOCAL_TENANT, {run.id}) as notices:
            notice: object = None
            while True:
                new = notice.steps if isinstance(notice, StepsEvent) else await self._steps(run.id, seen)
                if new and new[-1].seq > 1:
                    first = first or time.perf_counter() - began
                if new and new[-1].kind is StepKind.ENDED:
                    return Timed(run.id, first, time.perf_counter() - began)
                seen = new[-1].seq if new else seen
                notice = await anext(notices)

    async def _steps(self, run_id: UUID, after: int) -> Sequence[Step]:
        async with self.database.transaction(LOCAL_TENANT) as connection:
            return await steps.list_steps_after(connection, run_id, after, 1000)

    async def row(self, run_id: UUID) -> RunRow:
        async with self.database.transaction(LOCAL_TENANT) as connection:
            return await runs.get_run(connection, run_id)

    async def ended(self, run_id: UUID, every: float = 0.05) -> RunRow:
        """Return the run when it has ended. It is polled at this interval, which costs the run nothing."""
        while not (row := await self.row(run_id)).is_terminal:  # noqa: ASYNC110
            await asyncio.sleep(every)
        return row


@asynccontextmanager
async def client(servers: ServerUrls) -> AsyncGenerator[Client]:
    async with Database(servers.app_url, max_connections=16) as database, BusNotifier(servers.redis_url) as notifier:
        yield Client(database, notifier)


def request(graph: str, *, turns: int = 12, delay_ms: int | None = None) -> RunRequest:
    engines = {}
    if delay_ms is not None:
        options = {"answers": [{"word": "w{turn}"}], "delay_ms": delay_ms}
        engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    return RunRequest("Measure", graph=graph, budget=Budget(max_turns=turns), engines=engines)

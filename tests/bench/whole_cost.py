"""Everything that a run costs, and runs through HTTP: API, worker, Postgres and Valkey, with the client apart.

The client is this process. It submits runs to an API process and follows their event streams as a script of a user's
would. Bare LangGraph runs in this process, so that its cost is this process and Postgres.
"""

import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from offing.local.servers import ServerUrls
from offing.services.access import create_key
from offing.storage.migrate import LOCAL_TENANT
from tests.bench.bare import Bare, bare_saver
from tests.bench.graphs import NAMES, noop_graph
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import ROOT, Client, worker_pid
from tests.bench.protocol import at_once
from tests.ports import free_port

RUNS = 160
"""Runs of a round, for each number of clients."""

START_SECONDS = 60

CPU_AIM = Aim("at most 2.2", at_most=2.2, of_ratio=True)


@dataclass(frozen=True, slots=True)
class ApiProcess:
    """A running API process."""

    pid: int
    url: str
    key: str


async def whole_cost(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Measure runs of a graph that does nothing through HTTP, at 1, 8 and 32 clients."""
    key = (await create_key(client.database, LOCAL_TENANT, "bench")).key
    measurements: list[Measurement] = []
    with _running_api(servers, key) as api:
        async with _open_http(api) as http, bare_saver(servers.owner_url, lock=False) as saver:
            bare = Bare(noop_graph().compile(checkpointer=saver))
            await at_once(1, 10, lambda: _follow_run(http))
            for clients in (1, 8, 32):
                measurements += await _at_clients(clients, http, bare, api)
    return measurements


async def _at_clients(clients: int, http: httpx.AsyncClient, bare: Bare, api: ApiProcess) -> list[Measurement]:
    rates: list[float] = []

    async def work(one: Callable[[], Awaitable[object]]) -> None:
        rates.append(await at_once(clients, RUNS, one))

    ours = await _spent(api, lambda: work(lambda: _follow_run(http)))
    alone = await _spent(api, lambda: work(lambda: bare.run({"seen": 0})))
    beside = f"{clients} client{'s' if clients > 1 else ''}"
    servers = sum(seconds for name, seconds in ours.items() if name != "client")
    parts = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in ours.items())
    note = f"{parts} ms in the last round"
    return [
        Measurement(f"runs per second through HTTP, {beside}; bare in this process", (rates[0],), "/s", (rates[1],)),
        Measurement(
            f"CPU time of API, worker, Postgres and Valkey per run, {beside}; bare: its process and Postgres",
            (servers,), "ms", (alone["client"] + alone["postgres"],), aim=CPU_AIM if clients == 8 else None, note=note,
        ),
    ]  # fmt: skip


async def _spent(api: ApiProcess, work: Callable[[], Awaitable[None]]) -> Mapping[str, float]:
    """Return the CPU seconds per run of each kind of process while `work` lasts."""
    before = _cpu_seconds(api)
    await work()
    return {name: (after - before[name]) / RUNS for name, after in _cpu_seconds(api).items()}


def _cpu_seconds(api: ApiProcess) -> Mapping[str, float]:
    tree = psutil.Process().children(recursive=True)
    return {
        "api": _own_seconds([psutil.Process(api.pid)]),
        "worker": _own_seconds([psutil.Process(worker_pid())]),
        "postgres": _with_ended([one for one in tree if "postgres" in one.name()]),
        "valkey": _own_seconds([one for one in tree if "valkey" in one.name() or "redis" in one.name()]),
        "client": time.process_time(),
    }


def _own_seconds(processes: list[psutil.Process]) -> float:
    assert processes, "a program that is measured is not running"
    return sum(times.user + times.system for times in (one.cpu_times() for one in processes))


def _with_ended(processes: list[psutil.Process]) -> float:
    """Return the time of these processes and of their children that have ended, such as connections of Postgres."""
    ended = sum(times.children_user + times.children_system for times in (one.cpu_times() for one in processes))
    return _own_seconds(processes) + ended


@contextmanager
def _running_api(servers: ServerUrls, key: str) -> Generator[ApiProcess]:
    port, ready = free_port(), Path(os.environ["OFFING_HOME"], "api.ready")
    ready.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "OFFING_APP_DATABASE_URL": servers.app_url,
        "REDIS_URL": servers.redis_url,
        "OFFING_PORT": str(port),
        "OFFING_READY_FILE": str(ready),
        "OFFING_EXTRA_GRAPHS": NAMES,
        "PYTHONPATH": str(ROOT),
    }
    with ready.with_name("api.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "offing.api"], env=environment, stdout=log, stderr=log)
    try:
        _wait_until_ready(process, ready)
        yield ApiProcess(process.pid, f"http://127.0.0.1:{port}", key)
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], ready: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while not ready.exists():
        assert process.poll() is None, "the API process has ended"
        assert time.monotonic() < give_up, f"the API process was not ready after {START_SECONDS} s"
        time.sleep(0.05)


@asynccontextmanager
async def _open_http(api: ApiProcess) -> AsyncGenerator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {api.key}"}
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    async with httpx.AsyncClient(base_url=api.url, headers=headers, limits=limits, timeout=60) as http:
        yield http


async def _follow_run(http: httpx.AsyncClient) -> None:
    """Submit a run, and read its event stream until the server has sent the end."""
    response = await http.post("/api/v1/runs", json={"question": "Measure", "graph": "bench_noop"})
    assert response.status_code in (200, 201), response.text
    ended = False
    async with http.stream("GET", f"/api/v1/runs/{response.json()['id']}/events") as stream:
        assert stream.status_code == 200, stream.status_code
        async for line in stream.aiter_lines():
            ended = ended or line == "event: end"
    assert ended, "the stream ended before the run"

"""Everything that a run costs, and runs through HTTP: API, worker, Postgres and Valkey, with the client apart.

The client is this process. It submits runs to an API process and follows their event streams as a script of a user's
would. Bare LangGraph runs in this process, so that its cost is this process and Postgres.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import httpx
import psutil

from offing.local.servers import ServerUrls
from tests.bench.api_process import ApiProcess, create_key, open_api_process
from tests.bench.bare import Bare, bare_saver
from tests.bench.graphs import NAMES, noop_graph
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import ROOT, Client, worker_pid
from tests.bench.protocol import at_once
from tests.bench.ratios import cpu_seconds
from tests.ports import free_port

RUNS = 160
"""Runs of a round, for each number of clients."""

CPU_AIM = Aim("at most 2.2", at_most=2.2, of_ratio=True)


async def whole_cost(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Measure runs of a graph that does nothing through HTTP, at 1, 8 and 32 clients."""
    key = await create_key(client.database)
    measurements: list[Measurement] = []
    with open_api_process(ROOT, servers, free_port(), key, {"OFFING_EXTRA_GRAPHS": NAMES}) as api:
        async with open_http(api) as http, bare_saver(servers.owner_url, lock=False) as saver:
            bare = Bare(noop_graph().compile(checkpointer=saver))
            await at_once(1, 10, lambda: follow_run(http))
            for clients in (1, 8, 32):
                measurements += await _at_clients(clients, http, bare, api)
    return measurements


async def _at_clients(clients: int, http: httpx.AsyncClient, bare: Bare, api: ApiProcess) -> list[Measurement]:
    rates: list[float] = []

    async def work(one: Callable[[], Awaitable[object]]) -> None:
        rates.append(await at_once(clients, RUNS, one))

    ours = await spent(api, lambda: work(lambda: follow_run(http)))
    alone = await spent(api, lambda: work(lambda: bare.run({"seen": 0})))
    beside = f"{clients} client{'s' if clients > 1 else ''}"
    servers = sum(seconds for name, seconds in ours.items() if name != "client")
    parts = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in ours.items())
    note = f"{parts} ms in the first round"
    return [
        Measurement(f"runs per second through HTTP, {beside}; bare in this process", (rates[0],), "/s", (rates[1],)),
        Measurement(
            f"CPU time of API, worker, Postgres and Valkey per run, {beside}; bare: its process and Postgres",
            (servers,), "ms", (alone["client"] + alone["postgres"],), aim=CPU_AIM if clients == 8 else None, note=note,
        ),
    ]  # fmt: skip


async def spent(api: ApiProcess, work: Callable[[], Awaitable[None]], runs: int = RUNS) -> Mapping[str, float]:
    """Return the CPU seconds per run of each kind of process while `work` makes this number of runs."""
    before = _cpu_seconds(api)
    await work()
    return {name: (after - before[name]) / runs for name, after in _cpu_seconds(api).items()}


def _cpu_seconds(api: ApiProcess) -> Mapping[str, float]:
    api_and_worker = {"api": api.cpu_seconds, "worker": cpu_seconds(worker_pid())}
    return {**api_and_worker, **measure_servers(), "client": time.process_time()}


def measure_servers() -> Mapping[str, float]:
    """Return the CPU seconds of Postgres and Valkey so far."""
    tree = psutil.Process().children(recursive=True)
    return {
        "postgres": _with_ended([one for one in tree if "postgres" in one.name()]),
        "valkey": _own_seconds([one for one in tree if "valkey" in one.name() or "redis" in one.name()]),
    }


def _own_seconds(processes: list[psutil.Process]) -> float:
    assert processes, "a program that is measured is not running"
    return sum(times.user + times.system for times in (one.cpu_times() for one in processes))


def _with_ended(processes: list[psutil.Process]) -> float:
    """Return the time of these processes and of their children that have ended, such as connections of Postgres."""
    ended = sum(times.children_user + times.children_system for times in (one.cpu_times() for one in processes))
    return _own_seconds(processes) + ended


@asynccontextmanager
async def open_http(api: ApiProcess) -> AsyncGenerator[httpx.AsyncClient]:
    """Open a client with the key of the API, which keeps its connections."""
    headers = {"Authorization": f"Bearer {api.key}"}
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    async with httpx.AsyncClient(base_url=api.url, headers=headers, limits=limits, timeout=60) as http:
        yield http


async def follow_run(http: httpx.AsyncClient) -> None:
    """Submit a run, and read its event stream until the server has sent the end."""
    response = await http.post("/api/v1/runs", json={"question": "Measure", "graph": "bench_noop"})
    assert response.status_code in (200, 201), response.text
    ended = False
    async with http.stream("GET", f"/api/v1/runs/{response.json()['id']}/events") as stream:
        assert stream.status_code == 200, stream.status_code
        async for line in stream.aiter_lines():
            ended = ended or line == "event: end"
    assert ended, "the stream ended before the run"

"""Runs of LangGraph's own client: through Offing's API and a worker, and through bare LangGraph behind minimal HTTP.

The client is this process. Bare LangGraph has as many processes as Offing has beside its servers, and clients are
divided among them, so that both may use the same cores.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from langgraph_sdk import get_client

from offing.local.servers import ServerUrls
from tests.bench.api_process import create_key, open_api_process, wait_until_ready
from tests.bench.counting import counting
from tests.bench.graphs import NAMES
from tests.bench.measurement import Aim, Measurement, median
from tests.bench.platform import ROOT, Client, worker_pid
from tests.bench.protocol import RATE_AIMS
from tests.bench.ratios import cpu_seconds
from tests.bench.whole_cost import measure_servers
from tests.ports import free_port

RUNS = 96
"""Runs of a round, for each way and number of clients."""

BARE_PROCESSES = 2
"""Processes of bare LangGraph: as many as an API and a worker."""

FIRST_EVENT = Aim("under 15 ms", at_most=0.015)

NAMES_OF_LOCK = {"": "without the checkpointer's lock", "--lock": "with the checkpointer's lock"}


@dataclass(slots=True)
class Endpoint:
    """A server for LangGraph's clients, and what its runs took."""

    keys: Mapping[str, str]
    """The address of each process that answers, with its key. Empty means none."""
    pids: Mapping[str, Sequence[int]]
    """Its processes beside Postgres and Valkey, by what they are."""
    clients: Sequence[Any] = ()
    """One for each address, while runs are measured."""
    first_events: list[float] = field(default_factory=list[float])
    """Seconds from submission to the first event that a graph streamed."""

    async def wait(self, number: int) -> None:
        result = await self._choose(number).runs.wait(None, counting.name, input={"seen": 0})
        assert result == {"seen": 3}, result

    async def stream(self, number: int) -> None:
        began, last, has_begun = time.perf_counter(), None, False
        async for part in self._choose(number).runs.stream(None, counting.name, input={"seen": 0}):
            if part.event == "values" and not has_begun:
                has_begun = True
                self.first_events.append(time.perf_counter() - began)
            last = last if part.event == "end" else part.data
        assert last == {"seen": 3}, last

    def _choose(self, number: int) -> Any:
        return self.clients[number % len(self.clients)]

    def measure_cpu(self) -> Mapping[str, float]:
        """Return the CPU seconds so far, by what the processes are."""
        own = {name: sum(map(cpu_seconds, pids)) for name, pids in self.pids.items()}
        return {**own, **measure_servers(), "client": time.process_time()}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a number of runs took."""

    rate: float
    """Runs per second."""
    cpu: Mapping[str, float]
    """CPU seconds per run, by what the processes are."""


WAYS: Mapping[str, Callable[[Endpoint, int], Awaitable[None]]] = {"run": Endpoint.wait, "stream": Endpoint.stream}


async def langgraph_clients(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Measure stateless runs, waited for and streamed, at 1, 8 and 32 clients."""
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(_open_offing(client, servers))
        bare = {lock: await stack.enter_async_context(_open_bare(servers, lock)) for lock in NAMES_OF_LOCK}
        for endpoint in (ours, *bare.values()):
            await _take(endpoint, "stream", 2, 20)
            endpoint.first_events.clear()
        return [
            measurement
            for clients in RATE_AIMS
            for way in WAYS
            for measurement in await _compare(way, clients, ours, bare)
        ]


async def _compare(way: str, clients: int, ours: Endpoint, bare: Mapping[str, Endpoint]) -> list[Measurement]:
    taken = await _take(ours, way, clients)
    others = {lock: await _take(endpoint, way, clients) for lock, endpoint in bare.items()}
    beside = f"{clients} client{'s' if clients > 1 else ''}"
    least = RATE_AIMS[clients]
    rates = [
        Measurement(
            f"{way}s of LangGraph's client per second, {beside}; bare {NAMES_OF_LOCK[lock]}",
            (taken.rate,), "/s", (other.rate,),
            aim=None if lock else Aim(f"at least {least}", at_least=least, of_ratio=True),
        )
        for lock, other in others.items()
    ]  # fmt: skip
    note = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in taken.cpu.items())
    cpu = Measurement(
        f"CPU time of the servers per {way}, {beside}; bare: its processes and Postgres",
        (_sum_servers(taken.cpu),), "ms", (_sum_servers(others[""].cpu),), note=f"{note} ms in the first round",
    )  # fmt: skip
    return [*rates, cpu, *_first_events(clients, ours, bare[""])]


def _sum_servers(cpu: Mapping[str, float]) -> float:
    return sum(seconds for name, seconds in cpu.items() if name != "client")


def _first_events(clients: int, ours: Endpoint, bare: Endpoint) -> list[Measurement]:
    """Return the time to the first event of the streams since the last call."""
    times = [median(one.first_events) for one in (ours, bare) if one.first_events]
    ours.first_events, bare.first_events = [], []
    if len(times) < 2:
        return []
    beside = f"{clients} client{'s' if clients > 1 else ''}"
    what = f"from submission by LangGraph's client to the graph's first event, {beside}"
    return [Measurement(f"{what}, median", (times[0],), "ms", (times[1],), aim=FIRST_EVENT if clients == 1 else None)]


async def _take(endpoint: Endpoint, way: str, clients: int, runs: int = RUNS) -> Taken:
    """Measure runs over new connections, because servers close those that were idle."""

    async def go(number: int) -> None:
        for _ in range(runs // clients):
            await WAYS[way](endpoint, number)

    async with open_clients(endpoint.keys) as endpoint.clients:
        before, began = endpoint.measure_cpu(), time.perf_counter()
        await asyncio.gather(*(go(number) for number in range(clients)))
        seconds = time.perf_counter() - began
        spent = {name: (after - before[name]) / runs for name, after in endpoint.measure_cpu().items()}
    return Taken(runs / seconds, spent)


@asynccontextmanager
async def _open_offing(client: Client, servers: ServerUrls) -> AsyncGenerator[Endpoint]:
    key = await create_key(client.database)
    with open_api_process(ROOT, servers, free_port(), key, {"OFFING_EXTRA_GRAPHS": NAMES}) as api:
        yield Endpoint({f"{api.url}/langgraph": key}, {"api": (api.pid,), "worker": (worker_pid(),)})


@asynccontextmanager
async def _open_bare(servers: ServerUrls, lock: str) -> AsyncGenerator[Endpoint]:
    with ExitStack() as stack:
        processes = dict(stack.enter_context(_serve_bare(servers, lock)) for _ in range(BARE_PROCESSES))
        yield Endpoint(dict.fromkeys(processes, ""), {"bare": list(processes.values())})


@contextmanager
def _serve_bare(servers: ServerUrls, lock: str) -> Generator[tuple[str, int]]:
    """Serve bare LangGraph from a process of its own, and return its address and pid."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.bare_server", str(port), servers.owner_url, *filter(None, [lock])]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            wait_until_ready(process, port, "/ok")
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()


@asynccontextmanager
async def open_clients(addresses: Mapping[str, str]) -> AsyncGenerator[list[Any]]:
    """Open LangGraph's client for each address, with its key."""
    clients = [get_client(url=url, api_key=key or None) for url, key in addresses.items()]
    try:
        yield clients
    finally:
        for one in clients:
            await one.aclose()

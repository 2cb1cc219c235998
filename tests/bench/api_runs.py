"""What a run costs the API of several checkouts, over one database, one worker and one Valkey server.

    .venv/bin/python -m tests.bench.api_runs CHECKOUT… [--clients 4] [--rounds 4] [--runs 48] [--ways own,wait,stream]

Each checkout serves the API in a process of its own; the worker is that of this checkout. The checkouts take turns, so
that other work on the machine meets all of them. `own`: a question through `POST /api/v1/runs` whose events are
followed. `wait` and `stream`: a run without a thread of LangGraph's client.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import httpx

from offing.local.servers import ServerUrls
from offing.storage.pool import Database
from tests.bench.api_process import ApiProcess, create_key, open_api_process
from tests.bench.graphs import NAMES
from tests.bench.langgraph_clients import Endpoint, open_clients
from tests.bench.platform import ROOT, measured_stack
from tests.bench.protocol import at_once
from tests.bench.whole_cost import follow_run, open_http, spent
from tests.ports import free_port

WARM_UP_RUNS = 40


async def measure(api: ApiProcess, way: str, clients: int, runs: int) -> Mapping[str, float]:
    """Return the milliseconds of CPU time per run of each kind of process, and the runs per second."""
    endpoint, rates = Endpoint({f"{api.url}/langgraph": api.key}, {}), list[float]()
    async with open_http(api) as http, open_clients(endpoint.keys) as endpoint.clients:

        async def work() -> None:
            rates.append(await at_once(clients, runs, _choose_way(way, http, endpoint)))

        seconds = await spent(api, work, runs // clients * clients)
    return {**{name: 1e3 * value for name, value in seconds.items()}, "runs per second": rates[0]}


def _choose_way(way: str, http: httpx.AsyncClient, endpoint: Endpoint) -> Callable[[], Awaitable[None]]:
    ways: Mapping[str, Callable[[], Awaitable[None]]] = {
        "own": lambda: follow_run(http),
        "wait": lambda: endpoint.wait(0),
        "stream": lambda: endpoint.stream(0),
    }
    return ways[way]


async def compare(servers: ServerUrls, options: argparse.Namespace) -> None:
    checkouts: Sequence[Path] = options.checkouts or [ROOT]
    async with Database(servers.app_url, max_connections=2) as database:
        key = await create_key(database)
    with ExitStack() as stack:
        settings = {"OFFING_EXTRA_GRAPHS": NAMES}
        apis = [
            # The worker has only this checkout's versions of the graphs.
            stack.enter_context(open_api_process(one.resolve(), servers, free_port(), key, settings, ROOT))
            for one in checkouts
        ]
        for way in options.ways.split(","):
            for api in apis:
                await measure(api, way, options.clients, WARM_UP_RUNS)
            rows: list[list[Mapping[str, float]]] = [[] for _ in apis]
            for number in range(options.rounds):
                for index in sorted(range(len(apis)), reverse=number % 2 == 1):
                    rows[index].append(await measure(apis[index], way, options.clients, options.runs))
            for checkout, of_checkout in zip(checkouts, rows, strict=True):
                print(f"{way}, {options.clients} clients, {checkout}: {_describe(of_checkout)}", flush=True)
            for of_checkout in rows[1:]:
                ratios = [new["api"] / old["api"] for old, new in zip(rows[0], of_checkout, strict=True)]
                spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
                print(f"  CPU time of the API, of the first: {median(ratios):.2f} ({spread})", flush=True)


def _describe(rows: Sequence[Mapping[str, float]]) -> str:
    return ", ".join(f"{name} {median(row[name] for row in rows):.1f}" for name in rows[0])


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--runs", type=int, default=48)
    parser.add_argument("--ways", default="own,wait,stream")
    options = parser.parse_args(arguments)
    with measured_stack() as servers:
        asyncio.run(compare(servers, options))


if __name__ == "__main__":
    main(sys.argv[1:])

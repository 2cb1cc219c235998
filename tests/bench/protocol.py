"""Cost of a run on the platform, compared with LangGraph in process with its own checkpointer, measured in turns."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from offing.local.servers import ServerUrls
from tests.bench.bare import Bare, bare_saver
from tests.bench.graphs import bare_turns_graph, chain_graph, noop_graph
from tests.bench.measurement import Aim, Measurement, Samples, median, percentile
from tests.bench.platform import Client, request

RUNS = 160
"""Runs per round of throughput."""

TIMED = 100
"""Runs per round of latency."""

TURNS = 200

RATE_AIMS = {1: 0.5, 8: 0.5, 32: 0.7}
"""Share of the rate of bare LangGraph, by the number of clients."""


async def latency(client: Client) -> list[Measurement]:
    """Measure the time from submission to the first event and to the result, without polling."""
    for _ in range(10):
        await client.timed(request("bench_noop"))
    timed = [await client.timed(request("bench_noop")) for _ in range(TIMED)]
    first, result = [one.first_event for one in timed], [one.result for one in timed]
    return [
        *_percentiles("from submission to the worker's first event", first, Aim("under 8 ms", at_most=0.008)),
        *_percentiles("from submission to the result of a 3-node graph", result, Aim("under 15 ms", at_most=0.015)),
    ]


def _percentiles(what: str, values: Sequence[float], aim: Aim) -> list[Measurement]:
    return [
        Measurement(f"{what}, median", (median(values),), "ms", aim=aim),
        Measurement(f"{what}, 95th percentile", (percentile(values, 0.95),), "ms"),
    ]


async def at_once(clients: int, runs: int, one: Callable[[], Awaitable[object]]) -> float:
    """Return the runs per second with a number of clients, each of which starts its next run when one has ended."""

    async def go(count: int) -> None:
        for _ in range(count):
            await one()

    began = time.perf_counter()
    await asyncio.gather(*(go(runs // clients) for _ in range(clients)))
    return runs // clients * clients / (time.perf_counter() - began)


async def throughput(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Return the runs per second of a 3-node graph that does nothing."""
    measurements: list[Measurement] = []
    async with bare_saver(servers.owner_url, lock=False) as free, bare_saver(servers.owner_url, lock=True) as locked:
        for clients, least in RATE_AIMS.items():
            ours = await at_once(clients, RUNS, lambda: client.timed(request("bench_noop")))
            what = f"runs per second, {clients} client{'s' if clients > 1 else ''}"
            for name, saver in (("without the checkpointer's lock", free), ("with the checkpointer's lock", locked)):
                graph = Bare(noop_graph().compile(checkpointer=saver))
                bare = await at_once(clients, RUNS, lambda graph=graph: graph.run({"seen": 0}))
                aim = Aim(f"at least {least}", at_least=least, of_ratio=True) if saver is free else None
                measurements.append(Measurement(f"{what}; bare {name}", (ours,), "/s", (bare,), aim=aim))
    return measurements


async def per_turn(client: Client) -> list[Measurement]:
    """Return the wall time of a turn (role call, tool call, memory record), also without the platform."""
    timed = await client.timed(request("bench_turns", turns=TURNS))
    ours = (timed.result - timed.first_event) / TURNS
    bare = await Bare(bare_turns_graph(TURNS).compile()).run({"turn": 0, "last": 0}) / TURNS
    aim = Aim("under 3.5 ms", at_most=0.0035)
    return [
        Measurement("wall time of a turn; bare in memory", (ours,), "ms", (bare,)),
        Measurement("wall time of a turn minus the same graph without the platform", (ours - bare,), "ms", aim=aim),
    ]


async def supersteps(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Return the durable supersteps per second of one run: each is in Postgres before the next begins."""
    measurements: list[Measurement] = []
    for name, lock in (("without the checkpointer's lock", False), ("with the checkpointer's lock", True)):
        async with bare_saver(servers.owner_url, lock=lock) as saver:
            timed = await client.timed(request("bench_chain", turns=1000))
            ours: Samples = (500 / (timed.result - timed.first_event),)
            graph: Any = chain_graph().compile(checkpointer=saver)
            bare = (500 / await Bare(graph).run({"seen": 0}),)
            measurements.append(Measurement(f"durable supersteps per second, one run; bare {name}", ours, "/s", bare))
    return measurements

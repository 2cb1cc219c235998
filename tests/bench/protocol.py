"""What a run costs on the platform, beside LangGraph in process with its own saver, in turn in the same minutes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from offing.local.servers import Servers
from tests.bench.bare import Bare, bare_saver
from tests.bench.figures import Figure, median, ms, percentile
from tests.bench.graphs import bare_turns_graph, chain_graph, noop_graph
from tests.bench.platform import Client, request

ROUNDS = 3
"""Best of so many, ours and bare by turns."""


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def latency(client: Client) -> list[Figure]:
    """Submit to first event and to result, followed without polling."""
    for _ in range(10):
        await client.timed(request("bench_noop"))
    timed = [await client.timed(request("bench_noop")) for _ in range(200)]
    first, result = [t.first_event for t in timed], [t.result for t in timed]
    return [
        Figure(
            "submit to a worker's first event, p50 (p95)",
            f"{ms(median(first))} ({ms(percentile(first, 0.95))})",
            aim="p50 under 20 ms",
            met=median(first) < 0.020,
        ),
        Figure(
            "submit to result of a 3-node graph, p50 (p95)",
            f"{ms(median(result))} ({ms(percentile(result, 0.95))})",
            aim="p50 under 40 ms",
            met=median(result) < 0.040,
        ),
    ]


async def at_once(clients: int, runs: int, one: Callable[[], Awaitable[object]]) -> float:
    """Runs a second with so many clients, each of which starts its next run when one has ended."""

    async def go(count: int) -> None:
        for _ in range(count):
            await one()

    began = time.perf_counter()
    await asyncio.gather(*(go(runs // clients) for _ in range(clients)))
    return runs // clients * clients / (time.perf_counter() - began)


async def throughput(client: Client, servers: Servers, worker: int) -> list[Figure]:
    """Runs a second, and CPU a run, of a 3-node graph that does nothing."""
    figures: list[Figure] = []
    async with bare_saver(servers.owner_url, lock=False) as free, bare_saver(servers.owner_url, lock=True) as locked:
        ours_cpu, bare_cpu = list[float](), list[float]()
        for clients in (1, 8, 32):
            rates: dict[str, float] = {}
            for _ in range(ROUNDS):
                before = cpu_seconds(worker), time.process_time()
                rate = await at_once(clients, 160, lambda: client.timed(request("bench_noop")))
                rates["ours"] = max(rates.get("ours", 0), rate)
                ours_cpu.append((cpu_seconds(worker) - before[0]) / 160)
                for name, saver in (("free", free), ("locked", locked)):
                    graph = Bare(noop_graph().compile(checkpointer=saver))
                    began = time.process_time()
                    rate = await at_once(clients, 160, lambda graph=graph: graph.run({"seen": 0}))
                    rates[name] = max(rates.get(name, 0), rate)
                    if name == "free":
                        bare_cpu.append((time.process_time() - began) / 160)
            figures.append(
                Figure(
                    f"runs a second, {clients} client{'s' if clients > 1 else ''}",
                    f"{rates['ours']:.0f}",
                    f"{rates['free']:.0f} without the saver's lock, {rates['locked']:.0f} with it",
                    f"{rates['ours'] / rates['free']:.2f}",
                )
            )
    ratio = min(ours_cpu) / min(bare_cpu)
    cpu = Figure(
        "CPU of the worker a run, 3-node graph that does nothing",
        ms(min(ours_cpu)),
        f"{ms(min(bare_cpu))} without the saver's lock",
        f"{ratio:.2f}",
        "under 2",
        ratio < 2,
    )
    return [cpu, *figures]


async def per_turn(client: Client) -> list[Figure]:
    """Wall time of a turn (role call, tool call, memory record) less that of the same graph without the platform."""
    turns, ours, bare = 200, list[float](), list[float]()
    for _ in range(ROUNDS):
        timed = await client.timed(request("bench_turns", turns=turns))
        ours.append((timed.result - timed.first_event) / turns)
        bare.append(await Bare(bare_turns_graph(turns).compile()).run({"turn": 0, "last": 0}) / turns)
    over = min(ours) - min(bare)
    return [
        Figure(
            "wall a turn, less the same graph without the platform",
            f"{ms(over)} ({ms(min(ours))} in all)",
            ms(min(bare)),
            aim="under 5 ms",
            met=over < 0.005,
        )
    ]


async def supersteps(client: Client, servers: Servers) -> list[Figure]:
    """Durable supersteps a second of one run: each is in Postgres before the next begins."""
    ours, free, locked = list[float](), list[float](), list[float]()
    async with bare_saver(servers.owner_url, lock=False) as a, bare_saver(servers.owner_url, lock=True) as b:
        for _ in range(ROUNDS):
            timed = await client.timed(request("bench_chain", turns=1000))
            ours.append(500 / (timed.result - timed.first_event))
            for rates, saver in ((free, a), (locked, b)):
                graph: Any = chain_graph().compile(checkpointer=saver)
                rates.append(500 / await Bare(graph).run({"seen": 0}))
    return [
        Figure(
            "durable supersteps a second, one run",
            f"{max(ours):.0f}",
            f"{max(free):.0f} without the saver's lock, {max(locked):.0f} with it",
            f"{max(ours) / max(free):.2f}",
        )
    ]

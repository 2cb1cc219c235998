"""CPU time of the worker compared with that of bare LangGraph for the same graph, in the same minutes.

Ratios are valid on any machine, and CPU time hardly depends on other work of the machine. `python -m tests.bench
--guard` therefore checks this part.
"""

import time
from collections.abc import Awaitable, Callable

import psutil

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.local.servers import ServerUrls
from offing.services.rollouts import BatchRequest
from tests.bench.bare import Bare, bare_saver
from tests.bench.graphs import bare_turns_graph, noop_graph
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client, request, worker_pid
from tests.bench.protocol import at_once
from tests.bench.rollouts import collected, new_tasks

RUNS, CLIENTS = 96, 8

ROLLOUTS = {("exit", 3): 96, ("exit", 20): 48, ("sync", 20): 24}
"""Number of rollouts by durability and turns."""


async def cpu_ratios(client: Client, servers: ServerUrls) -> list[Measurement]:
    """Measure the CPU time per run and per rollout, without that of Postgres and Redis."""
    async with bare_saver(servers.owner_url, lock=False) as saver:
        noop = Bare(noop_graph().compile(checkpointer=saver))
        measurements = [
            Measurement(
                "CPU time of the worker per run, 3-node graph that does nothing",
                (await _of_worker(RUNS, lambda: at_once(CLIENTS, RUNS, lambda: client.timed(request("bench_noop")))),),
                "ms",
                (await _of_this_process(RUNS, lambda: at_once(CLIENTS, RUNS, lambda: noop.run({"seen": 0}))),),
                aim=Aim("at most 1.5", at_most=1.5, of_ratio=True),
            )
        ]
        for (durability, turns), count in ROLLOUTS.items():
            bare = Bare(bare_turns_graph(turns).compile(checkpointer=saver), durability)
            ours = await _of_worker(count, lambda d=durability, t=turns, n=count: _rollouts(client, d, t, n))
            alone = await _of_this_process(
                count, lambda bare=bare, n=count: at_once(CLIENTS, n, lambda: bare.run({"turn": 0, "last": 0}))
            )
            what = f"CPU time of the worker per rollout of {turns} turns, durability {durability}"
            measurements.append(Measurement(what, (ours,), "ms", (alone,)))
    return measurements


async def _rollouts(client: Client, durability: str, turns: int, count: int) -> None:
    script = EngineConfig(engine="scripted", options={"answers": [{"word": "w{turn}"}]})
    ids, budget = await new_tasks(client, count // 8), Budget(max_turns=turns)
    expected = BatchRequest("bench_turns", ids, 8, engines={"speaker": script}, budget=budget, durability=durability)
    await collected(client, expected)


async def _of_worker(count: int, work: Callable[[], Awaitable[object]]) -> float:
    pid = worker_pid()
    before = cpu_seconds(pid)
    await work()
    return (cpu_seconds(pid) - before) / count


async def _of_this_process(count: int, work: Callable[[], Awaitable[object]]) -> float:
    before = time.process_time()
    await work()
    return (time.process_time() - before) / count


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system

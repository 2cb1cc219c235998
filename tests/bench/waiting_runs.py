"""A thousand concurrent runs that mostly wait, on one worker process."""

import asyncio
import time
from pathlib import Path

from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client, request, worker_pid

RUNS, CALLS, SECONDS = 1000, 10, 10


def resident_bytes(pid: int) -> int:
    """Return the memory that a process uses now."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


async def many_waiting(client: Client, runs: int = RUNS) -> list[Measurement]:
    """Measure from the first submission to the end of the last run."""
    worker, expected = worker_pid(), request("bench_waits", turns=CALLS, delay_ms=SECONDS * 1000)
    began = time.perf_counter()
    submitted: list[asyncio.Task[object]] = []
    gate = asyncio.Semaphore(16)
    maximum = 0

    async def one() -> object:
        async with gate:
            run = await client.submit(expected)
        await asyncio.sleep(CALLS * SECONDS - 5)
        return await client.ended(run.id, every=1.0)

    submitted = [asyncio.create_task(one()) for _ in range(runs)]
    while not all(task.done() for task in submitted):
        maximum = max(maximum, resident_bytes(worker))
        await asyncio.sleep(1)
    for task in submitted:
        task.result()
    wall = time.perf_counter() - began
    share, gigabytes = CALLS * SECONDS / wall, maximum / 1e9
    return [
        Measurement(
            f"{runs:,} concurrent runs of {CALLS} calls that wait {SECONDS} s each, one worker process",
            (wall,),
            "s",
            (CALLS * SECONDS,),
            "(ideal)",
            (share,),
            "of ideal",
            Aim("at least 0.80", at_least=0.8, of_ratio=True),
        ),
        Measurement("its maximum memory", (gigabytes,), "GB", aim=Aim("under 2 GB", at_most=2)),
    ]

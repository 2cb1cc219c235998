"""`make bench`: measures, prints, and writes docs/benchmarks.md between its marks.

`python -m tests.bench export …` measures a part, or several, of `PARTS`, and writes nothing.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from offing.local.servers import Servers
from tests.bench.asking import cold_and_warm
from tests.bench.engine import engine_speed
from tests.bench.export import export_speed
from tests.bench.figures import Figure, machine, table
from tests.bench.flows import flow_accuracy
from tests.bench.long import long_run
from tests.bench.loop import loop_speed
from tests.bench.pages import pages_speed
from tests.bench.platform import client, measured_stack
from tests.bench.policy import policy_speed
from tests.bench.protocol import latency, per_turn, supersteps, throughput
from tests.bench.record import bytes_a_token
from tests.bench.rollouts import rollouts_a_second
from tests.bench.rounds import long_research
from tests.bench.sandbox import sandbox_speed
from tests.bench.sdk import per_node
from tests.bench.trainer import trainer_speed
from tests.bench.waiting import RUNS, many_waiting

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"

BEGIN, END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"

PARTS = (
    *("latency", "throughput", "turns", "supersteps", "long", "rollouts", "flows", "rounds", "record"),
    *("waiting", "sdk", "ask", "engine", "export", "trainer", "loop", "sandbox", "policy", "pages"),
)


ALONE = {
    "ask": cold_and_warm,
    "engine": engine_speed,
    "export": export_speed,
    "trainer": trainer_speed,
    "loop": loop_speed,
    "sandbox": sandbox_speed,
    "policy": policy_speed,
    "pages": pages_speed,
}
"""Parts that start what they need themselves."""


def worker_pid() -> int:
    """The one worker process that our stack started: a child of this process."""
    ours = ["pgrep", "-P", str(os.getpid()), "-f", "offing_workers"]
    return int(subprocess.run(ours, capture_output=True, text=True, check=True).stdout.split()[0])


async def shipped(parts: set[str], servers: Servers) -> list[Figure]:
    """Everything that is measured with shipped settings."""
    figures: list[Figure] = []
    async with client(servers) as one:
        if "throughput" in parts:
            figures += await throughput(one, servers, worker_pid())
        if "latency" in parts:
            figures += await latency(one)
        if "turns" in parts:
            figures += await per_turn(one)
        if "long" in parts:
            figures += await long_run(one, servers)
        if "supersteps" in parts:
            figures += await supersteps(one, servers)
        if "flows" in parts:
            figures += await flow_accuracy(one)
        if "rounds" in parts:
            figures += await long_research(one, servers, worker_pid())
        if "sdk" in parts:
            figures += await per_node(one)
        if "record" in parts:
            figures += await bytes_a_token(one, servers.owner_url)
    return figures


async def collecting(servers: Servers) -> list[Figure]:
    async with client(servers) as one:
        return await rollouts_a_second(one)


async def waiting(servers: Servers) -> list[Figure]:
    async with client(servers) as one:
        return await many_waiting(one, worker_pid())


def main() -> None:
    parts, about = set(sys.argv[1:]) or set(PARTS), machine()
    figures: list[Figure] = []
    if parts - {"rollouts", "waiting", *ALONE}:
        with measured_stack() as servers:
            figures += asyncio.run(shipped(parts, servers))
    if "rollouts" in parts:
        with measured_stack(workers=0) as servers:
            figures += asyncio.run(collecting(servers))
    if "waiting" in parts:
        with measured_stack(OFFING_WORKER_CONCURRENCY=str(RUNS)) as servers:
            figures += asyncio.run(waiting(servers))
    for part, measure in ALONE.items():
        if part in parts:
            figures += measure()
    text = f"Measured on {about}.\n\n{table(figures)}\n"
    print(text)
    if parts == set(PARTS):
        write(text)


def write(text: str) -> None:
    """Replace what stands between the marks."""
    page = PAGE.read_text()
    head, rest = page.split(BEGIN, 1)
    PAGE.write_text(f"{head}{BEGIN}\n{text}{END}{rest.split(END, 1)[1]}")


main()

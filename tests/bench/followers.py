"""How late followers of runs get each step: 200 connections, ten on each of 20 active runs.

    .venv/bin/python -m tests.bench.followers [CHECKOUT…] [--rounds 3]

Each checkout serves the API in a process of its own. The steps of the runs are written and published by this process as
a worker does, and read by clients that speak HTTP over sockets. The lag of a step is the time from the end of its
commit to its arrival at a client, so it contains the publication, Redis, the API and the client. Each step is written
at a random moment within its interval.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from uuid import UUID

from offing.bus.live import LiveBus
from offing.clock import new_id
from offing.core.run import FencingToken
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.local import ServerUrls
from offing.storage import claims, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.bench.api_process import ApiProcess, create_key, open_api_process
from tests.bench.servers import open_migrated_servers

ROOT = Path(__file__).parents[2]

LEASE_SECONDS = 600.0

RUN_COUNT, FOLLOWERS_PER_RUN = 20, 10

STEP_INTERVAL_SECONDS = 0.5

ADD_RUN = """
    with t as (insert into thread (id, tenant_id, title, kind) values (%(id)s, %(tenant)s, 'bench', 'interactive'))
    insert into run (id, tenant_id, thread_id, kind, graph, graph_version, question, engines, tool_policy,
                     tool_policy_sha256, budget, status)
    values (%(id)s, %(tenant)s, %(id)s, 'interactive', 'agentflow', '1', 'Why is the sea salt?', '{}', '{}', '',
            '{"max_turns": 100}', 'queued')
"""


@dataclass(slots=True)
class Lags:
    committed_at: dict[tuple[UUID, int], float] = field(default_factory=dict[tuple[UUID, int], float])
    arrivals: list[tuple[UUID, int, float]] = field(default_factory=list[tuple[UUID, int, float]])

    def list_seconds(self) -> list[float]:
        """Return the lag of each step at each client. A step may arrive before its commit was noticed here."""
        return [
            max(0.0, arrived_at - self.committed_at[run_id, seq])
            for run_id, seq, arrived_at in self.arrivals
            if (run_id, seq) in self.committed_at
        ]


async def add_run(database: Database) -> FencingToken:
    run_id = new_id()
    async with database.transaction(LOCAL_TENANT) as connection:
        await connection.execute(ADD_RUN, {"id": run_id, "tenant": LOCAL_TENANT})
    claim = await claims.claim_run(database, run_id, "bench", LEASE_SECONDS)
    assert claim is not None
    return claim.fence


async def write_steps(database: Database, bus: LiveBus, fence: FencingToken, until: float, lags: Lags) -> None:
    """Append a step in each interval and publish it after its commit."""
    draw = random.Random(fence.run_id.int)
    while time.monotonic() < until:
        before = draw.random() * STEP_INTERVAL_SECONDS
        await asyncio.sleep(before)
        draft = StepDraft(StepKind.TOOL_RESULT, "Searched the library for sea salt", {"text": "salt"}, label="search")
        async with database.transaction(LOCAL_TENANT) as connection:
            created = await steps.append_steps(connection, fence, LEASE_SECONDS, [draft], UsageDelta(turns=1))
        lags.committed_at[fence.run_id, created[-1].seq] = time.perf_counter()
        await bus.publish_steps(LOCAL_TENANT, fence.run_id, created)
        await asyncio.sleep(STEP_INTERVAL_SECONDS - before)


async def follow(api: ApiProcess, run_id: UUID, lags: Lags, connected: asyncio.Semaphore) -> None:
    """Read the stream of a run and note the lag of each step that was written after the stream began."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    request = f"GET /api/v1/runs/{run_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {api.key}\r\n\r\n"
    writer.write(request.encode())
    status = await reader.readline()
    assert b" 200 " in status, status
    is_connected = False
    try:
        while line := await reader.readline():
            if not is_connected and line.startswith(b"event: run"):
                is_connected = True
                connected.release()
            if line.startswith(b"id: "):
                lags.arrivals.append((run_id, int(line[4:]), time.perf_counter()))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def measure_lags(api: ApiProcess, servers: ServerUrls, seconds: float) -> tuple[list[float], float]:
    """Return the lag of each step at each client, and the CPU time of the API per second."""
    bus, lags, connected = LiveBus(servers.redis_url), Lags(), asyncio.Semaphore(0)
    try:
        async with Database(servers.app_url, max_connections=8) as database:
            fences = [await add_run(database) for _ in range(RUN_COUNT)]
            followers = [
                asyncio.create_task(follow(api, fence.run_id, lags, connected))
                for _ in range(FOLLOWERS_PER_RUN)
                for fence in fences
            ]
            for _ in followers:
                await asyncio.wait_for(connected.acquire(), 60)
            began, cpu, until = time.monotonic(), api.cpu_seconds, time.monotonic() + seconds
            await asyncio.gather(*(write_steps(database, bus, fence, until, lags) for fence in fences))
            used = (api.cpu_seconds - cpu) / (time.monotonic() - began)
            expected = len(lags.committed_at) * FOLLOWERS_PER_RUN
            async with asyncio.timeout(30):
                while len(lags.list_seconds()) < expected:  # noqa: ASYNC110 - they arrive in 200 tasks
                    await asyncio.sleep(0.2)
            for follower in followers:
                follower.cancel()
            await asyncio.gather(*followers, return_exceptions=True)
    finally:
        await bus.close()
    return lags.list_seconds(), used


async def measure_checkout(checkout: Path, servers: ServerUrls, port: int, key: str, seconds: float) -> list[float]:
    """Return p50, p95 and p99 of the lag in milliseconds, and the CPU time of the API per second."""
    with open_api_process(checkout, servers, port, key) as api:
        lags, cpu = await measure_lags(api, servers, seconds)
    at = quantiles(lags, n=100)
    return [1000 * at[49], 1000 * at[94], 1000 * at[98], cpu]


async def measure(checkouts: Sequence[Path], rounds: int, port: int, seconds: float) -> None:
    with open_migrated_servers() as (servers, _):
        async with Database(servers.app_url, max_connections=2) as database:
            key = await create_key(database)
        figures: dict[Path, list[list[float]]] = {checkout: [] for checkout in checkouts}
        for _ in range(rounds):
            for checkout in checkouts:
                figures[checkout].append(await measure_checkout(checkout, servers, port, key, seconds))
    for checkout, rows in figures.items():
        p50, p95, p99, cpu = ([row[n] for row in rows] for n in range(4))
        print(
            f"{checkout}: lag p50 {median(p50):.1f} ms, p95 {median(p95):.1f} ms ({min(p95):.1f} to {max(p95):.1f}), "
            f"p99 {median(p99):.1f} ms, API {median(cpu):.2f} s of CPU per s ({min(cpu):.2f} to {max(cpu):.2f})"
        )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--port", type=int, default=17895)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args(arguments)
    asyncio.run(measure(options.checkouts or [ROOT], options.rounds, options.port, options.seconds))


if __name__ == "__main__":
    main(sys.argv[1:])

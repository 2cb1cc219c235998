"""Collecting rollouts: rollouts per second with a thousand concurrent ones, shipped settings, and as many worker
processes as `offing up` starts."""

import asyncio
import time
from typing import LiteralString
from uuid import UUID

from offing.clock import new_id
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services import rollouts, tasks
from offing.services.graphs import open_registry
from offing.services.rollouts import BatchRequest
from offing.services.tasks import TaskSpec
from offing.storage.migrate import LOCAL_TENANT
from tests.bench.graphs import NAMES
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client

ROLLOUTS, GROUP = 1000, 8

PUBLISHED = {3: 50.05, 20: 29.41}
"""Rollouts per second that Agent Lightning v0.3.0 publishes for its Mongo store: 1,000 runners of 3 turns, and 512 of
20, on one machine with 32 or 64 cores."""

LEFT: LiteralString = "select count(*) from rollout join rollout_group g on g.id = group_id where g.state = 'open'"


async def rollouts_per_second(client: Client) -> list[Measurement]:
    """Use a scripted role call, a tool call and a memory record per turn, in groups of eight; the answer is scored."""
    measurements: list[Measurement] = []
    for turns, published in PUBLISHED.items():
        rates = {d: await _rate(client, turns, d) for d in ("exit", "sync")}
        what = f"rollouts per second, {turns} turns, {ROLLOUTS:,} concurrent, durability"
        aim = Aim(f"over {published:.0f}, published by another project for 32 to 64 cores", at_least=published)
        measurements += [
            Measurement(f"{what} exit", (rates["exit"],), "/s", aim=aim),
            Measurement(f"{what} sync", (rates["sync"],), "/s", (), "", (rates["sync"] / rates["exit"],), "of exit"),
        ]
    return measurements


async def _rate(client: Client, turns: int, durability: str) -> float:
    expected = await new_tasks(client, ROLLOUTS // GROUP)
    script = EngineConfig(engine="scripted", options={"answers": [{"word": "w{turn}"}]})
    request = BatchRequest(
        "bench_turns",
        expected,
        GROUP,
        engines={"speaker": script},
        budget=Budget(max_turns=turns),
        durability=durability,
    )
    began = time.perf_counter()
    await collected(client, request)
    return len(expected) * GROUP / (time.perf_counter() - began)


async def new_tasks(client: Client, count: int) -> tuple[UUID, ...]:
    """Return tasks that no group has used."""
    about = new_id()
    specs = [TaskSpec(question=f"What is {n} of {about}?", answers=["1"]) for n in range(count)]
    return tuple((await tasks.store_tasks(client.database, LOCAL_TENANT, "bench", specs)).task_ids)


async def collected(client: Client, request: BatchRequest) -> None:
    """Create a batch, and return when all of its groups are complete."""
    await rollouts.create_batch(client.database, client.notifier, LOCAL_TENANT, request, graphs=open_registry(NAMES))
    while await _open(client):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def _open(client: Client) -> int:
    async with client.database.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute(LEFT)).fetchone()
    assert row is not None
    return row[0]

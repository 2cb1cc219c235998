"""Questions of two tenants while a thousand rollouts of one of them are queued: time to the first event and the result.

The times are those of the database, from the submission on.
"""

import asyncio
from typing import LiteralString
from uuid import UUID

import psycopg

from offing.clock import new_id
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.local.servers import ServerUrls
from offing.services import rollouts
from offing.services.graphs import open_registry
from offing.services.rollouts import BatchRequest
from offing.services.runs import submit_run
from offing.storage.migrate import LOCAL_TENANT
from tests.bench.graphs import NAMES
from tests.bench.measurement import Aim, Measurement, median, percentile
from tests.bench.platform import Client, client, measured_stack, request
from tests.bench.rollouts import new_tasks

WORKERS = (1, 2)

ROLLOUTS, GROUP, TURNS, MODEL_MS = 1000, 8, 20, 1000
"""More rollouts than two processes have slots for: count, turns, and milliseconds per model call."""

QUESTIONS = 50
"""Questions of each tenant, one after the other."""

TIMES: LiteralString = """
    select extract(epoch from step.at - run.created_at)::float8,
           extract(epoch from run.ended_at - run.created_at)::float8
      from run join step on step.run_id = run.id and step.seq = 2 where run.id = %s and run.ended_at is not null
"""

FULL: LiteralString = "select count(*) from run where kind = 'rollout' and status = 'running'"

Times = list[tuple[float, float]]
"""Return the seconds to the first event and to the result of each question."""


def fairness() -> list[Measurement]:
    """Measure with one worker process and with two."""
    return [metric for workers in WORKERS for metric in _measured(workers)]


def _measured(workers: int) -> list[Measurement]:
    with measured_stack(workers=workers) as servers:
        return asyncio.run(_beside_rollouts(servers, workers))


async def _beside_rollouts(servers: ServerUrls, workers: int) -> list[Measurement]:
    async with client(servers) as one:
        other = _another_tenant(servers)
        await _ask_questions(one, LOCAL_TENANT, 3)
        idle = await _ask_questions(one, LOCAL_TENANT, QUESTIONS)
        await _collect(one)
        while await _running(one) < 150 * workers:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        mine, theirs = await asyncio.gather(
            *(_ask_questions(one, tenant, QUESTIONS) for tenant in (LOCAL_TENANT, other))
        )
    beside = f"during {ROLLOUTS:,} rollouts, {workers} worker process{'es' if workers > 1 else ''}"
    return [
        _measurement(
            f"first event of an interactive run, p95, {beside}", mine, idle, 0, Aim("within 1 s", at_most=1.0)
        ),
        _measurement(
            f"first event of another tenant's run, p95, {beside}", theirs, idle, 0, Aim("within 2 s", at_most=2.0)
        ),
        _measurement(f"result of a 3-node graph, p95, {beside}", mine + theirs, idle, 1),
    ]


def _measurement(what: str, busy: Times, idle: Times, which: int, aim: Aim | None = None) -> Measurement:
    beside, alone = ([one[which] for one in some] for some in (busy, idle))
    note = f"p50 {1e3 * median(beside):,.0f} ms"
    return Measurement(what, (percentile(beside, 0.95),), "ms", (percentile(alone, 0.95),), "idle", aim=aim, note=note)


def _another_tenant(servers: ServerUrls) -> UUID:
    tenant = new_id()
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        owner.execute("insert into app.tenant (id, name) values (%s, 'other')", (tenant,))
    return tenant


async def _ask_questions(client: Client, tenant_id: UUID, questions: int) -> Times:
    return [await _times(client, tenant_id) for _ in range(questions)]


async def _times(client: Client, tenant_id: UUID) -> tuple[float, float]:
    graphs = open_registry(NAMES)
    run = (await submit_run(client.database, client.notifier, tenant_id, request("bench_noop"), graphs=graphs)).run
    while True:
        async with client.database.transaction(tenant_id) as connection:
            row = await (await connection.execute(TIMES, (run.id,))).fetchone()
        if row is not None:
            return row[0], row[1]
        await asyncio.sleep(0.02)


async def _collect(client: Client) -> None:
    expected = await new_tasks(client, ROLLOUTS // GROUP)
    script = {"answers": [{"word": "w{turn}"}], "delay_ms": MODEL_MS}
    engines = {"speaker": EngineConfig(engine="scripted", options=script)}
    batch = BatchRequest("bench_turns", expected, GROUP, engines, budget=Budget(max_turns=TURNS), durability="sync")
    await rollouts.create_batch(client.database, client.notifier, LOCAL_TENANT, batch, graphs=open_registry(NAMES))


async def _running(client: Client) -> int:
    async with client.database.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute(FULL)).fetchone()
    assert row is not None
    return row[0]

"""A message is a hint: it may come many times, late, or never."""

import asyncio

from offing.bus.hints import BusHints
from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from tests.workers.conftest import Platform
from tests.workers.processes import ALL_GRAPHS


async def test_fifty_hints_make_one_claim(standing: Platform) -> None:
    run = await standing.submit(RunRequest("Count", "counting", budget=Budget(turns=20)))
    await asyncio.gather(*(standing.hints.wake(run.id) for _ in range(50)))
    ended = await standing.ended(run.id)
    kinds = [s.kind for s in await standing.steps(run.id)]
    assert (ended.status, ended.fence) == (RunStatus.DONE, 1)
    assert kinds.count(StepKind.STARTED) == 1
    assert kinds.count(StepKind.TOOL) == 20


async def test_a_run_submitted_while_redis_is_away_runs_later(standing: Platform) -> None:
    request = RunRequest("Count", "counting", budget=Budget(turns=2))
    async with BusHints("unix:///nowhere/at/all.sock?db=0") as nobody:
        made = await submit(standing.database, nobody, standing.tenant, request, graphs=installed(ALL_GRAPHS))
    assert made.run.status is RunStatus.QUEUED
    assert (await standing.ended(made.run.id)).status is RunStatus.DONE


async def test_submissions_with_one_key_at_the_same_time_make_one_run(standing: Platform) -> None:
    request = RunRequest("Count", "counting", budget=Budget(turns=2), idempotency_key="once")
    made = await asyncio.gather(
        *(
            submit(standing.database, standing.hints, standing.tenant, request, graphs=installed(ALL_GRAPHS))
            for _ in range(8)
        )
    )
    assert len({m.run.id for m in made}) == 1
    assert sum(m.new for m in made) == 1
    assert (await standing.ended(made[0].run.id)).status is RunStatus.DONE

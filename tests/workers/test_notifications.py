"""A message is a notification: it may come many times, late, or never."""

import asyncio

from offing.bus.notifier import BusNotifier
from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from tests.workers.conftest import Platform
from tests.workers.processes import ALL_GRAPHS


async def test_fifty_notifications_make_one_claim(shared_platform: Platform) -> None:
    run = await shared_platform.submit(RunRequest("Count", "counting", budget=Budget(max_turns=20)))
    await asyncio.gather(*(shared_platform.notifier.dispatch_run(run.id) for _ in range(50)))
    ended = await shared_platform.ended(run.id)
    kinds = [s.kind for s in await shared_platform.steps(run.id)]
    assert (ended.status, ended.fence) == (RunStatus.DONE, 1)
    assert kinds.count(StepKind.STARTED) == 1
    assert kinds.count(StepKind.TOOL_RESULT) == 20


async def test_a_run_submitted_while_redis_is_away_runs_later(shared_platform: Platform) -> None:
    request = RunRequest("Count", "counting", budget=Budget(max_turns=2))
    async with BusNotifier("unix:///nowhere/at/all.sock?db=0") as nobody:
        created = await submit_run(
            shared_platform.database, nobody, shared_platform.tenant, request, graphs=open_registry(ALL_GRAPHS)
        )
    assert created.run.status is RunStatus.QUEUED
    assert (await shared_platform.ended(created.run.id)).status is RunStatus.DONE


async def test_submissions_with_one_key_at_the_same_time_make_one_run(shared_platform: Platform) -> None:
    request = RunRequest("Count", "counting", budget=Budget(max_turns=2), idempotency_key="once")
    created = await asyncio.gather(
        *(
            submit_run(
                shared_platform.database,
                shared_platform.notifier,
                shared_platform.tenant,
                request,
                graphs=open_registry(ALL_GRAPHS),
            )
            for _ in range(8)
        )
    )
    assert len({m.run.id for m in created}) == 1
    assert sum(m.is_new for m in created) == 1
    assert (await shared_platform.ended(created[0].run.id)).status is RunStatus.DONE

"""Child runs whose worker is killed or whose notifications are lost: none is created twice, and no parent is stuck."""

import redis

from offing.core.run import Budget
from offing.core.step import Step, StepKind
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql
from tests.workers.test_child_runs import LONG, begun, children_of, list_outputs, waits
from tests.workers.test_protocol import slow


def of_children(steps: list[Step]) -> list[Step]:
    return [s for s in steps if s.kind is StepKind.TOOL_RESULT and s.payload["tool"] == "child_run"]


async def test_a_parent_waits_without_a_worker_and_lost_notifications_are_made_good(
    platform: Platform, start_worker: StartWorker, redis_url: str, sql: Sql
) -> None:
    start_worker()
    run = await begun(platform, LONG, engines=slow(200), budget=Budget(max_turns=21))
    waiting = await platform.until(run.id, waits)
    assert waiting.waiting_for == "2 child runs"
    assert sql("select worker from app.run where id = %s", run.id) == [(None,)]
    with redis.Redis.from_url(redis_url) as client:  # pyright: ignore[reportUnknownMemberType]
        client.flushall()  # pyright: ignore[reportUnknownMemberType]
    assert (await list_outputs(platform, run.id))[-1] == "turns: 21"


async def test_a_worker_killed_while_children_work_costs_nothing(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    worker = start_worker()
    run = await begun(platform, LONG, engines=slow(60), budget=Budget(max_turns=21))
    await platform.until(run.id, waits)
    first, _ = children_of(sql, run.id)
    await platform.until(first, lambda row: row.last_seq > 8)
    worker.kill()
    start_worker()
    assert (await list_outputs(platform, run.id))[-1] == "turns: 21"
    assert len(children_of(sql, run.id)) == 2
    assert len(of_children(await platform.steps(run.id))) == 2

"""What a crashed worker leaves: a run that stalls, an effect of unknown outcome, reserved money, an old version."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.core.tool_policy import Condition, ToolPolicy, ToolRule
from offing.services.runs import RunRequest
from tests.workers.conftest import Platform, StartWorker

QUICK = {
    "OFFING_LEASE_SECONDS": "1",
    "OFFING_HEARTBEAT_INTERVAL_SECONDS": "0.25",
    "OFFING_SWEEP_INTERVAL_SECONDS": "0.4",
}

Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def sql(owner_url: str) -> Sql:
    """Runs a statement as the owner."""

    def execute(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(owner_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    return execute


def slow_count(turns: int) -> RunRequest:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": 100}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    return RunRequest("Count", "counting", budget=Budget(max_turns=turns), engines=engines)


@pytest.mark.timeout(300)  # it starts seven workers, one after the other
async def test_a_run_that_kills_its_workers_is_given_up_and_others_finish(
    platform: Platform, start_worker: StartWorker
) -> None:
    deadly = await platform.submit(RunRequest("Die", "poison"))
    other = await platform.submit(slow_count(40))
    workers = [start_worker(ready=False, **QUICK)]
    while not (await platform.run(deadly.id)).is_terminal:
        assert len(workers) < 10, await platform.run(deadly.id)
        workers[-1].child.wait(30) if len(workers) < 6 else await platform.ended(deadly.id)
        workers.append(start_worker(ready=False, **QUICK)) if not workers[-1].alive() else None
    dead, lived = await platform.run(deadly.id), await platform.ended(other.id, 60)
    kinds = [s.kind for s in await platform.steps(deadly.id)]
    assert (dead.status, dead.stop_reason) == (RunStatus.FAILED, StopReason.NO_PROGRESS)
    assert dead.fence == 6
    assert "5 workers in a row" in (dead.error or "")
    assert kinds[-2:] == [StepKind.REPORT, StepKind.ENDED]
    assert lived.status is RunStatus.DONE
    assert [s.turn for s in await platform.steps(other.id) if s.kind is StepKind.TOOL_RESULT] == list(range(1, 41))


async def test_a_side_effect_whose_worker_crashed_is_not_repeated(
    platform: Platform, start_worker: StartWorker, sql: Sql, tmp_path: Path
) -> None:
    launches = tmp_path / "launches"
    allowed = ToolPolicy(rules=(ToolRule(tool="launch", effect="allow", when=(Condition(arg="what"),)),))
    run = await platform.submit(RunRequest("Launch", "launching"))
    sql("update app.run set tool_policy = %s where id = %s", allowed.model_dump_json(), run.id)
    first = start_worker(ready=False, module="tests.workers.launcher", LAUNCHES=str(launches))
    await platform.until(run.id, lambda row: not first.alive())
    start_worker(module="tests.workers.launcher", LAUNCHES=str(launches), LAUNCH_SAFELY="1")
    ended = await platform.ended(run.id)
    (tool,) = [s for s in await platform.steps(run.id) if s.kind is StepKind.TOOL_RESULT]
    assert len(launches.read_text().splitlines()) == 1
    assert tool.payload["status"] == "unknown_outcome"
    assert ended.status is RunStatus.DONE


async def test_money_that_a_crashed_worker_reserved_is_free_again(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    run = await platform.submit(slow_count(20))
    sql("insert into app.daily_spend (tenant_id, day, reserved_usd) select tenant_id, current_date, 0.75 from app.run")
    sql(
        "update app.run set status = 'running', fence = 1, worker = 'lost',"
        " lease_until = clock_timestamp() - interval '1 hour'"
    )
    sql(
        "insert into app.reservation (run_id, fence, tenant_id, day, reserved_usd)"
        " select id, fence, tenant_id, current_date, 0.5 from app.run"
    )
    start_worker()
    begun = await platform.until(run.id, lambda row: row.last_seq > 1)
    assert begun.status is RunStatus.RUNNING
    assert sql("select reserved_usd, used_usd from app.daily_spend") == [(Decimal("0.25"), 0)]
    assert (await platform.ended(run.id)).status is RunStatus.DONE
    assert sql("select reserved_usd, used_usd from app.daily_spend") == [(Decimal("0.25"), 0)]
    assert sql("select * from app.reservation") == []


async def test_a_version_that_no_worker_has_waits_and_says_for_what(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    run = await platform.submit(slow_count(2))
    sql("update app.run set graph_version = 'another'")
    start_worker()
    waiting = await platform.until(run.id, lambda row: row.status is RunStatus.WAITING)
    assert waiting.waiting_for == "a worker with counting another"
    sql("update app.run set graph_version = 'counting-1', not_before = clock_timestamp()")
    ended = await platform.ended(run.id)
    kinds = [s.kind for s in await platform.steps(run.id)]
    assert ended.status is RunStatus.DONE
    assert kinds[:2] == [StepKind.QUEUED, StepKind.STARTED]


async def test_a_finished_graph_whose_worker_crashed_before_the_end_ends(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    first = start_worker()
    run = await platform.submit(RunRequest("Nothing", "noop"))
    await platform.ended(run.id)
    first.kill()
    sql("alter table app.run disable trigger run_guard")
    sql("delete from app.step where kind in ('ended', 'report')")
    sql("delete from app.report")
    sql("update app.run set status = 'running', stop_reason = null, ended_at = null, lease_until = now(), next_seq = 3")
    sql("alter table app.run enable trigger run_guard")
    start_worker()
    ended = await platform.ended(run.id)
    kinds = [s.kind for s in await platform.steps(run.id)]
    assert ended.status is RunStatus.DONE, ended.error
    assert kinds == [StepKind.QUEUED, StepKind.STARTED, StepKind.RESUMED, StepKind.REPORT, StepKind.ENDED]


async def test_a_run_whose_state_cannot_be_read_is_given_up_in_the_end(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    run = await platform.submit(slow_count(2))
    other = await platform.submit(slow_count(2))
    sql(
        "insert into app.checkpoint (thread_id, checkpoint_id, tenant_id, run_id, fence, superstep, body, metadata)"
        " select thread_id, 'c1', tenant_id, id, 1, 3, '\\xc1c1', '{}' from app.run where id = %s",
        run.id,
    )
    sql(
        "update app.run set status = 'running', fence = 5, worker = 'lost', stall_count = 4,"
        " lease_until = clock_timestamp() - interval '1 hour' where id = %s",
        run.id,
    )
    start_worker()
    ended = await platform.ended(run.id)
    assert (ended.status, ended.stop_reason) == (RunStatus.FAILED, StopReason.NO_PROGRESS)
    assert ended.error
    assert (await platform.steps(run.id))[-1].kind is StepKind.ENDED
    assert (await platform.ended(other.id)).status is RunStatus.DONE

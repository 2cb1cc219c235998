"""Runs that real workers made, again from their record."""

from uuid import UUID

import psycopg

from offing.core.model import EngineChoice
from offing.core.run import Budget, CancelMode
from offing.services.graphs import installed
from offing.services.runs import RunRequest, cancel
from offing.world.tasks import tasks
from offing_workers.replay import Replayed, replayed
from tests.workers.conftest import Platform, Standing
from tests.workers.processes import ALL_GRAPHS

GRAPHS = installed(ALL_GRAPHS)

STANDING = {"OFFING_SLICE_TURNS": "2"}
"""What the standing worker is started with: runs are in several slices."""

PLAYERS = {"agentflow": "planner", "hiper": "agent", "iterresearch": "researcher", "memact": "agent", "supo": "agent"}
"""The role of each flow that chooses; rules answer the others."""


def counting(turns: int, **more: object) -> RunRequest:
    return RunRequest("Count for me", graph="counting", budget=Budget(turns=turns), **more)  # type: ignore[arg-type]


async def again(platform: Platform, request: RunRequest) -> tuple[Replayed, object]:
    run = await platform.submit(request)
    await platform.ended(run.id)
    return await replayed(platform.database, platform.tenant, run.id, GRAPHS), run.id


async def test_a_run_is_the_same_again_without_any_engine(standing: Platform) -> None:
    vary = {"speaker": EngineChoice(engine="scripted", options={"answers": [{"word": "{nonce}"}], "vary": True})}
    result, _ = await again(standing, counting(5, engines=vary))
    assert result.same, result.detail
    assert (result.calls, result.recorded) == (16, 16)


async def test_the_second_run_of_a_thread_is_the_same_again(standing: Platform) -> None:
    run = await standing.submit(counting(2))
    await standing.ended(run.id)
    result, _ = await again(standing, counting(3, thread=run.thread))
    assert result.same, result.detail


async def test_the_first_difference_is_told(standing: Platform, standing_servers: Standing) -> None:
    run = await standing.submit(counting(3))
    await standing.ended(run.id)
    with psycopg.connect(standing_servers.owner_url, autocommit=True) as owner:
        owner.execute(
            """update app.step set payload = jsonb_set(payload, '{args,expression}', '"9 * 9"')
                where run_id = %s and kind = 'tool' and turn = 2""",
            (run.id,),
        )
    result = await replayed(standing.database, standing.tenant, run.id, GRAPHS)
    assert not result.same
    assert "9 * 9" in result.detail
    assert result.seq == 7


async def test_a_run_that_a_person_ended_early_is_the_same_again(standing: Platform) -> None:
    slow = {"speaker": EngineChoice(engine="scripted", options={"answers": [{"word": "w{turn}"}], "delay_ms": 50})}
    run = await standing.submit(counting(200, engines=slow))
    await standing.until(run.id, lambda row: row.last_seq > 12)
    await cancel(standing.database, standing.hints, standing.tenant, run.id, CancelMode.WRITE)
    await standing.ended(run.id)
    result = await replayed(standing.database, standing.tenant, run.id, GRAPHS)
    assert result.same, result.detail
    assert result.calls == result.recorded


async def test_a_cancelled_run_is_the_same_as_far_as_it_went(standing: Platform) -> None:
    slow = {"speaker": EngineChoice(engine="scripted", options={"answers": [{"word": "w{turn}"}], "delay_ms": 50})}
    run = await standing.submit(counting(200, engines=slow))
    await standing.until(run.id, lambda row: row.last_seq > 12)
    await cancel(standing.database, standing.hints, standing.tenant, run.id, CancelMode.DISCARD)
    await standing.ended(run.id)
    result = await replayed(standing.database, standing.tenant, run.id, GRAPHS)
    assert result.same, result.detail
    assert "cut off" in result.detail


async def test_every_flow_is_the_same_again(standing: Platform) -> None:
    (task,) = tasks("train-1@50", count=1, hops=(3, 3), kinds=("lookup",))
    made: list[UUID] = []
    for graph, player in PLAYERS.items():
        for rule in ("oracle", "random"):
            engines = {role.name: EngineChoice(engine="rules", model="world") for role in GRAPHS[graph].roles}
            engines[player] = EngineChoice(engine="rules", model=rule, form="compact")
            budget = Budget(turns=10)
            request = RunRequest(task.question, graph, budget=budget, engines=engines, scope=task.scope, seed=3)
            made.append((await standing.submit(request)).id)
    for run in made:
        row = await standing.ended(run)
        result = await replayed(standing.database, standing.tenant, run, GRAPHS)
        assert result.same, (row.graph, result.detail)
        assert result.calls == result.recorded > 3

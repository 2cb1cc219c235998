"""Runs that real workers made, again from their record."""

from uuid import UUID

import psycopg

from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, cancel_run
from offing_workers.replay import ReplayResult, replay_run
from offing_world.tasks import generate_tasks
from tests.workers.conftest import Platform, SharedServers
from tests.workers.processes import ALL_GRAPHS

GRAPHS = open_registry(ALL_GRAPHS)

ENVIRONMENT = {"OFFING_SLICE_MAX_TURNS": "2"}
"""What the standing worker is started with: runs are in several slices."""

PLAYERS = {"agentflow": "planner", "hiper": "agent", "iterresearch": "researcher", "memact": "agent", "supo": "agent"}
"""The role of each graph that chooses; rules answer the others."""


def counting(turns: int, **more: object) -> RunRequest:
    return RunRequest("Count for me", graph="counting", budget=Budget(max_turns=turns), **more)  # type: ignore[arg-type]


async def again(platform: Platform, request: RunRequest) -> tuple[ReplayResult, object]:
    run = await platform.submit(request)
    await platform.ended(run.id)
    return await replay_run(platform.database, platform.tenant, run.id, GRAPHS), run.id


async def test_a_run_is_the_same_again_without_any_engine(shared_platform: Platform) -> None:
    vary = {"speaker": EngineConfig(engine="scripted", options={"answers": [{"word": "{nonce}"}], "vary": True})}
    result, _ = await again(shared_platform, counting(5, engines=vary))
    assert result.is_same, result.detail
    assert (result.replayed_calls, result.recorded_calls) == (16, 16)


async def test_the_second_run_of_a_thread_is_the_same_again(shared_platform: Platform) -> None:
    run = await shared_platform.submit(counting(2))
    await shared_platform.ended(run.id)
    result, _ = await again(shared_platform, counting(3, thread_id=run.thread_id))
    assert result.is_same, result.detail


async def test_the_first_difference_is_told(shared_platform: Platform, shared_servers: SharedServers) -> None:
    run = await shared_platform.submit(counting(3))
    await shared_platform.ended(run.id)
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as owner:
        owner.execute(
            """update app.step set payload = jsonb_set(payload, '{args,expression}', '"9 * 9"')
                where run_id = %s and kind = 'tool_result' and turn = 2""",
            (run.id,),
        )
    result = await replay_run(shared_platform.database, shared_platform.tenant, run.id, GRAPHS)
    assert not result.is_same
    assert "9 * 9" in result.detail
    assert result.mismatch_seq == 7


async def test_a_run_that_a_person_ended_early_is_the_same_again(shared_platform: Platform) -> None:
    slow = {"speaker": EngineConfig(engine="scripted", options={"answers": [{"word": "w{turn}"}], "delay_ms": 50})}
    run = await shared_platform.submit(counting(200, engines=slow))
    await shared_platform.until(run.id, lambda row: row.last_seq > 12)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.FINISH
    )
    await shared_platform.ended(run.id)
    result = await replay_run(shared_platform.database, shared_platform.tenant, run.id, GRAPHS)
    assert result.is_same, result.detail
    assert result.replayed_calls == result.recorded_calls


async def test_a_cancelled_run_is_the_same_as_far_as_it_went(shared_platform: Platform) -> None:
    slow = {"speaker": EngineConfig(engine="scripted", options={"answers": [{"word": "w{turn}"}], "delay_ms": 50})}
    run = await shared_platform.submit(counting(200, engines=slow))
    await shared_platform.until(run.id, lambda row: row.last_seq > 12)
    await cancel_run(
        shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
    )
    await shared_platform.ended(run.id)
    result = await replay_run(shared_platform.database, shared_platform.tenant, run.id, GRAPHS)
    assert result.is_same, result.detail
    assert "was interrupted" in result.detail


async def test_every_graph_is_the_same_again(shared_platform: Platform) -> None:
    (task,) = generate_tasks("train-1@50", count=1, hops=(3, 3), kinds=("lookup",))
    created: list[UUID] = []
    for graph, player in PLAYERS.items():
        for rule in ("oracle", "random"):
            engines = {role.name: EngineConfig(engine="rules", model="world") for role in GRAPHS[graph].roles}
            engines[player] = EngineConfig(engine="rules", model=rule, prompt_format="compact")
            budget = Budget(max_turns=10)
            request = RunRequest(task.question, graph, budget=budget, engines=engines, scope=task.scope, seed=3)
            created.append((await shared_platform.submit(request)).id)
    for run in created:
        row = await shared_platform.ended(run)
        result = await replay_run(shared_platform.database, shared_platform.tenant, run, GRAPHS)
        assert result.is_same, (row.graph, result.detail)
        assert result.replayed_calls == result.recorded_calls > 3

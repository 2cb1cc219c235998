"""What a fork leaves on record beside its origin: trained once, replayed like any other, with a store of its kind."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.core.run import RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.exports.format import FORMATS, ExportOptions
from offing.services import trajectories as exports
from offing.services.forks import ForkRequest, fork_run
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, submit_run
from offing.storage import retention, runs, steps, trajectories
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.runs import RunRow
from offing.storage.segments import StoredRoleCall
from offing.storage.trajectories import TrajectoryQuery
from offing_workers.replay import replay_run
from tests.model_provider.policy_server import Policies
from tests.model_provider.server import WireServer
from tests.workers import segment_graph, test_item_stores
from tests.workers.conftest import Platform, StartWorker
from tests.workers.interrupted_runs import Bench, Quiet, bench
from tests.workers.langgraph_runs import answer_of, started, turns_of
from tests.workers.langgraph_scripts import GRAPHS as PLAIN
from tests.workers.langgraph_scripts import REACT
from tests.workers.processes import ALL_GRAPHS
from tests.workers.test_exit import counted
from tests.workers.test_training_record import assert_exact, different, environment, left, run_to_end, shape, the_run

__all__ = ["bench"]


async def forked(platform: Platform, run_id: UUID, at: int | None, graphs: str, **more: Any) -> RunRow:
    request = ForkRequest(run_id, at, **more)
    created = await fork_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(graphs)
    )
    return await platform.ended(created.run.id)


def sampled(turns: Sequence[StoredRoleCall], of: set[str]) -> int:
    """Completion tokens of turns of these uses."""
    return sum(len(turn.tokens.completion_ids) for turn in turns if turn.tokens and turn.trainable in of)


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_no_token_that_a_fork_copied_is_trained_on_again(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    async with WireServer(policies := Policies(different())) as server:
        start_worker(**environment(server))
        origin = await run_to_end(platform, the_run(durability))
        count = len(policies.chats)
        result, before = await left(platform, origin)
        at = before[5].seq
        run = await forked(platform, origin.id, at, segment_graph.GRAPHS)
    segments, turns = await left(platform, run)
    assert (run.status, shape(segments)) == (RunStatus.DONE, shape(result))
    assert [turn.tokens for turn in turns[:6]] == [turn.tokens for turn in before[:6]]
    assert len(policies.chats) == count + len(turns) - 6
    assert_exact(turns[6:], policies.chats[count:])
    assert {turn.trainable for turn in turns[:6]} == {"none"}
    assert {turn.trainable for turn in turns[6:]} == {"rl"}
    assert await trained(platform) == {
        origin.id: sampled(before, {"rl"}),
        run.id: sampled(turns[6:], {"rl"}),
    }


async def trained(platform: Platform) -> Mapping[UUID, int]:
    """Tokens that an export of what people asked has for training, by run."""
    async with platform.database.transaction(platform.tenant) as connection:
        await connection.execute("update tenant set training_opt_in = true where id = %s", (platform.tenant,))
    counted: dict[UUID, int] = {}
    format = FORMATS["parquet"]
    async for chunk in exports.iter_chunks(
        platform.database, platform.tenant, TrajectoryQuery(kind="interactive"), format.unit, ExportOptions(), None
    ):
        for row, _ in chunk.units():
            counted[row.metadata.run_id] = counted.get(row.metadata.run_id, 0) + int(row.loss_mask.sum())
    return counted


async def test_what_a_fork_cost_is_what_it_did_itself(platform: Platform, start_worker: StartWorker) -> None:
    start_worker(OFFING_EXTRA_GRAPHS=PLAIN)
    origin = await started(platform, REACT.request())
    await platform.ended(origin.id)
    calls = [turn.seq for turn in await turns_of(platform, origin.id)]
    run = await forked(platform, origin.id, calls[1], PLAIN)
    async with platform.database.transaction(platform.tenant) as connection:
        costs = [(await trajectories.get_trajectory_metadata(connection, one)).cost for one in (origin.id, run.id)]
    assert [cost and (cost.turns, cost.tool_calls) for cost in costs] == [(3, 3), (1, 1)]
    assert run.usage.turns == 3


async def test_a_fork_is_replayed_like_any_other_run(platform: Platform, start_worker: StartWorker) -> None:
    graphs = f"{PLAIN},{ALL_GRAPHS}"
    start_worker(OFFING_EXTRA_GRAPHS=graphs)
    for request in (REACT.request(), counted(4, "sync")):
        origin = await started_of(platform, request, graphs)
        steps = await platform.steps(origin.id)
        run = await forked(platform, origin.id, steps[len(steps) // 2].seq, graphs)
        again = await replay_run(platform.database, platform.tenant, run.id, open_registry(graphs))
        assert again.is_same, again.detail


async def started_of(platform: Platform, request: RunRequest, graphs: str) -> RunRow:
    created = await submit_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(graphs)
    )
    return await platform.ended(created.run.id)


async def test_a_run_whose_checkpoints_were_pruned_is_forked_from_its_record_alone(
    platform: Platform, start_worker: StartWorker
) -> None:
    graphs = f"{PLAIN},{ALL_GRAPHS}"
    start_worker(OFFING_EXTRA_GRAPHS=graphs)
    first = await started_of(platform, counted(3, "sync"), graphs)
    second = await started_of(platform, replace(counted(4, "sync"), thread_id=first.thread_id), graphs)
    plain = await started_of(platform, REACT.request(), graphs)
    async with platform.database.transaction(platform.tenant) as connection:
        assert all([await retention.prune_run(connection, one.id) for one in (first, second, plain)])
    for origin in (second, plain):
        record = await platform.steps(origin.id)
        at = record[len(record) // 2].seq
        run = await forked(platform, origin.id, at, graphs)
        steps = await platform.steps(run.id)
        assert (run.status, run.usage.turns) == (RunStatus.DONE, origin.usage.turns), run.error
        assert [(s.kind, s.call_key and s.call_key.superstep) for s in steps if s.call_key] == [
            (s.kind, s.call_key and s.call_key.superstep) for s in record if s.call_key
        ]
    assert await answer_of(platform, run.id) == REACT.answer
    async with platform.database.transaction(platform.tenant) as connection:
        await connection.execute("delete from checkpoint where thread_id = %s", (second.thread_id,))
    with pytest.raises(InvalidInput, match="has been deleted"):
        await forked(platform, second.id, 5, graphs)


async def test_a_fork_of_a_rollout_is_a_run_of_its_own_with_a_store_of_its_own(bench: Bench) -> None:
    bench.graphs = test_item_stores.GRAPHS
    bench.durability = "exit"
    await test_item_stores.get_answer(bench, "a")
    origin = await test_item_stores.begun(bench, "b")
    bench.ask("update app.run set kind = 'rollout' where id = %s", origin)
    await bench.advance(bench.database, origin)
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        record = [
            step for step in await steps.list_steps_after(connection, origin, 0, 100) if step.kind is not StepKind.ENDED
        ]
    for at in range(1, len(record)):
        graphs = open_registry(test_item_stores.GRAPHS)
        created = await fork_run(bench.database, Quiet(), LOCAL_TENANT, ForkRequest(origin, at), graphs=graphs)
        await bench.advance(bench.database, created.run.id)
        async with bench.database.transaction(LOCAL_TENANT) as connection:
            row = await runs.get_run(connection, created.run.id)
        assert (row.kind, row.durability, row.status) == ("interactive", "sync", RunStatus.DONE), row.error
        assert row.stop_reason is StopReason.ANSWERED
        assert await test_item_stores.get_report_text(bench, created.run.id) == "0 before, then b; there are b"
    assert await test_item_stores.items(bench) == {("shared",): ["a"], ("told",): ["last"]}


async def test_wherever_the_worker_of_a_fork_is_killed_its_calls_are_on_record_once(bench: Bench) -> None:
    graphs = open_registry(test_item_stores.GRAPHS)
    bench.graphs = test_item_stores.GRAPHS
    origin = await test_item_stores.begun(bench, "b")
    await bench.advance(bench.database, origin)
    record = await recorded(bench, origin)
    for at in range(2, 7):
        request = ForkRequest(origin, record[len(record) // 2].seq)
        created = await fork_run(bench.database, Quiet(), LOCAL_TENANT, request, graphs=graphs)
        async with test_item_stores.worker_lost(bench, created.run.id, at, "after"):
            pass
        assert (await test_item_stores.row(bench, created.run.id)).status is RunStatus.DONE
        again = await recorded(bench, created.run.id)
        assert [(step.kind, step.call_key) for step in again if step.call_key] == [
            (s.kind, s.call_key) for s in record if s.call_key
        ]


async def recorded(bench: Bench, run_id: UUID) -> list[Step]:
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        return await steps.list_steps_after(connection, run_id, 0, 1000)

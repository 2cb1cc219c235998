"""What a fork leaves on record beside its origin: trained once, replayed like any other, with a store of its kind."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.core.run import RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.exports.format import Options, named
from offing.services import trajectories as exports
from offing.services.forks import ForkRequest, fork
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage import retention, runs, steps, trajectories
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.runs import RunRow
from offing.storage.segments import StoredTurn
from offing.storage.trajectories import Query
from offing_workers.replay import replayed
from tests.wire.policies import Policies
from tests.wire.server import WireServer
from tests.workers import recording, test_item_stores
from tests.workers.conftest import Platform, StartWorker
from tests.workers.disturbing import Bench, Quiet, bench
from tests.workers.plain_runs import answer_of, started, turns_of
from tests.workers.plain_scripts import GRAPHS as PLAIN
from tests.workers.plain_scripts import REACT
from tests.workers.processes import ALL_GRAPHS
from tests.workers.test_exit import counted
from tests.workers.test_record import asked, assert_exact, different, environment, left, shape, the_run

__all__ = ["bench"]


async def forked(platform: Platform, run: UUID, at: int | None, graphs: str, **more: Any) -> RunRow:
    request = ForkRequest(run, at, **more)
    made = await fork(platform.database, platform.hints, platform.tenant, request, graphs=installed(graphs))
    return await platform.ended(made.run.id)


def sampled(turns: Sequence[StoredTurn], of: set[str]) -> int:
    """Completion tokens of turns of these uses."""
    return sum(len(turn.tokens.completion_ids) for turn in turns if turn.tokens and turn.trainable in of)


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_no_token_that_a_fork_copied_is_trained_on_again(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    async with WireServer(policies := Policies(different())) as server:
        start_worker(**environment(server))
        origin = await asked(platform, the_run(durability))
        made = len(policies.chats)
        found, before = await left(platform, origin)
        at = before[5].seq
        run = await forked(platform, origin.id, at, recording.GRAPHS)
    segments, turns = await left(platform, run)
    assert (run.status, shape(segments)) == (RunStatus.DONE, shape(found))
    assert [turn.tokens for turn in turns[:6]] == [turn.tokens for turn in before[:6]]
    assert len(policies.chats) == made + len(turns) - 6
    assert_exact(turns[6:], policies.chats[made:])
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
    format = named("parquet")
    async for portion in exports.portions(
        platform.database, platform.tenant, Query(kind="ask"), format.unit, Options(), None
    ):
        for row, _ in portion.units():
            counted[row.episode.run] = counted.get(row.episode.run, 0) + int(row.loss_mask.sum())
    return counted


async def test_what_a_fork_cost_is_what_it_did_itself(platform: Platform, start_worker: StartWorker) -> None:
    start_worker(OFFING_GRAPHS=PLAIN)
    origin = await started(platform, REACT.request())
    await platform.ended(origin.id)
    calls = [turn.seq for turn in await turns_of(platform, origin.id)]
    run = await forked(platform, origin.id, calls[1], PLAIN)
    async with platform.database.transaction(platform.tenant) as connection:
        costs = [(await trajectories.episode(connection, one)).cost for one in (origin.id, run.id)]
    assert [cost and (cost.turns, cost.tool_calls) for cost in costs] == [(3, 3), (1, 1)]
    assert run.spent.turns == 3


async def test_a_fork_is_replayed_like_any_other_run(platform: Platform, start_worker: StartWorker) -> None:
    graphs = f"{PLAIN},{ALL_GRAPHS}"
    start_worker(OFFING_GRAPHS=graphs)
    for request in (REACT.request(), counted(4, "sync")):
        origin = await started_of(platform, request, graphs)
        steps = await platform.steps(origin.id)
        run = await forked(platform, origin.id, steps[len(steps) // 2].seq, graphs)
        again = await replayed(platform.database, platform.tenant, run.id, installed(graphs))
        assert again.same, again.detail


async def started_of(platform: Platform, request: RunRequest, graphs: str) -> RunRow:
    made = await submit(platform.database, platform.hints, platform.tenant, request, graphs=installed(graphs))
    return await platform.ended(made.run.id)


async def test_a_run_whose_checkpoints_were_pruned_is_forked_from_its_record_alone(
    platform: Platform, start_worker: StartWorker
) -> None:
    graphs = f"{PLAIN},{ALL_GRAPHS}"
    start_worker(OFFING_GRAPHS=graphs)
    first = await started_of(platform, counted(3, "sync"), graphs)
    second = await started_of(platform, replace(counted(4, "sync"), thread=first.thread), graphs)
    plain = await started_of(platform, REACT.request(), graphs)
    async with platform.database.transaction(platform.tenant) as connection:
        assert all([await retention.prune_run(connection, one.id) for one in (first, second, plain)])
    for origin in (second, plain):
        record = await platform.steps(origin.id)
        at = record[len(record) // 2].seq
        run = await forked(platform, origin.id, at, graphs)
        steps = await platform.steps(run.id)
        assert (run.status, run.spent.turns) == (RunStatus.DONE, origin.spent.turns), run.error
        assert [(s.kind, s.key and s.key.superstep) for s in steps if s.key] == [
            (s.kind, s.key and s.key.superstep) for s in record if s.key
        ]
    assert await answer_of(platform, run.id) == REACT.answer
    async with platform.database.transaction(platform.tenant) as connection:
        await connection.execute("delete from checkpoint where thread_id = %s", (second.thread,))
    with pytest.raises(InvalidInput, match="is not kept any more"):
        await forked(platform, second.id, 5, graphs)


async def test_a_fork_of_a_rollout_is_a_run_of_its_own_with_a_store_of_its_own(bench: Bench) -> None:
    bench.graphs = test_item_stores.GRAPHS
    bench.durability = "exit"
    await test_item_stores.told(bench, "a")
    origin = await test_item_stores.begun(bench, "b")
    bench.ask("update app.run set kind = 'rollout' where id = %s", origin)
    await bench.advance(bench.database, origin)
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        record = [step for step in await steps.after(connection, origin, 0, 100) if step.kind is not StepKind.ENDED]
    for at in range(1, len(record)):
        graphs = installed(test_item_stores.GRAPHS)
        made = await fork(bench.database, Quiet(), LOCAL_TENANT, ForkRequest(origin, at), graphs=graphs)
        await bench.advance(bench.database, made.run.id)
        async with bench.database.transaction(LOCAL_TENANT) as connection:
            row = await runs.by_id(connection, made.run.id)
        assert (row.kind, row.durability, row.status) == ("ask", "sync", RunStatus.DONE), row.error
        assert row.stop_reason is StopReason.ANSWERED
        assert await test_item_stores.said(bench, made.run.id) == "0 before, then b; there are b"
    assert await test_item_stores.items(bench) == {("shared",): ["a"], ("told",): ["last"]}


async def test_wherever_the_worker_of_a_fork_is_killed_its_calls_are_on_record_once(bench: Bench) -> None:
    graphs = installed(test_item_stores.GRAPHS)
    bench.graphs = test_item_stores.GRAPHS
    origin = await test_item_stores.begun(bench, "b")
    await bench.advance(bench.database, origin)
    record = await recorded(bench, origin)
    for at in range(2, 7):
        request = ForkRequest(origin, record[len(record) // 2].seq)
        made = await fork(bench.database, Quiet(), LOCAL_TENANT, request, graphs=graphs)
        async with test_item_stores.lost(bench, made.run.id, at, "after"):
            pass
        assert (await test_item_stores.row(bench, made.run.id)).status is RunStatus.DONE
        again = await recorded(bench, made.run.id)
        assert [(step.kind, step.key) for step in again if step.key] == [(s.kind, s.key) for s in record if s.key]


async def recorded(bench: Bench, run: UUID) -> list[Step]:
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        return await steps.after(connection, run, 0, 1000)

"""Checkpoints are removed, and what stays is read as before: nothing loses what it is rebuilt from."""

from typing import Any
from uuid import UUID

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from offing.core.run import RunStatus
from offing.storage import claims, erasure, retention, runs
from offing.storage.claims import Claim, Release
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import TERM, a_run, claimed
from tests.storage.graph_histories import AT, PLAYS, history, plain

KINDS = ["messages", "delta", "files"]

INPUT: dict[str, Any] = {
    "messages": {"messages": [("user", "one")]},
    "delta": {"log": ["in"], "count": 0},
    "files": {"files": {"a": "b"}, "count": 0},
}


async def played(pool: Database, claim: Claim, name: str, *, keep_latest: int | None = None) -> None:
    """A claim that runs the graph and releases the run as ended."""
    saver = FencedCheckpointer(pool, claim.fence, content_types=(), keep_latest=keep_latest)
    await PLAYS[name][0]().compile(checkpointer=saver).ainvoke(INPUT[name], AT)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await saver.flush(connection)
        await claims.release_run(connection, claim.fence, Release(RunStatus.DONE))


async def next_claim(pool: Database, thread_id: UUID) -> Claim:
    """Another run of the thread."""
    async with pool.transaction(LOCAL_TENANT) as connection:
        run = await runs.insert_run(connection, LOCAL_TENANT, a_run(thread_id=thread_id))
    claim = await claims.claim_run(pool, run.id, "worker", TERM)
    assert claim is not None
    return claim


async def states(pool: Database, claim: Claim, name: str) -> list[Any]:
    graph = PLAYS[name][0]().compile(checkpointer=FencedCheckpointer(pool, claim.fence, content_types=()))
    return [plain(snapshot.values) for snapshot in await history(graph)]


async def counted(pool: Database, table: str) -> int:
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute(f"select count(*) from {table}".encode())).fetchone()
    assert row is not None
    return row[0]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_an_ended_run_keeps_its_last_state_and_what_that_is_read_from(pool: Database, kind: str) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    await played(pool, claim, kind)
    before, rows = await states(pool, claim, kind), await counted(pool, "checkpoint")
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert await retention.prune_run(connection, claim.fence.run_id) > 0
    after = await states(pool, claim, kind)
    assert after == before[: len(after)]
    assert len(after) == await counted(pool, "checkpoint") < rows
    assert len(after) == 1 or kind == "delta"


async def test_a_later_run_of_the_thread_is_read_through_what_an_earlier_one_stored(pool: Database, kind: str) -> None:
    first = await claimed(pool, LOCAL_TENANT)
    await played(pool, first, kind)
    assert first.fence.thread_id is not None
    second = await next_claim(pool, first.fence.thread_id)
    await played(pool, second, kind)
    before = after = await states(pool, second, kind)
    for claim in (first, second):
        async with pool.transaction(LOCAL_TENANT) as connection:
            await retention.prune_run(connection, claim.fence.run_id)
        after = await states(pool, second, kind)
        assert after[0] == before[0]
        assert all(state in before for state in after)
    await played(pool, await next_claim(pool, first.fence.thread_id), kind)
    assert len(await states(pool, second, kind)) > len(after)


async def test_a_running_graph_keeps_as_many_as_its_setting_says(pool: Database, kind: str) -> None:
    whole, claim = await claimed(pool, LOCAL_TENANT), await claimed(pool, LOCAL_TENANT)
    await played(pool, whole, kind)
    await played(pool, claim, kind, keep_latest=2)
    after = await states(pool, claim, kind)
    assert after == (await states(pool, whole, kind))[: len(after)]
    assert len(after) == 2 or kind == "delta"


async def test_values_that_nothing_refers_to_any_more_are_removed(pool: Database) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    saver, config = FencedCheckpointer(pool, claim.fence, content_types=()), AT
    for nth in range(3):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"], checkpoint["channel_versions"] = {"draft": f"{nth}" * 500}, {"draft": f"{nth}"}
        config = await saver.aput(config, checkpoint, {"step": nth}, {"draft": f"{nth}"})
    assert await counted(pool, "checkpoint_value") == 3
    await saver.aprune([str(claim.fence.thread_id)])
    assert await counted(pool, "checkpoint_value") == 1
    result = await FencedCheckpointer(pool, claim.fence, content_types=()).aget_tuple(AT)
    assert result is not None
    assert result.checkpoint["channel_values"] == {"draft": "2" * 500}


async def test_forgetting_what_a_run_wrote_while_it_waited_leaves_what_its_state_is_rebuilt_from(
    pool: Database,
) -> None:
    claim = await claimed(pool, LOCAL_TENANT)
    await played(pool, claim, "delta")
    before = await states(pool, claim, "delta")
    async with pool.transaction(LOCAL_TENANT) as connection:
        await erasure.clean_input_responses(connection, claim.fence.run_id, lambda value: value)
    assert await states(pool, claim, "delta") == before

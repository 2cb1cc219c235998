"""Runs that wait for the earlier runs of their thread."""

import pytest

from offing.core.langgraph_run import LANGGRAPH
from offing.core.run import RunStatus
from offing.storage import claims, langgraph_runs, runs
from offing.storage.claims import Release
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.builders import TERM, a_run, stored


@pytest.mark.parametrize("protocol", [None, LANGGRAPH])
async def test_the_end_of_a_run_of_either_api_queues_the_next_one_of_its_thread(
    pool: Database, protocol: str | None
) -> None:
    earlier = await stored(pool, LOCAL_TENANT, a_run(protocol=protocol))
    claim = await claims.claim_run(pool, earlier.id, "worker", TERM)
    assert claim is not None
    waiting = a_run(thread_id=earlier.thread_id, protocol=LANGGRAPH, enqueued=True)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await runs.insert_run(connection, LOCAL_TENANT, waiting)
    assert await claims.claim_run(pool, waiting.id, "worker", TERM) is None
    async with pool.transaction(LOCAL_TENANT) as connection:
        await claims.release_run(connection, claim.fence, Release(RunStatus.DONE))
        assert (await runs.get_run(connection, waiting.id)).status is RunStatus.QUEUED
    assert await claims.claim_run(pool, waiting.id, "worker", TERM) is not None


@pytest.mark.parametrize("by_sweep", [False, True])
async def test_a_run_that_was_enqueued_while_the_earlier_one_ended_is_queued_afterwards(
    pool: Database, by_sweep: bool
) -> None:
    earlier = await stored(pool, LOCAL_TENANT, a_run(protocol=LANGGRAPH))
    claim = await claims.claim_run(pool, earlier.id, "worker", TERM)
    assert claim is not None
    late = a_run(thread_id=earlier.thread_id, protocol=LANGGRAPH, enqueued=True)
    async with pool.transaction(LOCAL_TENANT) as ending:
        await claims.release_run(ending, claim.fence, Release(RunStatus.DONE))
        async with pool.transaction(LOCAL_TENANT) as connection:
            await runs.insert_run(connection, LOCAL_TENANT, late)
            await langgraph_runs.enqueue_run(connection, late.id, 0)
    assert await claims.claim_run(pool, late.id, "worker", TERM) is None
    if by_sweep:
        assert late.id in await claims.sweep_overdue_runs(pool, 5, 30)
    else:
        async with pool.transaction(LOCAL_TENANT) as connection:
            assert await langgraph_runs.queue_next_run(connection, earlier.thread_id) == late.id
            assert await langgraph_runs.queue_next_run(connection, earlier.thread_id) is None
    assert await claims.claim_run(pool, late.id, "worker", TERM) is not None

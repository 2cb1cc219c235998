"""Runs that wait for the earlier runs of their thread."""

import pytest

from offing.core.langgraph_run import LANGGRAPH
from offing.core.run import RunStatus
from offing.storage import runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.runs import Release
from tests.storage.builders import TERM, a_run, stored


@pytest.mark.parametrize("protocol", [None, LANGGRAPH])
async def test_the_end_of_a_run_of_either_api_queues_the_next_one_of_its_thread(
    pool: Database, protocol: str | None
) -> None:
    earlier = await stored(pool, LOCAL_TENANT, a_run(protocol=protocol))
    claim = await runs.claim_run(pool, earlier.id, "worker", TERM)
    assert claim is not None
    waiting = a_run(thread_id=earlier.thread_id, protocol=LANGGRAPH, enqueued=True)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await runs.insert_run(connection, LOCAL_TENANT, waiting)
    assert await runs.claim_run(pool, waiting.id, "worker", TERM) is None
    async with pool.transaction(LOCAL_TENANT) as connection:
        await runs.release_run(connection, claim.fence, Release(RunStatus.DONE))
        assert (await runs.get_run(connection, waiting.id)).status is RunStatus.QUEUED
    assert await runs.claim_run(pool, waiting.id, "worker", TERM) is not None

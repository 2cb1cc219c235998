"""LangGraph's own tests of checkpointers, over the one of a claim in Postgres and in memory."""

from collections.abc import Callable

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from offing.storage.pool import Database
from tests.storage.thread_checkpointer import Open, Threads, in_memory, in_postgres

CAPABILITIES = ["put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune"]


@pytest.mark.parametrize("store", [in_postgres, in_memory])
@pytest.mark.parametrize("capability", CAPABILITIES)
async def test_the_checkpointer_keeps_langgraphs_contract(
    pool: Database, capability: str, store: Callable[[Database], Open]
) -> None:
    async def threads():
        yield Threads(store(pool))

    report = await validate(checkpointer_test(name="offing")(threads), capabilities={capability})
    result = report.results[capability]
    assert result.failures == []
    assert result.tests_passed > 0

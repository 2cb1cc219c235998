"""Runs of LangGraph's clients in the record."""

from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.services.graphs import open_registry
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.replay import replay_run
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.protocols.langgraph.graphs import GRAPHS

__all__ = ["ENVIRONMENT"]


async def test_a_replay_says_that_it_does_not_have_the_input_of_a_run(client: Client, key_database: Database) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "trail", input={"seen": ["input"]})
    await client.runs.join(thread, run["run_id"])
    with pytest.raises(InvalidInput, match="made through LangGraph's API"):
        await replay_run(key_database, LOCAL_TENANT, UUID(run["run_id"]), open_registry(GRAPHS))

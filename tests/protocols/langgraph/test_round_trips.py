"""How often the API waits for Postgres for a stateless run. The numbers are the same on every machine."""

import pytest

from offing.bus.live import LiveBus
from offing.core.langgraph_run import RunArguments
from offing.core.model import EngineConfig
from offing.mcp.server_registry import McpServerRegistry
from offing.services import langgraph_assistants, langgraph_runs
from offing.services.graphs import open_registry
from offing.services.langgraph_runs import NewLangGraphRun, RunPlatform
from offing.storage.migrate import LOCAL_TENANT
from tests.protocols.langgraph.graphs import GRAPHS
from tests.workers.interrupted_runs import Quiet
from tests.workers.wire_trace import TracedDatabase, Trips


@pytest.mark.timeout(120)
async def test_a_stateless_run_is_stored_in_one_round_trip_and_read_in_one(app_url: str, redis_url: str) -> None:
    graphs, stored, read = open_registry(GRAPHS), Trips(0, 0, 0), Trips(0, 0, 0)
    async with TracedDatabase(app_url) as database, LiveBus(redis_url) as bus:
        platform = RunPlatform(database, Quiet(), bus, graphs, EngineConfig(), {}, McpServerRegistry())
        for _ in range(8):  # after some executions, psycopg has prepared its statements
            database.take_trips()
            assistant = langgraph_assistants.assume_assistant(database, LOCAL_TENANT, graphs, "trail")
            assert assistant is not None
            arguments = RunArguments(input={"seen": []})
            new = NewLangGraphRun(assistant.graph, assistant.id, arguments, None, assumes_not_stored=True)
            run = await langgraph_runs.create_run(platform, LOCAL_TENANT, new)
            stored = database.take_trips()
            assert await langgraph_runs.get_run(database, LOCAL_TENANT, None, run.id) == run
            read = database.take_trips()
    assert (stored.transactions, stored.round_trips) == (1, 1), stored
    assert (read.transactions, read.round_trips) == (1, 1), read

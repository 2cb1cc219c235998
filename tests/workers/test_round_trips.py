"""How often a worker commits and waits for Postgres in a run. The numbers are the same on every machine."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from offing.bus.live import LiveBus
from offing.bus.run_streams import RunStreams
from offing.core.langgraph_run import RunArguments
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services import langgraph_assistants, langgraph_runs
from offing.services.graphs import open_registry
from offing.services.langgraph_runs import NewLangGraphRun, RunPlatform
from offing.services.runs import RunRequest, submit_run
from offing.storage import claims, runs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing_workers.claimed_run import ClaimedRun
from offing_workers.slice import Slice, SliceLimits
from tests.bench.graphs import NAMES
from tests.workers.interrupted_runs import Quiet, RecordedDispatches
from tests.workers.rollout_batches import SECRET, Collector, wait_until_finalized
from tests.workers.wire_trace import TracedDatabase, Trips

TURNS = 20

SCRIPT = EngineConfig(engine="scripted", options={"answers": [{"word": "w{turn}"}]})


async def advance_next_run(
    database: Database, graphs: Mapping[str, Graph], run_streams: RunStreams | None = None
) -> None:
    """Claim the only queued run and advance it until its slice ends."""
    (next_claim,) = await claims.claim_next_runs(database, "worker", 30, max_runs=8, max_rollouts=8)
    claim, limits = next_claim.claim, SliceLimits(30, 64, 60.0)
    dispatches, claimed_run = RecordedDispatches(), ClaimedRun(claim.fence)
    await Slice(
        database, Quiet(), dispatches, graphs, claim, claimed_run, limits, run_streams=run_streams
    ).advance_run()


async def trips_of_run(app_url: str, request: RunRequest, kind: str = "interactive") -> Trips:
    """From the claim to the release, by a worker whose connection has served other runs."""
    graphs, trips = open_registry(NAMES), Trips(0, 0, 0)
    async with TracedDatabase(app_url) as database:
        for _ in range(8):  # after some executions, psycopg has prepared its statements
            run = (await submit_run(database, Quiet(), LOCAL_TENANT, request, graphs=graphs)).run
            if kind != run.kind:
                async with database.transaction(LOCAL_TENANT) as connection:
                    await connection.execute("update run set kind = %s where id = %s", (kind, run.id))
            database.take_trips()
            await advance_next_run(database, graphs)
            trips = database.take_trips()
            async with database.transaction(LOCAL_TENANT) as connection:
                assert (await runs.get_run(connection, run.id)).is_terminal
    return trips


@pytest.mark.timeout(120)
async def test_a_run_that_does_nothing_takes_five_transactions_and_six_round_trips(app_url: str) -> None:
    trips = await trips_of_run(app_url, RunRequest("Measure", graph="bench_noop"))
    assert trips.transactions <= 5, trips
    assert trips.round_trips <= 6, trips


@pytest.mark.timeout(120)
async def test_a_run_of_langgraphs_clients_takes_six_transactions_and_eight_round_trips(
    app_url: str, redis_url: str
) -> None:
    graphs, trips = open_registry(NAMES), list[Trips]()
    async with (
        TracedDatabase(app_url) as database,
        LiveBus(redis_url) as bus,
        RunStreams(redis_url) as streams,
    ):
        platform = RunPlatform(database, Quiet(), bus, graphs, EngineConfig(), {}, McpServerRegistry())
        for _ in range(8):  # after some executions, psycopg has prepared its statements
            assistant = langgraph_assistants.assume_assistant(database, LOCAL_TENANT, graphs, "bench_counting")
            assert assistant is not None
            arguments = RunArguments(input={"seen": 0})
            new = NewLangGraphRun(assistant.graph, assistant.id, arguments, None, assumes_not_stored=True)
            run = await langgraph_runs.create_run(platform, LOCAL_TENANT, new)
            database.take_trips()
            await advance_next_run(database, graphs, streams)
            trips.append(database.take_trips())
            ended = await langgraph_runs.get_run(database, LOCAL_TENANT, None, run.id)
            assert ended.status == "done"
    assert trips[-1].transactions <= 6, trips
    assert trips[-1].round_trips <= 8, trips


@pytest.mark.timeout(120)
async def test_a_turn_of_a_rollout_that_writes_at_once_takes_two_transactions(app_url: str) -> None:
    request = RunRequest(
        "Measure", graph="bench_turns", engines={"speaker": SCRIPT}, budget=Budget(max_turns=TURNS), durability="sync"
    )
    trips = await trips_of_run(app_url, request, "rollout")
    assert trips.transactions <= 2 * TURNS + 4, trips
    assert trips.round_trips <= 2 * TURNS + 8, trips


@pytest.mark.timeout(120)
async def test_a_rollout_that_writes_at_its_end_takes_three_transactions(app_url: str) -> None:
    request = RunRequest("Measure", graph="bench_turns", engines={"speaker": SCRIPT}, durability="exit")
    trips = await trips_of_run(app_url, replace(request, budget=Budget(max_turns=TURNS)), "rollout")
    assert trips.transactions <= 3, trips
    assert trips.round_trips <= 6, trips


@pytest.mark.timeout(120)
async def test_a_rollout_is_finalized_in_one_transaction_of_two_round_trips(app_url: str) -> None:
    trips = list[Trips]()
    async with TracedDatabase(app_url) as database:
        collector = Collector(database)
        await collector.collect(size=8)
        for member in await collector.members():
            await collector.end(member.run_id, SECRET)
            database.take_trips()
            await wait_until_finalized(collector, member.run_id)
            trips.append(database.take_trips())
        assert all(member.finalized_at for member in await collector.members())
    assert trips[-1].transactions == 1, trips
    assert trips[-1].round_trips <= 2, trips

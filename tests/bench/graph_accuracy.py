"""Accuracy of each graph on 200 held-out questions of a synthetic world, with rules for all roles, on the platform."""

import asyncio
from collections.abc import Mapping
from typing import LiteralString
from uuid import UUID

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import rollouts, tasks
from offing.services.graphs import open_registry
from offing.services.rollouts import BatchRequest
from offing.storage.migrate import LOCAL_TENANT
from offing.tools.environment import TaskSample
from tests.bench.graphs import NAMES
from tests.bench.measurement import Aim, Measurement
from tests.bench.platform import Client

GRAPHS = ("agentflow", "iterresearch", "memact", "supo", "hiper")

QUESTIONS, WORLD, HOPS, TURNS = 200, "heldout-1@500", (1, 4), 8

OUTCOMES: LiteralString = """
    select count(*) filter (where finalized_at is null), avg(reward), avg(turns)
      from rollout join rollout_group g on g.id = group_id join run on run.id = run_id where g.batch_id = %s
"""


async def graph_accuracy(client: Client) -> list[Measurement]:
    """Collect rollouts through Celery, scored by exact match: with the right tools and with random tools."""
    drawn = tasks.sample_tasks(TaskSample(WORLD, QUESTIONS, HOPS))
    stored = await tasks.store_tasks(client.database, LOCAL_TENANT, WORLD, drawn)
    measurements: list[Measurement] = []
    for built_graph in GRAPHS:
        graph = open_registry(NAMES)[built_graph]
        known, turns = await _share(client, graph, "oracle", stored.task_ids)
        luck, _ = await _share(client, graph, "random", stored.task_ids)
        what = f"{built_graph}: {QUESTIONS} held-out questions of {HOPS[0]} to {HOPS[1]} hops"
        measurements += [
            Measurement(f"{what}, right tools", (known,), "%", aim=Aim("at least 95 %", at_least=0.95)),
            Measurement(f"{what}, random tools", (luck,), "%", aim=Aim("under 25 %", at_most=0.25)),
            Measurement(f"{built_graph}: turns per question with the right tools", (turns,), "turns"),
        ]
    return measurements


def _engines(graph: Graph, rule: str) -> Mapping[str, EngineConfig]:
    """Return `rule` for every role that has it, and the rule of the environment for the others."""
    return {
        role.name: EngineConfig(engine="rules", model=rule if rule in role.rules else "world") for role in graph.roles
    }


async def _share(client: Client, graph: Graph, rule: str, ids: list[UUID]) -> tuple[float, float]:
    """Return the share of correct answers, 0 to 1, and the turns per rollout."""
    request = BatchRequest(graph.name, ids, 1, engines=_engines(graph, rule), budget=Budget(max_turns=TURNS))
    created = await rollouts.create_batch(
        client.database, client.notifier, LOCAL_TENANT, request, graphs=open_registry(NAMES)
    )
    while True:
        async with client.database.transaction(LOCAL_TENANT) as connection:
            row = await (await connection.execute(OUTCOMES, (created.batch.id,))).fetchone()
        assert row is not None
        if row[0] == 0:
            return float(row[1]), float(row[2])
        await asyncio.sleep(0.2)

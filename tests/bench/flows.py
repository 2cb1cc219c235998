"""What each flow reaches on 200 held-out questions of a made-up world, with rules for all roles, on the platform."""

import asyncio
from collections.abc import Mapping
from typing import LiteralString
from uuid import UUID

from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import rollouts, tasks
from offing.services.graphs import installed
from offing.services.rollouts import BatchRequest
from offing.services.tasks import Drawn
from offing.storage.migrate import LOCAL_TENANT
from tests.bench.figures import Aim, Figure
from tests.bench.graphs import NAMES
from tests.bench.platform import Client

FLOWS = ("agentflow", "iterresearch", "memact", "supo", "hiper")

QUESTIONS, WORLD, HOPS, TURNS = 200, "heldout-1@500", (1, 4), 8

STANDING: LiteralString = """
    select count(*) filter (where settled_at is null), avg(reward), avg(turns)
      from rollout join rollout_group g on g.id = group_id join run on run.id = run_id where g.batch_id = %s
"""


async def flow_accuracy(client: Client) -> list[Figure]:
    """Rollouts through Celery, scored by exact match: with the right tools, and with tools drawn at random."""
    drawn = tasks.of_world(Drawn(WORLD, QUESTIONS, HOPS))
    stored = await tasks.store(client.database, LOCAL_TENANT, WORLD, drawn)
    figures: list[Figure] = []
    for flow in FLOWS:
        graph = installed(NAMES)[flow]
        known, turns = await _share(client, graph, "oracle", stored.ids)
        luck, _ = await _share(client, graph, "random", stored.ids)
        what = f"{flow}: {QUESTIONS} held-out questions of {HOPS[0]} to {HOPS[1]} hops"
        figures += [
            Figure(f"{what}, right tools", (known,), "%", aim=Aim("at least 95 %", at_least=0.95)),
            Figure(f"{what}, tools at random", (luck,), "%", aim=Aim("under 25 %", at_most=0.25)),
            Figure(f"{flow}: turns per question with the right tools", (turns,), "turns"),
        ]
    return figures


def _engines(graph: Graph, rule: str) -> Mapping[str, EngineChoice]:
    """`rule` for every role that has it, the environment's own for the others."""
    return {
        role.name: EngineChoice(engine="rules", model=rule if rule in role.rules else "world") for role in graph.roles
    }


async def _share(client: Client, graph: Graph, rule: str, ids: list[UUID]) -> tuple[float, float]:
    """Share of right answers, 0 to 1, and turns a rollout."""
    request = BatchRequest(graph.name, ids, 1, engines=_engines(graph, rule), budget=Budget(turns=TURNS))
    made = await rollouts.create(client.database, client.hints, LOCAL_TENANT, request, graphs=installed(NAMES))
    while True:
        async with client.database.transaction(LOCAL_TENANT) as connection:
            row = await (await connection.execute(STANDING, (made.batch.id,))).fetchone()
        assert row is not None
        if row[0] == 0:
            return float(row[1]), float(row[2])
        await asyncio.sleep(0.2)

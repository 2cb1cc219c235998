"""A worker is killed in the middle of a group of rollouts: the group ends complete, with each member once."""

import asyncio
import time
from uuid import UUID

import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.services import rollouts, tasks
from offing.services.graphs import installed
from offing.services.rollouts import BatchRequest
from offing.services.tasks import Drawn
from offing.storage.groups import GroupFilter
from offing.storage.migrate import LOCAL_TENANT
from tests.chaos import checker
from tests.chaos.flows import GRAPHS
from tests.chaos.stage import Stage
from tests.chaos.trial import Client, Moment

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

SIZE = 4

MEMBERS = "select o.run_id, r.seed from app.rollout o join app.run r on r.id = o.run_id where group_id = %s"


async def a_group(client: Client, moment: Moment, durability: str) -> UUID:
    """Members of one question of a world, answered by rules that leave the text of a model."""
    drawn = tasks.of_world(Drawn("heldout-8@small", 1, (4, 4), seed=moment.number))
    stored = await tasks.store(client.database, LOCAL_TENANT, "chaos", drawn)
    oracle = EngineChoice(engine="rules", model="oracle", form="plain", options={"slow_ms": 400})
    request = BatchRequest(
        "memact",
        stored.ids,
        SIZE,
        {"agent": oracle},
        budget=Budget(turns=12),
        durability=durability,
        seed=moment.number,
    )
    made = await rollouts.create(client.database, client.hints, LOCAL_TENANT, request, graphs=installed(GRAPHS))
    wanted = GroupFilter(batch=made.batch.id)
    ((group,), _) = await rollouts.list_groups(client.database, LOCAL_TENANT, wanted, None, 10)
    return group.id


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_worker_killed_in_a_group(stage: Stage, client: Client, rare_moment: Moment, durability: str) -> None:
    dice, worker = rare_moment.dice, stage.lone_worker()
    group = await a_group(client, rare_moment, durability)
    members = stage.rows(MEMBERS, group)
    spare = stage.spawn_worker()
    calls = dice.randint(2, 4)
    await asyncio.to_thread(
        stage.until, "every member at work", lambda: all(len(stage.asked(seed)) >= calls for _, seed in members)
    )
    time.sleep(dice.random())  # noqa: ASYNC251
    assert stage.group(group).state == "open", rare_moment
    worker.kill()
    spare.await_ready()
    stage.until("the group to be settled", lambda: stage.group(group).state != "open", 60)
    found = stage.group(group)
    wrong = checker.group_violations(found)
    wrong += [f"{run}: {c}" for run, _ in members for c in checker.violations(stage.facts(run))]
    if [r.reward for r in found.rollouts] != [1.0] * SIZE:
        wrong.append(f"rewards are {[r.reward for r in found.rollouts]}, the rules know the answer")
    if len({tuple(checker.told(stage.facts(run))) for run, _ in members}) != 1:
        wrong.append("members by the same rules did different things")
    assert not wrong, "\n".join([str(rare_moment), *wrong])

"""A worker is killed in the middle of a group of rollouts: the group ends complete, with each member once."""

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.sdk import Role
from offing.services import rollouts, tasks
from offing.services.graphs import installed
from offing.services.rollouts import BatchRequest
from offing.services.tasks import Drawn
from offing.storage.groups import GroupFilter
from offing.storage.migrate import LOCAL_TENANT
from tests.chaos import checker
from tests.chaos.flows import FLOWS, GRAPHS, Flow
from tests.chaos.stage import Stage
from tests.chaos.trial import Client, Moment

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

SIZE = 4

MEMBERS = "select o.run_id, r.seed from app.rollout o join app.run r on r.id = o.run_id where group_id = %s order by 1"


async def a_group(client: Client, flow: Flow, seed: int, durability: str, size: int = SIZE) -> UUID:
    """Members on one question of a world, answered by rules that leave the texts of a model."""
    graph = installed(GRAPHS)[flow]
    drawn = tasks.of_world(Drawn("heldout-8@small", 1, (4, 4), seed=seed))
    stored = await tasks.store(client.database, LOCAL_TENANT, "chaos", drawn)
    engines = {role.name: ruled(role, 130 if flow == "agentflow" else 400) for role in graph.roles}
    request = BatchRequest(
        flow, stored.ids, size, engines, budget=Budget(turns=12), durability=durability, seed=seed
    )  # fmt: skip
    made = await rollouts.create(client.database, client.hints, LOCAL_TENANT, request, graphs=installed(GRAPHS))
    wanted = GroupFilter(batch=made.batch.id)
    ((group,), _) = await rollouts.list_groups(client.database, LOCAL_TENANT, wanted, None, 10)
    return group.id


def ruled(role: Role[Any, Any], slow_ms: int) -> EngineChoice:
    rule = "oracle" if "oracle" in role.rules else "world"
    return EngineChoice(engine="rules", model=rule, form="plain", options={"slow_ms": slow_ms})


def until_settled(stage: Stage, group: UUID) -> checker.GroupFacts:
    stage.until("the group to be settled", lambda: stage.group(group).state != "open", 60)
    return stage.group(group)


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_worker_killed_in_a_group(stage: Stage, client: Client, rare_moment: Moment, durability: str) -> None:
    """Each moment has another flow. What each member left is what one leaves that nothing happened to."""
    dice, worker, number = rare_moment.dice, stage.lone_worker(), rare_moment.number
    flow = FLOWS[(number + (durability == "exit")) % len(FLOWS)]
    group = await a_group(client, flow, number, durability)
    members = stage.rows(MEMBERS, group)
    spare, calls = stage.spawn_worker(), dice.randint(2, 10 if flow == "agentflow" else 3)
    at_work = lambda: all(len(stage.asked(seed)) >= calls for _, seed in members)  # noqa: E731
    await asyncio.to_thread(stage.until, "every member at work", at_work)
    time.sleep(dice.random())  # noqa: ASYNC251
    assert stage.group(group).state == "open", rare_moment
    worker.kill()
    spare.await_ready()
    found = until_settled(stage, group)
    calm = await a_group(client, flow, number, durability, size=1)
    until_settled(stage, calm)
    ((undisturbed, _),) = stage.rows(MEMBERS, calm)
    assert stage.facts(undisturbed).segments
    wrong = checker.group_violations(found)
    for run, _ in members:
        rows = stage.facts(run)
        complaints = [*checker.violations(rows), *checker.same_record(rows, stage.facts(undisturbed))]
        wrong += [f"{run}: {complaint}" for complaint in complaints]
    if [r.reward for r in found.rollouts] != [1.0] * SIZE:
        wrong.append(f"rewards are {[r.reward for r in found.rollouts]}; the rules know the answer")
    assert not wrong, "\n".join([f"{flow}, {rare_moment}", *wrong])

"""A worker is killed in the middle of a group of rollouts: the group ends complete, with each member once."""

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.sdk import Role
from offing.services import rollouts, tasks
from offing.services.graphs import open_registry
from offing.services.rollouts import BatchRequest
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.rollout_batches import GroupFilter
from offing.tools.environment import TaskSample
from tests.chaos import checker
from tests.chaos.graphs import GRAPH_NAMES, GRAPHS, GraphName
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Moment

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

SIZE = 4

MEMBERS = "select o.run_id, r.seed from app.rollout o join app.run r on r.id = o.run_id where group_id = %s order by 1"


async def a_group(client: Client, case: GraphName, seed: int, durability: str, size: int = SIZE) -> UUID:
    """Members on one question of a world, answered by rules that leave the texts of a model."""
    graph = open_registry(GRAPHS)[case]
    drawn = tasks.sample_tasks(TaskSample("heldout-8@small", 1, (4, 4), seed=seed))
    stored = await tasks.store_tasks(client.database, LOCAL_TENANT, "chaos", drawn)
    engines = {role.name: ruled(role, 130 if case == "agentflow" else 400) for role in graph.roles}
    request = BatchRequest(
        case, stored.task_ids, size, engines, budget=Budget(max_turns=12), durability=durability, seed=seed
    )  # fmt: skip
    created = await rollouts.create_batch(
        client.database, client.notifier, LOCAL_TENANT, request, graphs=open_registry(GRAPHS)
    )
    expected = GroupFilter(batch_id=created.batch.id)
    ((group,), _) = await rollouts.list_groups(client.database, LOCAL_TENANT, expected, None, 10)
    return group.id


def ruled(role: Role[Any, Any], slow_ms: int) -> EngineConfig:
    rule = "oracle" if "oracle" in role.rules else "world"
    return EngineConfig(engine="rules", model=rule, prompt_format="text", options={"slow_ms": slow_ms})


def wait_until_finalized(stack: PrivateStack, group_id: UUID) -> checker.GroupFacts:
    stack.until("the group to be settled", lambda: stack.group(group_id).state != "open", 60)
    return stack.group(group_id)


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_worker_killed_in_a_group(
    stack: PrivateStack, client: Client, rare_moment: Moment, durability: str
) -> None:
    """Each moment has another graph. What each member left is what one leaves that nothing happened to."""
    dice, worker, number = rare_moment.dice, stack.lone_worker(), rare_moment.number
    case = GRAPH_NAMES[(number + (durability == "exit")) % len(GRAPH_NAMES)]
    group = await a_group(client, case, number, durability)
    members = stack.rows(MEMBERS, group)
    spare, calls = stack.spawn_worker(), dice.randint(2, 10 if case == "agentflow" else 3)
    at_work = lambda: all(len(stack.list_sent_requests(seed)) >= calls for _, seed in members)  # noqa: E731
    await asyncio.to_thread(stack.until, "every member at work", at_work)
    time.sleep(dice.random())  # noqa: ASYNC251
    assert stack.group(group).state == "open", rare_moment
    worker.kill()
    spare.await_ready()
    result = wait_until_finalized(stack, group)
    calm = await a_group(client, case, number, durability, size=1)
    wait_until_finalized(stack, calm)
    ((undisturbed, _),) = stack.rows(MEMBERS, calm)
    assert stack.facts(undisturbed).segments
    wrong = checker.group_violations(result)
    for run, _ in members:
        rows = stack.facts(run)
        complaints = [*checker.violations(rows), *checker.same_record(rows, stack.facts(undisturbed))]
        wrong += [f"{run}: {complaint}" for complaint in complaints]
    if [r.reward for r in result.rollouts] != [1.0] * SIZE:
        wrong.append(f"rewards are {[r.reward for r in result.rollouts]}; the rules know the answer")
    assert not wrong, "\n".join([f"{case}, {rare_moment}", *wrong])

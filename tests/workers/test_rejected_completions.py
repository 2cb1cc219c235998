"""Completions that no role could use: turns of their own, token by token, in either durability, also after a crash."""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.models.credentials import EngineEndpoint
from offing.models.policy_folder import PolicyHashes
from offing.services import logprob_parity, policies, rollouts, tasks
from offing.services.graphs import open_registry
from offing.services.policies import PolicyRegistration
from offing.services.rollouts import BatchRequest
from offing.storage import trajectory_reads
from offing.storage.rollouts import RolloutFilter, RolloutRow
from offing.storage.segments import StoredRoleCall
from offing_workers.replay import replay_run
from tests.model_provider import Completion, Reply, Slow, WireServer
from tests.model_provider.policy_server import Policies, Respond
from tests.model_provider.server import Received
from tests.workers import segment_graph
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import a_task
from tests.workers.segment_graph import MUMBLED
from tests.workers.test_training_record import assert_exact, environment, left, run_to_end, the_run

QUICK = {
    "OFFING_LEASE_SECONDS": "1",
    "OFFING_HEARTBEAT_INTERVAL_SECONDS": "0.25",
    "OFFING_SWEEP_INTERVAL_SECONDS": "0.4",
}


def mumbles(when: Callable[[int], bool]) -> Respond:
    """Another word at each request; nothing usable at those that `when` names, from 1."""
    run_to_end = 0

    def say(_: dict[str, Any]) -> str:
        nonlocal run_to_end
        run_to_end += 1
        return f"{MUMBLED} {run_to_end}" if when(run_to_end) else f"word {run_to_end}"

    return say


def describe_calls(turns: list[StoredRoleCall]) -> list[tuple[Any, ...]]:
    return [(t.role, t.completion, t.is_accepted, t.attempt, t.problem) for t in turns]


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_each_attempt_is_a_turn_that_scores_as_it_was_sampled_and_the_run_can_be_played_again(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    async with WireServer(policy := Policies(mumbles(lambda n: n in (1, 4, 5)))) as server:
        start_worker(**environment(server))
        run = await run_to_end(platform, the_run(durability, turns=2))
        result, turns = await left(platform, run)
        checked = await logprob_parity.measure_parity(
            platform.database, platform.tenant, EngineEndpoint(server.url), sample_size=100
        )
    problem = "Write it out."
    assert describe_calls(turns) == [
        ("diarist", f"{MUMBLED} 1", False, 1, problem),
        ("diarist", "word 2", True, 2, ""),
        ("reader", "word 3", True, 1, ""),
        ("diarist", f"{MUMBLED} 4", False, 1, problem),
        ("diarist", f"{MUMBLED} 5", False, 2, problem),
        ("diarist", "word 6", True, 3, ""),
        ("reader", "word 7", True, 1, ""),
    ]
    assert_exact(turns, policy.chats)
    assert [(s.role, s.boundary_reason, len(s.role_calls), s.parent_idx) for s in result] == [
        ("diarist", "rejected", 1, None),
        ("diarist", "root", 2, None),
        ("reader", "root", 1, None),
        ("diarist", "rejected", 1, 1),
        ("diarist", "rejected", 1, 1),
        ("reader", "workspace_reset", 1, 2),
    ]
    assert {turn.trainable for turn in turns} == {"rl"}
    assert [turn.is_final for turn in turns] == [False] * 5 + [True] * 2
    assert (checked.scored_count, checked.quarantined) == (7, ())
    again = await replay_run(platform.database, platform.tenant, run.id, open_registry(segment_graph.GRAPHS))
    assert again.is_same, again.detail
    steps = {s.seq: s for s in await platform.steps(run.id)}
    assert [steps[t.seq].kind for t in turns if not t.is_accepted] == [StepKind.REJECTED_COMPLETION] * 3
    assert sum(t.prompt_tokens + t.completion_tokens for t in turns) == run.usage.tokens


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_policy_that_is_never_read_violates_with_a_reward_of_nought_and_all_its_rows(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    async with WireServer(Policies(mumbles(lambda _: True))) as server:
        start_worker(**environment(server))
        member = await collected(platform, durability)
    async with platform.database.transaction(platform.tenant) as connection:
        talks = await trajectory_reads.list_role_calls(connection, member.run_id)
    row = await platform.run(member.run_id)
    assert (row.status, row.stop_reason) == (RunStatus.DONE, StopReason.INVALID_OUTPUT)
    assert (member.outcome, member.reward) == ("violated", 0.0)
    assert [(t.completion, t.is_accepted, t.attempt) for t in talks] == [
        (f"{MUMBLED} {n}", False, n) for n in (1, 2, 3)
    ]
    assert [t.turn for t in talks] == [1, 1, 1]
    assert not any(t.is_trainable_text(include_quarantined=True) for t in talks)


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_worker_that_is_killed_between_attempts_leaves_each_of_them_once(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    """It dies while the second attempt of the second turn is under way."""
    held, policy = asyncio.Event(), Policies(mumbles(lambda n: n == 3))

    def until_the_fourth(request: Received) -> Reply:
        if len(policy.chats) == 3 and not held.is_set():
            held.set()
            return Slow(Completion("too late"), 60)
        return policy(request)

    async with WireServer(until_the_fourth) as server:
        first = start_worker(**environment(server), **QUICK)
        running = asyncio.ensure_future(run_to_end(platform, the_run(durability, turns=2)))
        await asyncio.wait_for(held.wait(), 30)
        first.kill()
        policy.says = mumbles(lambda n: n == (1 if durability == "sync" else 3))
        start_worker(**environment(server), **QUICK)
        run = await running
    _, turns = await left(platform, run)
    assert [(t.role, t.is_accepted, t.attempt) for t in turns] == [
        ("diarist", True, 1),
        ("reader", True, 1),
        ("diarist", False, 1),
        ("diarist", True, 2),
        ("reader", True, 1),
    ]
    attempts = [s for s in await platform.steps(run.id) if s.kind is StepKind.REJECTED_COMPLETION]
    assert [s.seq for s in attempts] == [t.seq for t in turns if not t.is_accepted]


async def collected(platform: Platform, durability: str) -> RolloutRow:
    """A group of one rollout, finalized."""
    choice = EngineConfig(engine="policy", model="small@1", prompt_format="compact", max_tokens=400)
    await policies.register_version(
        platform.database,
        platform.tenant,
        PolicyRegistration(name="small", kind="full", uri="/nowhere", hashes=PolicyHashes("a" * 64, "", "")),
    )
    stored = await tasks.store_tasks(platform.database, platform.tenant, "test", [a_task()])
    request = BatchRequest(
        *("recording", stored.task_ids, 1, {"diarist": choice, "reader": choice}),
        budget=Budget(max_turns=3),
        durability=durability,
    )
    graphs = open_registry(segment_graph.GRAPHS)
    created = await rollouts.create_batch(platform.database, platform.notifier, platform.tenant, request, graphs=graphs)
    return await wait_until_finalized(platform, created.batch.id)


async def wait_until_finalized(platform: Platform, batch_id: UUID) -> RolloutRow:
    give_up = time.monotonic() + 30
    while (await rollouts.get_batch(platform.database, platform.tenant, batch_id)).progress.open:
        assert time.monotonic() < give_up
        await asyncio.sleep(0.05)
    ((member,), _) = await rollouts.list_rollouts(platform.database, platform.tenant, RolloutFilter(), None, 10)
    return member

"""Completions that no role could use: turns of their own, token by token, in either durability, whoever is killed."""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepKind
from offing.models.credentials import Destination
from offing.services import parity, policies, rollouts, tasks
from offing.services.graphs import installed
from offing.services.rollouts import BatchRequest
from offing.storage import stretches
from offing.storage.rollouts import RolloutFilter, RolloutRow
from offing.storage.segments import StoredTurn
from offing_workers.replay import replayed
from tests.wire import Completion, Reply, Slow, WireServer
from tests.wire.policies import Policies, Says
from tests.wire.server import Received
from tests.workers import recording
from tests.workers.collecting import a_task
from tests.workers.conftest import Platform, StartWorker
from tests.workers.recording import MUMBLED
from tests.workers.test_record import asked, assert_exact, environment, left, the_run

QUICK = {"OFFING_LEASE_SECONDS": "1", "OFFING_HEARTBEAT_SECONDS": "0.25", "OFFING_SWEEP_SECONDS": "0.4"}


def mumbles(when: Callable[[int], bool]) -> Says:
    """Another word at each request; nothing usable at those that `when` names, from 1."""
    asked = 0

    def say(_: dict[str, Any]) -> str:
        nonlocal asked
        asked += 1
        return f"{MUMBLED} {asked}" if when(asked) else f"word {asked}"

    return say


def told(turns: list[StoredTurn]) -> list[tuple[Any, ...]]:
    return [(t.role, t.completion, t.accepted, t.attempt, t.problem) for t in turns]


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_each_attempt_is_a_turn_that_scores_as_it_was_sampled_and_the_run_can_be_played_again(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    async with WireServer(policy := Policies(mumbles(lambda n: n in (1, 4, 5)))) as server:
        start_worker(**environment(server))
        run = await asked(platform, the_run(durability, turns=2))
        found, turns = await left(platform, run)
        checked = await parity.check(platform.database, platform.tenant, Destination(server.url), sample=100)
    problem = "Write it out."
    assert told(turns) == [
        ("diarist", f"{MUMBLED} 1", False, 1, problem),
        ("diarist", "word 2", True, 2, ""),
        ("reader", "word 3", True, 1, ""),
        ("diarist", f"{MUMBLED} 4", False, 1, problem),
        ("diarist", f"{MUMBLED} 5", False, 2, problem),
        ("diarist", "word 6", True, 3, ""),
        ("reader", "word 7", True, 1, ""),
    ]
    assert_exact(turns, policy.chats)
    assert [(s.role, s.fracture, len(s.turns), s.parent) for s in found] == [
        ("diarist", "rejected", 1, None),
        ("diarist", "root", 2, None),
        ("reader", "root", 1, None),
        ("diarist", "rejected", 1, 1),
        ("diarist", "rejected", 1, 1),
        ("reader", "workspace_reset", 1, 2),
    ]
    assert {turn.trainable for turn in turns} == {"rl"}
    assert [turn.done for turn in turns] == [False] * 5 + [True] * 2
    assert (checked.checked, checked.doubtful) == (7, ())
    again = await replayed(platform.database, platform.tenant, run.id, installed(recording.GRAPHS))
    assert again.same, again.detail
    steps = {s.seq: s for s in await platform.steps(run.id)}
    assert [steps[t.seq].kind for t in turns if not t.accepted] == [StepKind.ATTEMPT] * 3
    assert sum(t.prompt_tokens + t.completion_tokens for t in turns) == run.spent.tokens


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_policy_that_is_never_read_violates_with_a_reward_of_nought_and_all_its_rows(
    platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    async with WireServer(Policies(mumbles(lambda _: True))) as server:
        start_worker(**environment(server))
        member = await collected(platform, durability)
    async with platform.database.transaction(platform.tenant) as connection:
        talks = await stretches.talks(connection, member.run)
    row = await platform.run(member.run)
    assert (row.status, row.stop_reason) == (RunStatus.DONE, StopReason.INVALID_OUTPUT)
    assert (member.outcome, member.reward) == ("violated", 0.0)
    assert [(t.completion, t.accepted, t.attempt) for t in talks] == [(f"{MUMBLED} {n}", False, n) for n in (1, 2, 3)]
    assert [t.number for t in talks] == [1, 1, 1]
    assert not any(t.teaches(quarantined=True) for t in talks)


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
        running = asyncio.ensure_future(asked(platform, the_run(durability, turns=2)))
        await asyncio.wait_for(held.wait(), 30)
        first.kill()
        policy.says = mumbles(lambda n: n == (1 if durability == "sync" else 3))
        start_worker(**environment(server), **QUICK)
        run = await running
    _, turns = await left(platform, run)
    assert [(t.role, t.accepted, t.attempt) for t in turns] == [
        ("diarist", True, 1),
        ("reader", True, 1),
        ("diarist", False, 1),
        ("diarist", True, 2),
        ("reader", True, 1),
    ]
    attempts = [s for s in await platform.steps(run.id) if s.kind is StepKind.ATTEMPT]
    assert [s.seq for s in attempts] == [t.seq for t in turns if not t.accepted]


async def collected(platform: Platform, durability: str) -> RolloutRow:
    """A group of one rollout, settled."""
    choice = EngineChoice(engine="policy", model="small@1", form="compact", max_tokens=400)
    await policies.register(
        platform.database, platform.tenant, name="small", kind="full", uri="/nowhere", sha256="a" * 64,
        tokenizer_sha256="", template_sha256="",
    )  # fmt: skip
    stored = await tasks.store(platform.database, platform.tenant, "test", [a_task()])
    request = BatchRequest(
        *("recording", stored.ids, 1, {"diarist": choice, "reader": choice}),
        budget=Budget(turns=3),
        durability=durability,
    )
    graphs = installed(recording.GRAPHS)
    made = await rollouts.create(platform.database, platform.hints, platform.tenant, request, graphs=graphs)
    return await settled(platform, made.batch.id)


async def settled(platform: Platform, batch: UUID) -> RolloutRow:
    give_up = time.monotonic() + 30
    while (await rollouts.one_batch(platform.database, platform.tenant, batch)).progress.open:
        assert time.monotonic() < give_up
        await asyncio.sleep(0.05)
    ((member,), _) = await rollouts.list_rollouts(platform.database, platform.tenant, RolloutFilter(), None, 10)
    return member

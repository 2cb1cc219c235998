"""Batches as they are asked for: seeds, pinned policies, rejections, repeats, cancelling, and what stays hidden."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineConfig
from offing.core.run import CancelMode, RunStatus, StopReason
from offing.models.policy_folder import PolicyHashes
from offing.services import policies, rollouts, runs
from offing.services.policies import PolicyRegistration
from offing.services.rollouts import ScorerSpec
from offing.storage import claims
from offing_workers.rollout_finalizer import finalize_overdue
from tests.workers.conftest import Platform
from tests.workers.rollout_batches import SECRET, Collector, Died, Sql, a_task, wait_until_finalized


async def test_nothing_that_a_running_rollout_can_reach_holds_its_reference_answer(
    collector: Collector, sql: Sql
) -> None:
    await collector.collect(a_task(evidence=[{"quote": f"It is {SECRET}."}]), size=2)
    first, _ = await collector.members()
    await collector.end(first.run_id, "Something else")
    await wait_until_finalized(collector, first.run_id)
    tables = sql("select tablename from pg_tables where schemaname = 'app' order by 1")
    holding = {t for (t,) in tables if sql(f"select 1 from app.{t} x where x::text like %s", f"%{SECRET}%")}
    assert holding == {"task_reference"}


async def test_every_member_of_every_task_has_a_seed_of_its_own_that_comes_back(collector: Collector) -> None:
    await collector.collect(a_task("First?"), a_task("Second?"), size=3, seed=7)
    seeds = [m.seed for m in await collector.members()]
    assert len(set(seeds)) == 6
    await collector.collect(a_task("First?"), a_task("Second?"), size=3, seed=7)
    assert [m.seed for m in await collector.members()][6:] == seeds
    await collector.collect(a_task("First?"), size=3, seed=8)
    assert not set(seeds) & {m.seed for m in (await collector.members())[12:]}


async def _policy(collector: Collector, name: str = "planner", sha256: str = "a" * 64) -> UUID:
    row, _ = await policies.register_version(
        collector.database,
        collector.tenant,
        PolicyRegistration(name=name, kind="full", uri="/nowhere", hashes=PolicyHashes(sha256, "", "")),
    )
    return row.id


async def test_a_group_pins_the_policy_version_that_it_was_made_with(collector: Collector) -> None:
    version = await _policy(collector)
    speaker = {"speaker": EngineConfig(engine="policy", model="planner@1")}
    await collector.collect(size=1, engines=speaker)
    await _policy(collector, sha256="b" * 64)
    seen = await collector.group()
    assert seen.group.policy_version_ids == {"speaker": str(version)}
    assert seen.group.engines["speaker"]["model"] == "planner@1"


async def test_a_policy_that_is_unknown_or_bad_is_rejected_before_anything_is_made(collector: Collector) -> None:
    with pytest.raises(InvalidInput, match=r"policies\.speaker: there is no policy planner@1"):
        await collector.collect(engines={"speaker": EngineConfig(engine="policy", model="planner@1")})
    version = await _policy(collector)
    await policies.set_version_state(collector.database, collector.tenant, version, "blocked")
    with pytest.raises(InvalidInput, match="planner@1 is blocked"):
        await collector.collect(engines={"speaker": EngineConfig(engine="policy", model="planner@1")})
    assert await collector.members() == []


async def test_scorers_that_cannot_score_a_task_are_rejected(collector: Collector) -> None:
    with pytest.raises(InvalidInput, match=r"exact_match cannot score task .*no reference answers"):
        await collector.collect(a_task(answers=None), scorers=[ScorerSpec("exact_match")])
    with pytest.raises(InvalidInput, match="no reference evidence"):
        await collector.collect(scorers=[ScorerSpec("citation_recall")])
    with pytest.raises(InvalidInput, match="none of its reference answers contains exactly one number"):
        await collector.collect(scorers=[ScorerSpec("numeric")])
    with pytest.raises(InvalidInput, match="there is no scorer 'taste'"):
        await collector.collect(scorers=[ScorerSpec("taste")])
    with pytest.raises(InvalidInput, match=r"scorers\.exact_match\.nope"):
        await collector.collect(scorers=[ScorerSpec("exact_match", 1, {"nope": 1})])
    assert await collector.members() == []


async def test_a_cancelled_batch_ends_its_runs_and_tries_none_of_them_again(collector: Collector) -> None:
    created = await collector.collect(size=3)
    done, held, _ = await collector.members()
    await collector.end(done.run_id, SECRET)
    await wait_until_finalized(collector, done.run_id)
    claim = await claims.claim_run(collector.database, held.run_id, "hands", 30.0)
    assert claim is not None
    seen = await rollouts.cancel_batch(collector.database, collector.notifier, collector.tenant, created.batch.id)
    assert (seen.progress.running, seen.progress.waiting) == (1, 0)
    assert collector.notifier.controlled == [held.run_id]
    async with collector.database.transaction(collector.tenant) as connection:
        release = claims.Release(RunStatus.CANCELLED, StopReason.CANCELLED)
        await claims.release_run(connection, claim.fence, release)
    await finalize_overdue(collector.database, collector.notifier, 0)
    group = await collector.group()
    assert group.group.state == "incomplete"
    assert [(r.attempt, r.outcome) for r in group.rollouts] == [(1, "answered"), (1, "infra_error"), (1, "infra_error")]


async def test_nobody_steers_pauses_or_cancels_a_single_rollout(collector: Collector, platform: Platform) -> None:
    await collector.collect(size=1)
    (one,) = await collector.members()
    database, notifier, tenant = platform.database, platform.notifier, platform.tenant
    for ask in (
        runs.pause_run(database, notifier, tenant, one.run_id),
        runs.resume_run(database, notifier, tenant, one.run_id),
        runs.send_user_message(database, notifier, tenant, one.run_id, "Hurry"),
        runs.cancel_run(database, notifier, tenant, one.run_id, CancelMode.DISCARD),
    ):
        with pytest.raises(Conflict, match="Cancel its batch"):
            await ask


async def test_a_repeat_of_a_request_makes_what_is_missing_and_no_more(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "MAX_RUNS_PER_TRANSACTION", 4)
    tasks = [a_task(f"Question {n}?") for n in range(6)]
    create, calls = rollouts.rollout_batches.create_groups, 0

    async def dies_at_the_second(*inputs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Died
        return await create(*inputs)

    with monkeypatch.context() as dying:
        dying.setattr(rollouts.rollout_batches, "create_groups", dies_at_the_second)
        with pytest.raises(Died):
            await collector.collect(*tasks, size=2, idempotency_key="once")
    assert len(await collector.members()) == 4
    created = await collector.collect(*tasks, size=2, idempotency_key="once")
    assert (created.is_new, created.new_run_count) == (False, 8)
    members = await collector.members()
    assert len(members) == 12
    assert set(collector.notifier.dispatched) == {m.run_id for m in members}
    with pytest.raises(Conflict, match="used for another request"):
        await collector.collect(*tasks, size=3, idempotency_key="once")


async def test_the_same_request_sent_several_times_at_once_makes_one_batch(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "MAX_RUNS_PER_TRANSACTION", 2)
    tasks = [a_task(f"Question {n}?") for n in range(8)]
    created = await asyncio.gather(*(collector.collect(*tasks, size=2, idempotency_key="once") for _ in range(3)))
    assert len({m.batch.id for m in created}) == 1
    assert (sum(m.is_new for m in created), sum(m.new_run_count for m in created)) == (1, 16)
    assert len(await collector.members()) == 16

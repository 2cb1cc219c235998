"""Batches as they are asked for: seeds, pinned policies, refusals, repeats, cancelling, and what stays hidden."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice
from offing.core.run import CancelMode, RunStatus, StopReason
from offing.services import policies, rollouts, runs
from offing.services.rollouts import ScorerSpec
from offing_workers.collection import settle_forgotten
from tests.workers.collecting import SECRET, Collector, Died, Sql, a_task, settled
from tests.workers.conftest import Platform


async def test_nothing_that_a_running_rollout_can_reach_holds_its_reference_answer(
    collector: Collector, sql: Sql
) -> None:
    await collector.collect(a_task(evidence=[{"quote": f"It is {SECRET}."}]), size=2)
    first, _ = await collector.members()
    await collector.end(first.run, "Something else")
    await settled(collector, first.run)
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
    row, _ = await policies.register(
        collector.database, collector.tenant, name=name, kind="full", uri="/nowhere", sha256=sha256,
        tokenizer_sha256="", template_sha256="",
    )  # fmt: skip
    return row.id


async def test_a_group_pins_the_policy_version_that_it_was_made_with(collector: Collector) -> None:
    version = await _policy(collector)
    speaker = {"speaker": EngineChoice(engine="policy", model="planner@1")}
    await collector.collect(size=1, engines=speaker)
    await _policy(collector, sha256="b" * 64)
    seen = await collector.group()
    assert seen.group.policies == {"speaker": str(version)}
    assert seen.group.engines["speaker"]["model"] == "planner@1"


async def test_a_policy_that_is_unknown_or_bad_is_refused_before_anything_is_made(collector: Collector) -> None:
    with pytest.raises(InvalidInput, match=r"policies\.speaker: there is no policy planner@1"):
        await collector.collect(engines={"speaker": EngineChoice(engine="policy", model="planner@1")})
    version = await _policy(collector)
    await policies.change_state(collector.database, collector.tenant, version, "bad")
    with pytest.raises(InvalidInput, match="planner@1 is marked as bad"):
        await collector.collect(engines={"speaker": EngineChoice(engine="policy", model="planner@1")})
    assert await collector.members() == []


async def test_scorers_that_cannot_score_a_task_are_refused(collector: Collector) -> None:
    with pytest.raises(InvalidInput, match=r"exact_match cannot score task .*no reference answers"):
        await collector.collect(a_task(answers=None), scorers=[ScorerSpec("exact_match")])
    with pytest.raises(InvalidInput, match="no reference evidence"):
        await collector.collect(scorers=[ScorerSpec("citation_recall")])
    with pytest.raises(InvalidInput, match="none of its reference answers states one number"):
        await collector.collect(scorers=[ScorerSpec("numeric")])
    with pytest.raises(InvalidInput, match="there is no scorer 'taste'"):
        await collector.collect(scorers=[ScorerSpec("taste")])
    with pytest.raises(InvalidInput, match=r"scorers\.exact_match\.nope"):
        await collector.collect(scorers=[ScorerSpec("exact_match", 1, {"nope": 1})])
    assert await collector.members() == []


async def test_a_cancelled_batch_ends_its_runs_and_tries_none_of_them_again(collector: Collector) -> None:
    made = await collector.collect(size=3)
    done, held, _ = await collector.members()
    await collector.end(done.run, SECRET)
    await settled(collector, done.run)
    from offing.storage import runs as rows

    claim = await rows.claim(collector.database, held.run, "hands", 30.0)
    assert claim is not None
    seen = await rollouts.cancel(collector.database, collector.hints, collector.tenant, made.batch.id)
    assert (seen.progress.running, seen.progress.waiting) == (1, 0)
    assert collector.hints.nudged == [held.run]
    async with collector.database.transaction(collector.tenant) as connection:
        release = rows.Release(RunStatus.CANCELLED, StopReason.CANCELLED)
        await rows.hand_back(connection, claim.fence, release)
    await settle_forgotten(collector.database, collector.hints, 0)
    group = await collector.group()
    assert group.group.state == "short"
    assert [(r.attempt, r.outcome) for r in group.rollouts] == [(1, "answered"), (1, "infra_error"), (1, "infra_error")]


async def test_nobody_steers_pauses_or_cancels_a_single_rollout(collector: Collector, platform: Platform) -> None:
    await collector.collect(size=1)
    (one,) = await collector.members()
    database, hints, tenant = platform.database, platform.hints, platform.tenant
    for ask in (
        runs.pause(database, hints, tenant, one.run),
        runs.resume(database, hints, tenant, one.run),
        runs.steer(database, hints, tenant, one.run, "Hurry"),
        runs.cancel(database, hints, tenant, one.run, CancelMode.DISCARD),
    ):
        with pytest.raises(Conflict, match="Cancel its batch"):
            await ask


async def test_a_repeat_of_a_request_makes_what_is_missing_and_no_more(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "RUNS_AT_ONCE", 4)
    tasks = [a_task(f"Question {n}?") for n in range(6)]
    create, calls = rollouts.groups.create, 0

    async def dies_at_the_second(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Died
        return await create(*given)

    with monkeypatch.context() as dying:
        dying.setattr(rollouts.groups, "create", dies_at_the_second)
        with pytest.raises(Died):
            await collector.collect(*tasks, size=2, idempotency_key="once")
    assert len(await collector.members()) == 4
    made = await collector.collect(*tasks, size=2, idempotency_key="once")
    assert (made.new, made.runs) == (False, 8)
    members = await collector.members()
    assert len(members) == 12
    assert set(collector.hints.woken) == {m.run for m in members}
    with pytest.raises(Conflict, match="used for another request"):
        await collector.collect(*tasks, size=3, idempotency_key="once")


async def test_the_same_request_sent_several_times_at_once_makes_one_batch(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "RUNS_AT_ONCE", 2)
    tasks = [a_task(f"Question {n}?") for n in range(8)]
    made = await asyncio.gather(*(collector.collect(*tasks, size=2, idempotency_key="once") for _ in range(3)))
    assert len({m.batch.id for m in made}) == 1
    assert (sum(m.new for m in made), sum(m.runs for m in made)) == (1, 16)
    assert len(await collector.members()) == 16

"""Rollouts are settled once, whatever happens to whoever settles them; faults leave their group, and are no zeros."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, Unavailable
from offing.core.model import EngineChoice
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.trajectory import Outcome
from offing.scorers import exact_match
from offing.services import policies, rollouts, runs
from offing.services.rollouts import ScorerSpec
from offing.storage.groups import Progress
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing_workers import collection
from offing_workers.collection import settle, settle_forgotten
from tests.workers.collecting import SECRET, Collector, a_task
from tests.workers.conftest import Platform, StartWorker

JUDGE: dict[str, Any] = {"engine": "scripted", "options": {"answers": [{"score": 0.5, "reason": "half"}]}}

BROKEN: dict[str, Any] = {
    "engine": "scripted",
    "options": {"answers": [{"score": 0.5, "reason": "half"}], "fail": {"1": {"kind": "overloaded"}}},
}

Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
async def collector(app_url: str) -> AsyncIterator[Collector]:
    async with Database(app_url, most=8) as database:
        yield Collector(database)


@pytest.fixture
def sql(owner_url: str) -> Sql:
    """Runs a statement as the owner."""

    def execute(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(owner_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    return execute


async def settled(collector: Collector, run: UUID) -> None:
    await settle(collector.database, collector.hints, collector.tenant, run)


async def test_a_group_is_complete_when_all_of_its_members_are_scored(collector: Collector) -> None:
    await collector.collect(size=2)
    right, wrong = await collector.members()
    await collector.end(right.run, f"**{SECRET}**")
    await settled(collector, right.run)
    assert (await collector.group()).group.state == "open"
    await collector.end(wrong.run, "Somewhere else")
    await settled(collector, wrong.run)
    seen = await collector.group()
    assert seen.group.state == "complete"
    assert [(r.outcome, r.reward) for r in seen.rollouts] == [("answered", 1.0), ("answered", 0.0)]
    assert {(s.run, s.scorer, s.scorer_version, s.value) for s in seen.scores} == {
        (right.run, "exact_match", "1", 1.0),
        (wrong.run, "exact_match", "1", 0.0),
    }


async def test_a_reward_is_the_weighted_sum_and_a_scorer_without_weight_is_only_recorded(collector: Collector) -> None:
    scorers = [ScorerSpec("exact_match", 2.0), ScorerSpec("token_f1", 0.5), ScorerSpec("rubric_judge", 0, JUDGE)]
    await collector.collect(size=1, scorers=[*scorers[:2], ScorerSpec("rubric_judge", 0, {"engine": JUDGE})])
    (one,) = await collector.members()
    await collector.end(one.run, f"It is {SECRET}")
    await settled(collector, one.run)
    seen = await collector.group()
    f1 = 2 * 3 / (3 + 5)
    assert seen.rollouts[0].reward == pytest.approx(0.5 * f1)
    assert {s.scorer: s.value for s in seen.scores} == {
        "exact_match": 0.0,
        "token_f1": pytest.approx(f1),
        "rubric_judge": 0.5,
    }


async def test_a_run_that_was_cut_off_is_scored_and_keeps_how_it_ended(collector: Collector) -> None:
    await collector.collect(size=1)
    (one,) = await collector.members()
    await collector.end(one.run, SECRET, reason=StopReason.TURN_LIMIT)
    await settled(collector, one.run)
    (after,) = await collector.members()
    assert (after.outcome, after.reward) == (Outcome.TRUNCATED, 1.0)


async def test_a_fault_is_tried_again_with_the_same_seed_and_then_leaves_its_group_short(collector: Collector) -> None:
    await collector.collect(size=2, attempts=2)
    good, bad = await collector.members()
    await collector.end(good.run, SECRET)
    await settled(collector, good.run)
    await collector.end(bad.run, "", reason=StopReason.PROVIDER_DOWN)
    await settled(collector, bad.run)
    (again,) = [m for m in await collector.members() if m.attempt == 2]
    assert (again.member, again.seed, again.status) == (bad.member, bad.seed, "queued")
    assert again.run in collector.hints.woken
    assert (await collector.group()).group.state == "open"
    await collector.end(again.run, None, status=RunStatus.FAILED, reason=StopReason.GRAPH_ERROR)
    await settled(collector, again.run)
    seen = await collector.group()
    assert seen.group.state == "short"
    assert [(r.member, r.attempt, r.outcome, r.reward) for r in seen.rollouts] == [
        (good.member, 1, "answered", 1.0),
        (bad.member, 1, "infra_error", None),
        (bad.member, 2, "infra_error", None),
    ]
    assert {s.run for s in seen.scores} == {good.run}


async def test_a_member_that_succeeds_at_its_second_attempt_leaves_the_group_complete(collector: Collector) -> None:
    await collector.collect(size=1)
    (first,) = await collector.members()
    await collector.end(first.run, None, reason=StopReason.PROVIDER_DOWN)
    await settled(collector, first.run)
    second = (await collector.members())[-1]
    await collector.end(second.run, SECRET)
    await settled(collector, second.run)
    assert (await collector.group()).group.state == "complete"


async def test_settling_again_or_at_the_same_time_changes_nothing(collector: Collector) -> None:
    await collector.collect(size=4)
    members = await collector.members()
    for n, member in enumerate(members):
        await collector.end(
            member.run, SECRET if n else None, reason=StopReason.ANSWERED if n else StopReason.NO_PROGRESS
        )
    await asyncio.gather(*(settled(collector, m.run) for m in members for _ in range(5)))
    before = await collector.group()
    assert [(r.member, r.attempt) for r in before.rollouts] == [(0, 1), (0, 2), (1, 1), (2, 1), (3, 1)]
    assert len(before.scores) == 3
    await asyncio.gather(*(settled(collector, m.run) for m in members))
    assert await collector.group() == before


async def test_a_failing_scorer_is_asked_again_and_its_failure_is_never_a_zero(collector: Collector, sql: Sql) -> None:
    await collector.collect(
        size=1, scorers=[ScorerSpec("exact_match"), ScorerSpec("rubric_judge", 1, {"engine": BROKEN})]
    )
    (one,) = await collector.members()
    await collector.end(one.run, SECRET)
    await settled(collector, one.run)
    seen = await collector.group()
    assert (seen.rollouts[0].reward, seen.rollouts[0].settled_at, seen.group.state) == (None, None, "open")
    failed = next(s for s in seen.scores if s.scorer == "rubric_judge")
    assert failed.value is None
    assert "overloaded" in failed.failure
    await settle_forgotten(collector.database, collector.hints, 0)
    assert len((await collector.group()).scores) == 2, "it is not asked again before its pause is over"
    _mend_judge(sql)
    sql("update app.rollout set due_at = now() - interval '1 second'")
    await settle_forgotten(collector.database, collector.hints, 0)
    seen = await collector.group()
    assert (seen.rollouts[0].reward, seen.group.state) == (1.5, "complete")
    assert [(s.scorer, s.version, s.value) for s in seen.scores] == [
        ("exact_match", 1, 1.0),
        ("rubric_judge", 1, None),
        ("rubric_judge", 2, 0.5),
    ]


async def test_a_scorer_that_fails_for_good_leaves_the_rollout_without_reward_and_the_group_short(
    collector: Collector, sql: Sql
) -> None:
    await collector.collect(size=1, scorers=[ScorerSpec("rubric_judge", 1, {"engine": BROKEN})])
    (one,) = await collector.members()
    await collector.end(one.run, SECRET)
    for _ in range(collection.TRIES):
        sql("update app.rollout set due_at = now() - interval '1 second'")
        await settle_forgotten(collector.database, collector.hints, 0)
    seen = await collector.group()
    assert (seen.rollouts[0].reward, seen.rollouts[0].outcome, seen.group.state) == (None, "answered", "short")
    assert len(seen.scores) == collection.TRIES


async def test_two_settlers_do_not_ask_the_same_judge_twice(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {**JUDGE, "options": {**JUDGE["options"], "delay_ms": 100}}
    await collector.collect(size=1, scorers=[ScorerSpec("rubric_judge", 1, {"engine": slow})])
    (one,) = await collector.members()
    await collector.end(one.run, SECRET)
    asked = 0
    once = collection._scores  # pyright: ignore[reportPrivateUsage]

    async def counted(work: Any, meter: Any) -> Any:
        nonlocal asked
        asked += 1
        return await once(work, meter)

    monkeypatch.setattr(collection, "_scores", counted)
    await asyncio.gather(*(settled(collector, one.run) for _ in range(5)))
    assert asked == 1
    assert (await collector.group()).group.state == "complete"


async def test_a_scorer_of_another_version_than_the_pinned_one_does_not_score(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    await collector.collect(size=1)
    monkeypatch.setattr(exact_match.ExactMatch, "version", "2")
    (one,) = await collector.members()
    await collector.end(one.run, SECRET)
    await settled(collector, one.run)
    (score,) = (await collector.group()).scores
    assert (score.scorer_version, score.value) == ("1", None)
    assert "version 2" in score.failure


async def test_a_scorer_that_raises_has_failed_and_the_next_rollout_is_settled(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raises(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    await collector.collect(size=1)
    (one,) = await collector.members()
    await collector.end(one.run, SECRET)
    with monkeypatch.context() as broken:
        broken.setattr(exact_match.ExactMatch, "score", raises)
        await settled(collector, one.run)
    (score,) = (await collector.group()).scores
    assert (score.value, score.failure) == (None, "ZeroDivisionError: a bug")


class Died(BaseException):
    """The settler is gone."""


class Disturbed(Database):
    """At its nth statement or transaction, Postgres goes away or the settler dies."""

    at = 0
    count = 0
    what: Literal["away", "killed"] = "away"

    @asynccontextmanager
    async def transaction(self, tenant: UUID) -> AsyncGenerator[Connection]:
        self._strike()
        async with super().transaction(tenant) as connection:
            execute = connection.execute

            async def watched(*args: Any, **kwargs: Any) -> Any:
                self._strike()
                return await execute(*args, **kwargs)

            connection.execute = watched  # pyright: ignore[reportAttributeAccessIssue]
            try:
                yield connection
                self._strike()
            finally:
                del connection.execute
        self._strike()

    def _strike(self) -> None:
        self.count += 1
        if self.count == self.at:
            raise Died if self.what == "killed" else Unavailable("on purpose")


@pytest.mark.parametrize("what", ["away", "killed"])
@pytest.mark.parametrize("judged", [False, True], ids=["rules", "judge"])
async def test_a_settler_that_is_lost_at_any_moment_leaves_nothing_half_done(
    app_url: str, sql: Sql, what: Literal["away", "killed"], judged: bool
) -> None:
    scorers = [ScorerSpec("exact_match"), *([ScorerSpec("rubric_judge", 1, {"engine": JUDGE})] if judged else [])]
    async with Database(app_url, most=4) as calm, Disturbed(app_url, most=2) as disturbed:
        disturbed.what = what
        collector, moment, struck = Collector(calm), 0, True
        while struck:
            moment += 1
            await collector.collect(a_task(f"Question {moment}?"), size=2, attempts=2, scorers=scorers)
            good, bad = (await collector.members())[-2:]
            await collector.end(good.run, SECRET)
            await collector.end(bad.run, None, reason=StopReason.PROVIDER_DOWN)
            struck = False
            for run in (good.run, bad.run):
                disturbed.at, disturbed.count = moment, 0
                try:
                    await settle(disturbed, collector.hints, LOCAL_TENANT, run)
                except (Died, Unavailable):
                    struck = True
            sql("update app.rollout set due_at = now() - interval '1 second' where due_at is not null")
            await settle_forgotten(calm, collector.hints, 0)
            again = (await collector.members())[-1]
            await collector.end(again.run, "No")
            await settled(collector, again.run)
            await _as_undisturbed(collector, good.group, judged)
    assert moment > 8


async def _as_undisturbed(collector: Collector, group: UUID, judged: bool) -> None:
    seen = await rollouts.one_group(collector.database, collector.tenant, group)
    more = 0.5 if judged else 0.0
    assert [(r.member, r.attempt, r.outcome, r.reward) for r in seen.rollouts] == [
        (0, 1, "answered", 1.0 + more),
        (1, 1, "infra_error", None),
        (1, 2, "answered", 0.0 + more),
    ]
    assert seen.group.state == "complete"
    assert len(seen.scores) == (4 if judged else 2)


def _mend_judge(sql: Sql) -> None:
    sql(
        """update app.rollout_group set scorers = jsonb_set(
             scorers, '{1,options,engine,options}', (scorers #> '{1,options,engine,options}') - 'fail')"""
    )


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
        await rows.hand_back(connection, claim.fence, 30.0, release)
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


async def test_rollouts_of_a_real_worker_are_settled_and_hidden_from_the_list_of_runs(
    collector: Collector, platform: Platform, start_worker: StartWorker
) -> None:
    collector.hints.wake_all = platform.hints.wake_all
    made = await collector.collect(a_task("Count?", answers=["not this"]), size=3, durability="sync")
    start_worker(OFFING_SWEEP_SECONDS="0.3")
    progress = await settled_all(collector, made.batch.id)
    assert (progress.complete, progress.open, progress.mean_reward) == (1, 0, 0.0)
    assert await runs_listed(collector) == []


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_groups_are_whole_although_workers_are_killed(
    collector: Collector, platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    collector.hints.wake_all = platform.hints.wake_all
    quick = {"OFFING_LEASE_SECONDS": "1", "OFFING_HEARTBEAT_SECONDS": "0.25", "OFFING_SWEEP_SECONDS": "0.4"}
    script = {"answers": [{"word": "w{turn}"}], "delay_ms": 150}
    slow = {"speaker": EngineChoice(engine="scripted", options=script)}
    workers = [start_worker(**quick), start_worker(**quick)]
    questions = [a_task(f"Question {n}?") for n in range(4)]
    made = await collector.collect(*questions, size=4, engines=slow, durability=durability, budget=Budget(6))
    for worker in workers:
        await asyncio.sleep(0.7)
        worker.kill()
    start_worker(**quick)
    progress = await settled_all(collector, made.batch.id)
    assert (progress.complete, progress.short, progress.rollouts, progress.settled) == (4, 0, 16, 16)
    members = await collector.members()
    assert [(m.member, m.attempt, m.outcome) for m in members] == [
        (n, 1, "answered") for _ in range(4) for n in range(4)
    ]
    seen = [await rollouts.one_group(collector.database, collector.tenant, id) for id in {m.group for m in members}]
    assert [len(group.scores) for group in seen] == [4, 4, 4, 4]


async def settled_all(collector: Collector, batch: UUID, seconds: float = 60) -> Progress:
    """How far the batch is once all of it is settled."""
    give_up = time.monotonic() + seconds
    while (progress := (await rollouts.one_batch(collector.database, collector.tenant, batch)).progress).open:
        assert time.monotonic() < give_up, progress
        await asyncio.sleep(0.1)
    return progress


async def runs_listed(collector: Collector) -> list[UUID]:
    from offing.services import views
    from offing.storage.views import RunFilter

    found, _ = await views.list_runs(collector.database, collector.tenant, RunFilter(), None, 50)
    threads, _ = await views.list_threads(collector.database, collector.tenant, None, 50)
    assert threads == []
    return [shown.run.id for shown in found]


async def test_settling_a_run_that_is_no_rollout_does_nothing(platform: Platform) -> None:
    await settle(platform.database, platform.hints, platform.tenant, new_id())

"""Rollouts are finalized once and scored as their group pins; a fault leaves its group, and is no zero."""

import pytest

from offing.clock import new_id
from offing.core.run import RunStatus, StopReason
from offing.core.trajectory import Outcome
from offing.scorers.rule_scorer import RuleScorer
from offing.services.rollouts import ScorerSpec
from offing_workers import rollout_finalizer
from offing_workers.rollout_finalizer import finalize_ended_rollout, finalize_overdue
from tests.workers.conftest import Platform
from tests.workers.rollout_batches import BROKEN, JUDGE, SECRET, Collector, Sql, wait_until_finalized


async def test_a_group_is_complete_when_all_of_its_members_are_scored(collector: Collector) -> None:
    await collector.collect(size=2)
    right, wrong = await collector.members()
    await collector.end(right.run_id, f"**{SECRET}**")
    await wait_until_finalized(collector, right.run_id)
    assert (await collector.group()).group.state == "open"
    await collector.end(wrong.run_id, "Somewhere else")
    await wait_until_finalized(collector, wrong.run_id)
    seen = await collector.group()
    assert seen.group.state == "complete"
    assert [(r.outcome, r.reward) for r in seen.rollouts] == [("answered", 1.0), ("answered", 0.0)]
    assert {(s.run_id, s.scorer, s.scorer_version, s.value) for s in seen.scores} == {
        (right.run_id, "exact_match", "1", 1.0),
        (wrong.run_id, "exact_match", "1", 0.0),
    }


async def test_a_reward_is_the_weighted_sum_and_a_scorer_without_weight_is_only_recorded(collector: Collector) -> None:
    scorers = [ScorerSpec("exact_match", 2.0), ScorerSpec("token_f1", 0.5), ScorerSpec("rubric_judge", 0, JUDGE)]
    await collector.collect(size=1, scorers=[*scorers[:2], ScorerSpec("rubric_judge", 0, {"engine": JUDGE})])
    (one,) = await collector.members()
    await collector.end(one.run_id, f"It is {SECRET}")
    await wait_until_finalized(collector, one.run_id)
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
    await collector.end(one.run_id, SECRET, reason=StopReason.TURN_LIMIT)
    await wait_until_finalized(collector, one.run_id)
    (after,) = await collector.members()
    assert (after.outcome, after.reward) == (Outcome.TRUNCATED, 1.0)


async def test_a_fault_is_tried_again_with_the_same_seed_and_then_leaves_its_group_short(collector: Collector) -> None:
    await collector.collect(size=2, attempts=2)
    good, bad = await collector.members()
    await collector.end(good.run_id, SECRET)
    await wait_until_finalized(collector, good.run_id)
    await collector.end(bad.run_id, "", reason=StopReason.PROVIDER_DOWN)
    await wait_until_finalized(collector, bad.run_id)
    (again,) = [m for m in await collector.members() if m.attempt == 2]
    assert (again.member, again.seed, again.status) == (bad.member, bad.seed, "queued")
    assert again.run_id in collector.notifier.dispatched
    assert (await collector.group()).group.state == "open"
    await collector.end(again.run_id, None, status=RunStatus.FAILED, reason=StopReason.GRAPH_ERROR)
    await wait_until_finalized(collector, again.run_id)
    seen = await collector.group()
    assert seen.group.state == "incomplete"
    assert [(r.member, r.attempt, r.outcome, r.reward) for r in seen.rollouts] == [
        (good.member, 1, "answered", 1.0),
        (bad.member, 1, "infra_error", None),
        (bad.member, 2, "infra_error", None),
    ]
    assert {s.run_id for s in seen.scores} == {good.run_id}


async def test_a_member_that_succeeds_at_its_second_attempt_leaves_the_group_complete(collector: Collector) -> None:
    await collector.collect(size=1)
    (first,) = await collector.members()
    await collector.end(first.run_id, None, reason=StopReason.PROVIDER_DOWN)
    await wait_until_finalized(collector, first.run_id)
    second = (await collector.members())[-1]
    await collector.end(second.run_id, SECRET)
    await wait_until_finalized(collector, second.run_id)
    assert (await collector.group()).group.state == "complete"


async def test_a_failing_scorer_is_asked_again_and_its_failure_is_never_a_zero(collector: Collector, sql: Sql) -> None:
    await collector.collect(
        size=1, scorers=[ScorerSpec("exact_match"), ScorerSpec("rubric_judge", 1, {"engine": BROKEN})]
    )
    (one,) = await collector.members()
    await collector.end(one.run_id, SECRET)
    await wait_until_finalized(collector, one.run_id)
    seen = await collector.group()
    assert (seen.rollouts[0].reward, seen.rollouts[0].finalized_at, seen.group.state) == (None, None, "open")
    failed = next(s for s in seen.scores if s.scorer == "rubric_judge")
    assert failed.value is None
    assert "overloaded" in failed.failure
    await finalize_overdue(collector.database, collector.notifier, 0)
    assert len((await collector.group()).scores) == 2, "it is not asked again before its pause has ended"
    _mend_judge(sql)
    sql("update app.rollout set due_at = now() - interval '1 second'")
    await finalize_overdue(collector.database, collector.notifier, 0)
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
    await collector.end(one.run_id, SECRET)
    for _ in range(rollout_finalizer.MAX_SCORER_FAILURES):
        sql("update app.rollout set due_at = now() - interval '1 second'")
        await finalize_overdue(collector.database, collector.notifier, 0)
    seen = await collector.group()
    assert (seen.rollouts[0].reward, seen.rollouts[0].outcome, seen.group.state) == (None, "answered", "incomplete")
    assert len(seen.scores) == rollout_finalizer.MAX_SCORER_FAILURES


async def test_a_scorer_of_another_version_than_the_pinned_one_does_not_score(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    await collector.collect(size=1)
    monkeypatch.setattr(RuleScorer, "version", "2")
    (one,) = await collector.members()
    await collector.end(one.run_id, SECRET)
    await wait_until_finalized(collector, one.run_id)
    (score,) = (await collector.group()).scores
    assert (score.scorer_version, score.value) == ("1", None)
    assert "version 2" in score.failure


async def test_a_scorer_that_raises_has_failed_and_the_next_rollout_is_finalized(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raises(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    await collector.collect(size=1)
    (one,) = await collector.members()
    await collector.end(one.run_id, SECRET)
    with monkeypatch.context() as broken:
        broken.setattr(RuleScorer, "score", raises)
        await wait_until_finalized(collector, one.run_id)
    (score,) = (await collector.group()).scores
    assert (score.value, score.failure) == (None, "ZeroDivisionError: a bug")


def _mend_judge(sql: Sql) -> None:
    sql(
        """update app.rollout_group set scorers = jsonb_set(
             scorers, '{1,options,engine,options}', (scorers #> '{1,options,engine,options}') - 'fail')"""
    )


async def test_finalizing_a_run_that_is_no_rollout_does_nothing(platform: Platform) -> None:
    await finalize_ended_rollout(platform.database, platform.notifier, platform.tenant, new_id())

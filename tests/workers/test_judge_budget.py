"""Judges that score rollouts have a budget: a batch that has spent it stops, and nothing is counted as 0."""

from decimal import Decimal
from typing import Any

import pytest

from offing.core.errors import Conflict
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import Usage
from offing.core.run import StopReason
from offing.services import promotion, rollouts
from offing.services.judge_meter import JudgeMeter
from offing.services.promotion import EvaluationSetup
from offing.services.scorer_pins import ScorerSpec, build_scorers
from offing_workers.rollout_finalizer import finalize_overdue
from tests.workers.rollout_batches import JUDGE, Collector, Sql, a_task, wait_until_finalized
from tests.workers.test_task_scopes import another_tenant

USD = Decimal("0.01")

BILLED: dict[str, Any] = {**JUDGE, "options": {**JUDGE["options"], "usage": {"prompt_tokens": 10}}}
"""A judge whose calls count."""

SCORERS = [ScorerSpec("rubric_judge", 1.0, {"engine": BILLED})]


async def judged_batch(collector: Collector, budget: JudgeBudget, tasks: int = 4, weight: float = 1.0) -> None:
    """Collect one rollout for each task, which a scripted judge scores, and end the runs one after another."""
    scorers = [ScorerSpec("rubric_judge", weight, {"engine": BILLED})]
    specs = [a_task(f"Question {n}?") for n in range(tasks)]
    await collector.collect(*specs, size=1, scorers=scorers, judge_budget=budget)
    for one in await collector.members():
        if one.ended_at is None and one.status == "queued":
            await collector.end(one.run_id, "an answer")
            await wait_until_finalized(collector, one.run_id)


async def progress(collector: Collector) -> rollouts.BatchStatus:
    batches, _ = await rollouts.list_batches(collector.database, collector.tenant, None, 10)
    return batches[0]


async def test_a_batch_whose_judges_have_spent_their_calls_stops_and_counts_nothing_as_0(
    collector: Collector, sql: Sql
) -> None:
    await judged_batch(collector, JudgeBudget(max_calls=2), tasks=3)
    for one in await collector.members():
        if one.ended_at is None:
            await collector.end(one.run_id, "an answer")
    sql("update app.rollout set due_at = now() - interval '1 hour' where finalized_at is null returning run_id")
    await finalize_overdue(collector.database, collector.notifier, 0)
    batch = await progress(collector)
    assert (batch.batch.stop_reason, batch.batch.judge_calls) == ("judge_budget", 2)
    assert (batch.progress.open, batch.progress.complete, batch.progress.incomplete) == (0, 2, 1)
    assert sorted(one.reward for one in await collector.members() if one.reward is not None) == [0.5, 0.5]
    assert batch.progress.mean_reward == 0.5


async def test_the_runs_of_a_stopped_batch_are_cancelled_and_not_collected_in_vain(collector: Collector) -> None:
    await judged_batch(collector, JudgeBudget(max_calls=0), tasks=1)
    await collector.collect(
        *(a_task(f"Other {n}?") for n in range(3)), size=1, scorers=SCORERS,
        judge_budget=JudgeBudget(max_calls=0),
    )  # fmt: skip
    waiting = [one for one in await collector.members() if one.ended_at is None]
    await collector.end(waiting[0].run_id, "an answer")
    await wait_until_finalized(collector, waiting[0].run_id)
    assert {one.stop_reason for one in await collector.members() if one.question != "Question 0?"} == {
        StopReason.ANSWERED,
        StopReason.CANCELLED,
    }


async def test_a_batch_without_a_limit_counts_what_its_judges_use(collector: Collector) -> None:
    await judged_batch(collector, NO_JUDGE_LIMIT, tasks=2)
    batch = await progress(collector)
    assert (batch.batch.judge_calls, batch.batch.stop_reason, batch.progress.complete) == (2, "", 2)


async def test_a_cost_is_reserved_before_the_call_and_corrected_after_it(collector: Collector) -> None:
    created = await collector.collect(size=1, judge_budget=JudgeBudget(max_cost_usd=3 * USD))
    meter = JudgeMeter(collector.database, collector.tenant, created.batch.id)
    assert await meter.reserve(10, 2 * USD) is None
    assert await meter.reserve(10, 2 * USD) is StopReason.SPEND_LIMIT, "two at once would cost more than 3"
    await meter.settle(Usage(cost_usd=USD))
    assert await meter.reserve(10, 2 * USD) is None
    await meter.settle(Usage(cost_usd=2 * USD))
    assert await meter.reserve(10, USD / 2) is StopReason.SPEND_LIMIT
    batch = await progress(collector)
    assert (batch.batch.judge_calls, batch.batch.judge_cost_usd) == (2, 3 * USD)


async def test_a_judge_of_another_tenant_spends_nothing(collector: Collector, owner_url: str) -> None:
    created = await collector.collect(size=1, judge_budget=JudgeBudget(max_calls=1))
    meter = JudgeMeter(collector.database, another_tenant(owner_url), created.batch.id)
    assert await meter.reserve(10, Decimal()) is StopReason.SPEND_LIMIT
    assert (await progress(collector)).batch.judge_calls == 0


def test_a_table_of_scorers_gives_weights_and_options() -> None:
    table: dict[str, Any] = {"citation_recall": 0.5, "rubric_judge": {"weight": 0.25, "engine": "x", "rubric": "r"}}
    assert build_scorers(table | {"numeric": {"relative": 0.1}}) == [
        ScorerSpec("citation_recall", 0.5),
        ScorerSpec("rubric_judge", 0.25, {"engine": "x", "rubric": "r"}),
        ScorerSpec("numeric", 1.0, {"relative": 0.1}),
    ]
    assert build_scorers({}) is None


def test_what_is_left_of_a_budget_is_never_negative() -> None:
    left = JudgeBudget(10, 2 * USD).subtract(12, USD)
    assert (left, left.is_spent) == (JudgeBudget(0, USD), True)
    assert JudgeBudget(5).narrow(left) == left
    assert NO_JUDGE_LIMIT.subtract(5, USD) == NO_JUDGE_LIMIT


async def test_an_evaluation_whose_judges_have_spent_their_budget_is_no_result(collector: Collector) -> None:
    await judged_batch(collector, JudgeBudget(max_calls=0), tasks=1)
    batch = (await progress(collector)).batch
    setup = EvaluationSetup("test", [], "counting", "planner")
    with pytest.raises(Conflict, match="judges had spent their budget"):
        await promotion.store_evaluation(collector.database, collector.tenant, "planner@1", batch.id, setup)

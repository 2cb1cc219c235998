"""The arithmetic of an experiment: means, paired differences, answers, cost and verdicts of a judge."""

from uuid import UUID

import pytest

from offing.services.experiment_summary import (
    WEIGHTED_MEAN,
    ComparisonVerdict,
    ExperimentSummary,
    summarize,
    summarize_judgments,
)
from offing.storage.experiments import JudgmentRow, ResultRow, Verdict

TASKS = [UUID(int=n) for n in range(20)]

UNANSWERABLE = dict.fromkeys(TASKS, False)

MATCH = {"exact_match": 1.0}


def a_result(
    task: int,
    value: float | None = 1.0,
    *,
    number: int = 0,
    outcome: str = "answered",
    abstained: bool = False,
    scores: dict[str, float | None] | None = None,
    tokens: int = 10,
) -> ResultRow:
    measured = {"exact_match": value} if scores is None else scores
    return ResultRow(number, TASKS[task], TASKS[task], outcome, abstained, measured, 2, tokens, 0.5, 1.5)


def compare(first: list[float], second: list[float]) -> ExperimentSummary:
    rows = [a_result(n, value, number=side) for side in (0, 1) for n, value in enumerate((first, second)[side])]
    return summarize(["a", "b"], UNANSWERABLE, MATCH, rows, None)


def a_judgment(task: int, verdict: Verdict | None, *, swapped: bool) -> JudgmentRow:
    return JudgmentRow(1, TASKS[task], swapped, verdict, "", "", 0, 0.0)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([0.0] * 10, [1.0] * 10, ComparisonVerdict.BETTER),
        ([1.0] * 10, [0.0] * 10, ComparisonVerdict.WORSE),
        ([1.0, 0.0] * 5, [0.0, 1.0] * 5, ComparisonVerdict.NO_DIFFERENCE),
        ([1.0, 0.0] * 5, [1.0, 0.0] * 5, ComparisonVerdict.NO_DIFFERENCE),
        ([0.0] * 7, [1.0] * 7, ComparisonVerdict.TOO_FEW),
    ],
)
def test_the_verdict_says_what_the_interval_of_the_difference_shows(
    first: list[float], second: list[float], verdict: ComparisonVerdict
) -> None:
    assert compare(first, second).metrics[0].cells[1].verdict is verdict


def test_the_interval_of_a_mean_contains_it_and_is_the_same_each_time() -> None:
    summary = compare([1.0, 0.0] * 10, [1.0] * 20)
    first, second = summary.metrics[0].cells
    assert first.estimate is not None
    assert 0.2 < first.estimate.low < first.estimate.mean == 0.5 < first.estimate.high < 0.8
    assert (first.difference, first.verdict) == (None, None)
    assert second.difference is not None
    assert (second.difference.mean, second.difference.count) == (0.5, 20)
    assert compare([1.0, 0.0] * 10, [1.0] * 20) == summary


def test_a_fault_of_the_platform_is_counted_and_is_no_zero() -> None:
    rows = [a_result(n) for n in range(10)]
    rows += [a_result(n, number=1) for n in range(9)]
    rows.append(a_result(9, number=1, outcome="infra_error", scores={"exact_match": 0.0}, tokens=9999))
    summary = summarize(["a", "b"], UNANSWERABLE, MATCH, rows, None)
    cell = summary.metrics[0].cells[1]
    assert cell.estimate is not None
    assert cell.difference is not None
    assert (cell.estimate.mean, cell.estimate.count, cell.difference.count, cell.unscored) == (1.0, 9, 9, 0)
    assert (summary.answers[1].failed, summary.answers[1].questions, summary.answers[1].answered) == (1, 10, 9)
    assert summary.answers[1].tokens == 10


def test_a_scorer_that_failed_and_a_task_that_it_cannot_score_are_counted_apart() -> None:
    rows = [a_result(0), a_result(1, None), a_result(2, scores={"token_f1": 1.0})]
    summary = summarize(["a"], UNANSWERABLE, {"exact_match": 1.0, "token_f1": 0.0}, rows, None)
    metric = summary.metrics[0]
    assert metric.cells[0].estimate is not None
    assert (metric.cells[0].estimate.count, metric.cells[0].unscored, metric.inapplicable) == (1, 1, 1)
    assert [one.name for one in summary.metrics] == ["exact_match", "token_f1"]


def test_the_weighted_mean_uses_the_scorers_that_apply_to_a_task() -> None:
    weights = {"exact_match": 3.0, "token_f1": 1.0, "numeric": 0.0}
    rows = [
        a_result(0, scores={"exact_match": 0.0, "token_f1": 1.0, "numeric": 1.0}),
        a_result(1, scores={"token_f1": 0.5}),
        a_result(2, scores={"exact_match": 1.0, "token_f1": None}),
    ]
    combined = summarize(["a"], UNANSWERABLE, weights, rows, None).metrics[-1]
    assert (combined.name, combined.cells[0].unscored) == (WEIGHTED_MEAN, 1)
    assert combined.cells[0].estimate is not None
    assert combined.cells[0].estimate.mean == pytest.approx((0.25 + 0.5) / 2)


def test_refusals_are_right_only_where_there_is_no_answer() -> None:
    rows = [a_result(0), a_result(1, abstained=True), a_result(2, abstained=True), a_result(3)]
    unanswerable = UNANSWERABLE | {TASKS[2]: True, TASKS[3]: True}
    (one,) = summarize(["a"], unanswerable, MATCH, rows, None).answers
    assert (one.answered, one.unanswered, one.right_abstentions, one.wrong_answers) == (1, 1, 1, 1)


def test_only_verdicts_that_agree_in_both_orders_are_wins() -> None:
    rows = [
        *(a_judgment(0, "second", swapped=False), a_judgment(0, "first", swapped=True)),
        *(a_judgment(1, "first", swapped=False), a_judgment(1, "second", swapped=True)),
        *(a_judgment(2, "first", swapped=False), a_judgment(2, "first", swapped=True)),
        *(a_judgment(3, "tie", swapped=False), a_judgment(3, "tie", swapped=True)),
        *(a_judgment(4, "tie", swapped=False), a_judgment(4, None, swapped=True)),
        *(a_judgment(5, "second", swapped=False), a_judgment(5, "first", swapped=True)),
    ]
    result = summarize_judgments("b", rows)
    assert (result.wins, result.losses, result.ties, result.failed) == (2, 1, 2, 1)
    assert (result.agreement, result.first_preferred) == (0.8, 5 / 8)
    assert result.net_wins is not None
    assert (result.net_wins.mean, result.verdict) == (0.2, ComparisonVerdict.TOO_FEW)


def test_without_a_judge_there_is_no_comparison_and_without_verdicts_no_number() -> None:
    assert compare([1.0], [1.0]).comparisons == ()
    nothing = summarize_judgments("b", [])
    assert (nothing.net_wins, nothing.verdict, nothing.agreement, nothing.first_preferred) == (None, None, None, None)

"""Summarize the results of an experiment: means, paired differences, answers, cost, and the verdicts of a judge. Pure.

Every interval is a 95 % interval over tasks (`offing.core.confidence_interval`). Runs that failed for technical reasons
are excluded and counted; they are never a 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from uuid import UUID

from offing.core.confidence_interval import find_difference_interval, find_mean_interval, measure
from offing.core.trajectory import Outcome
from offing.storage.experiments import JudgmentRow, ResultRow

MIN_PAIRS = 8
"""Minimum number of compared questions for a verdict, as in the promotion gate."""

WEIGHTED_MEAN = "weighted mean"
"""Name of the metric that combines all scorers with a weight."""


class ComparisonVerdict(StrEnum):
    """What a paired difference shows."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference shown"
    """The interval of the difference contains 0."""
    TOO_FEW = "too few questions"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval."""

    mean: float
    low: float
    high: float
    count: int
    """Number of questions."""


@dataclass(frozen=True, slots=True)
class MetricCell:
    """One metric of one configuration."""

    estimate: Estimate | None
    """`None` means that no question has a value."""
    unscored: int
    """Questions that ended but have no value because the scorer failed. They are excluded."""
    difference: Estimate | None
    """Paired difference to the first configuration. `None` for the first one, and if nothing can be compared."""
    verdict: ComparisonVerdict | None


@dataclass(frozen=True, slots=True)
class MetricSummary:
    name: str
    cells: tuple[MetricCell, ...]
    """One per configuration."""
    inapplicable: int
    """Tasks that the metric cannot score. They are excluded."""


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """How the runs of one configuration ended, and what they cost on average."""

    questions: int
    answered: int
    """Questions with an answer, among those that have one or whose answer is unknown."""
    unanswered: int
    """The same without an answer."""
    right_abstentions: int
    """Questions without a correct answer of which the run says so, or gives none."""
    wrong_answers: int
    """Questions without a correct answer that the run answered nevertheless."""
    failed: int
    """Runs that failed for technical reasons."""
    tokens: float
    """Mean per question that did not fail, as the following fields."""
    cost_usd: float
    turns: float
    seconds: float


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """Reports of one configuration compared with those of the first one, each pair in both orders."""

    name: str
    wins: int
    ties: int
    """Pairs without a preference, or with different verdicts in the two orders."""
    losses: int
    net_wins: Estimate | None
    """Wins minus losses per pair, from -1 to 1."""
    verdict: ComparisonVerdict | None
    agreement: float | None
    """Fraction of pairs with the same verdict in both orders."""
    first_preferred: float | None
    """Fraction of verdicts for a report that are for the one shown first. 0.5 means no preference for a position."""
    failed: int
    """Pairs without two verdicts. They are excluded."""


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    metrics: tuple[MetricSummary, ...]
    answers: tuple[AnswerSummary, ...]
    comparisons: tuple[JudgeSummary, ...]
    """One per configuration after the first. Empty without a judge."""


def summarize(
    names: Sequence[str],
    unanswerable: Mapping[UUID, bool],
    weights: Mapping[str, float],
    results: Sequence[ResultRow],
    judgments: Sequence[JudgmentRow] | None,
) -> ExperimentSummary:
    """Summarize an experiment.

    `names` are those of the configurations. `unanswerable` says of each task whether it has no answer. `weights` are
    those of the scorers, by name. `judgments` is `None` without a judge.
    """
    by_number = [[row for row in results if row.number == number] for number in range(len(names))]
    metrics = [_summarize_metric(name, by_number, weights) for name in list_metrics(weights)]
    comparisons = list[JudgeSummary]()
    if judgments is not None:
        comparisons = [
            summarize_judgments(name, [row for row in judgments if row.number == number])
            for number, name in enumerate(names[1:], 1)
        ]
    answers = [_summarize_answers(rows, unanswerable) for rows in by_number]
    return ExperimentSummary(tuple(metrics), tuple(answers), tuple(comparisons))


def list_metrics(weights: Mapping[str, float]) -> list[str]:
    """Return the names of the metrics: the scorers, and their weighted mean if several have a weight."""
    several = sum(weight > 0 for weight in weights.values()) > 1
    return [*weights, *([WEIGHTED_MEAN] if several else [])]


def find_value(row: ResultRow, metric: str, weights: Mapping[str, float]) -> float | None:
    """Return the value of a metric for a result. `None` means that the run failed or the metric has no value."""
    if is_failed(row):
        return None
    if metric != WEIGHTED_MEAN:
        return row.scores.get(metric)
    parts = [(weights[name], value) for name, value in row.scores.items() if weights.get(name)]
    total = sum(weight for weight, _ in parts)
    if not total or any(value is None for _, value in parts):
        return None
    return sum(weight * (value or 0.0) for weight, value in parts) / total


def is_failed(row: ResultRow) -> bool:
    """Return whether the platform failed, and not the configuration."""
    return row.outcome in ("", Outcome.INFRA_ERROR)


def decide_verdict(difference: Estimate) -> ComparisonVerdict:
    """Return what a paired difference shows."""
    if difference.count < MIN_PAIRS:
        return ComparisonVerdict.TOO_FEW
    if difference.low > 0:
        return ComparisonVerdict.BETTER
    return ComparisonVerdict.WORSE if difference.high < 0 else ComparisonVerdict.NO_DIFFERENCE


def summarize_judgments(name: str, rows: Sequence[JudgmentRow]) -> JudgeSummary:
    """Summarize the verdicts on the pairs of one configuration."""
    pairs: dict[UUID, dict[bool, float]] = {}
    for row in rows:
        votes = pairs.setdefault(row.task_id, {})
        if row.verdict is not None:
            votes[row.is_swapped] = _vote(row)
    complete = {task: votes for task, votes in sorted(pairs.items()) if len(votes) == 2}
    agreed = [votes[False] == votes[True] for votes in complete.values()]
    values = [votes[False] if votes[False] == votes[True] else 0.0 for votes in complete.values()]
    preferences = [row.verdict == "first" for row in rows if row.verdict not in (None, "tie")]
    net = _estimate_difference([(1 + value) / 2 for value in values], [(1 - value) / 2 for value in values])
    return JudgeSummary(
        name=name,
        wins=values.count(1.0),
        ties=values.count(0.0),
        losses=values.count(-1.0),
        net_wins=net,
        verdict=None if net is None else decide_verdict(net),
        agreement=fmean(agreed) if agreed else None,
        first_preferred=fmean(preferences) if preferences else None,
        failed=len(pairs) - len(complete),
    )


def _vote(row: JudgmentRow) -> float:
    """Return 1 for the compared configuration, -1 for the first one, 0 for a tie."""
    if row.verdict == "tie":
        return 0.0
    return 1.0 if (row.verdict == "first") == row.is_swapped else -1.0


def _summarize_metric(
    name: str, by_number: Sequence[Sequence[ResultRow]], weights: Mapping[str, float]
) -> MetricSummary:
    tasks = {row.task_id for rows in by_number for row in rows if not is_failed(row)}
    applicable = {row.task_id for rows in by_number for row in rows if _applies(row, name, weights)}
    values = [_values_by_task(rows, name, weights) for rows in by_number]
    cells = [
        _build_cell(rows, values[number], values[0] if number else None, name, weights)
        for number, rows in enumerate(by_number)
    ]
    return MetricSummary(name, tuple(cells), len(tasks - applicable))


def _applies(row: ResultRow, metric: str, weights: Mapping[str, float]) -> bool:
    if is_failed(row):
        return False
    return metric in row.scores if metric != WEIGHTED_MEAN else any(weights.get(name) for name in row.scores)


def _values_by_task(rows: Sequence[ResultRow], metric: str, weights: Mapping[str, float]) -> dict[UUID, float]:
    values = {row.task_id: find_value(row, metric, weights) for row in rows}
    return {task: value for task, value in values.items() if value is not None}


def _build_cell(
    rows: Sequence[ResultRow],
    values: Mapping[UUID, float],
    base: Mapping[UUID, float] | None,
    metric: str,
    weights: Mapping[str, float],
) -> MetricCell:
    unscored = sum(_applies(row, metric, weights) and row.task_id not in values for row in rows)
    both = sorted(values.keys() & base.keys()) if base is not None else []
    difference = None
    if base is not None:
        difference = _estimate_difference([values[task] for task in both], [base[task] for task in both])
    verdict = None if difference is None else decide_verdict(difference)
    return MetricCell(_estimate([values[task] for task in sorted(values)]), unscored, difference, verdict)


def _estimate(values: Sequence[float]) -> Estimate | None:
    if not values:
        return None
    moments = measure(values)
    interval = find_mean_interval(moments)
    return Estimate(moments.mean, interval.low, interval.high, moments.count)


def _estimate_difference(ours: Sequence[float], theirs: Sequence[float]) -> Estimate | None:
    """Return the mean of `ours` minus `theirs`, paired by position. `None` means that there are no pairs."""
    if not ours:
        return None
    interval = find_difference_interval(ours, theirs)
    return Estimate(fmean(a - b for a, b in zip(ours, theirs, strict=True)), interval.low, interval.high, len(ours))


def _summarize_answers(rows: Sequence[ResultRow], unanswerable: Mapping[UUID, bool]) -> AnswerSummary:
    ended = [row for row in rows if not is_failed(row)]
    with_answer = [row.has_abstained for row in ended if not unanswerable.get(row.task_id)]
    without = [row.has_abstained for row in ended if unanswerable.get(row.task_id)]
    return AnswerSummary(
        questions=len(rows),
        answered=with_answer.count(False),
        unanswered=with_answer.count(True),
        right_abstentions=without.count(True),
        wrong_answers=without.count(False),
        failed=len(rows) - len(ended),
        tokens=_mean(row.tokens for row in ended),
        cost_usd=_mean(row.cost_usd for row in ended),
        turns=_mean(row.turns for row in ended),
        seconds=_mean(row.seconds for row in ended),
    )


def _mean(values: Iterable[float]) -> float:
    present = list(values)
    return fmean(present) if present else 0.0

"""Decide whether a candidate is good enough, from paired results. Pure.

The candidate and the active version did the same tasks with the same seeds, so only differences count: the
mean over tasks of the mean difference of the members of a task, with an interval over tasks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from uuid import UUID

from offing.core.confidence_interval import (
    CONFIDENCE_LEVEL,
    Interval,
    find_detectable_difference,
    find_difference_interval,
)
from offing.core.errors import InvalidInput

VIOLATIONS = "violations"
"""The metric of rollouts that violated a rule of their graph: 1 if it did, else 0."""

LOWER_IS_BETTER = frozenset({VIOLATIONS, "turns", "tokens", "cost_usd", "seconds"})
"""Metrics of which less is better. More of every other one is better."""

GUARD_LEVEL = 0.9
"""Two-sided level of a guard's interval, of which one end decides: it is wrong in at most 5 of 100 cases."""


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The result of one evaluated rollout."""

    task_id: UUID
    member: int
    reward: float | None
    """The reward. `None` means that the platform failed and not the policy; the pair is excluded."""
    outcome: str
    turns: int = 0
    tokens: int = 0
    metrics: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    """Other metrics by name. `None` means that the rollout has no value."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A metric in which a candidate must not be worse."""

    metric: str
    margin: float = 0.0
    """How much worse it may be on average."""
    is_relative: bool = False
    """Whether the margin is a fraction of the active version's mean."""


VIOLATION_GUARD = Guard(VIOLATIONS, 0.02)


@dataclass(frozen=True, slots=True)
class GateRules:
    """Conditions that a candidate must meet."""

    margin: float = 0.0
    """Maximum difference by which its mean reward may be below that of the active version."""
    confident: bool = True
    """Whether the lower end of the interval decides. Otherwise the mean does, and an equal candidate passes half of the
    time.
    """
    guards: tuple[Guard, ...] = (VIOLATION_GUARD,)
    max_kl: float | None = None
    """Maximum KL divergence from its parent in nats per token, as its job measured it last. `None` means that it
    is not checked.
    """
    min_pairs: int = 8


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A metric of a candidate compared with that of the active version."""

    pairs: int
    tasks: int
    excluded_pairs: int
    """Number of pairs in which the platform failed or one side is missing."""
    candidate: float
    """Mean of the candidate."""
    active: float
    """Mean of the active version."""
    difference: float
    low: float
    """Lower end of the interval of the difference."""
    high: float
    level: float = CONFIDENCE_LEVEL
    """Two-sided level of the interval."""

    @property
    def detectable_difference(self) -> float | None:
        """The difference that as many tasks with this spread show in 80 of 100 cases. `None` without tasks."""
        interval = Interval(self.low, self.high)
        return find_detectable_difference(interval, self.tasks, self.level) if self.tasks else None


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a candidate may become active, and if not, why."""

    passed: bool
    reasons: tuple[str, ...]
    comparison: PairedComparison
    guards: Mapping[str, PairedComparison] = field(default_factory=dict[str, PairedComparison])
    """The compared metric of each guard."""
    looks: int = 1
    """How often candidates of this name have been compared with this active version, this time included."""
    rules: GateRules = field(default_factory=GateRules)


Value = Callable[[EvaluationResult], float | None]


def merge_guards(guards: Iterable[Guard]) -> tuple[Guard, ...]:
    """Return one guard per metric, the last one, and that of violations if it has none."""
    return tuple({guard.metric: guard for guard in (VIOLATION_GUARD, *guards)}.values())


def find_level(looks: int) -> float:
    """Return the two-sided level of the interval at a look, from 1 on.

    Its lower end is wrong with probability 0.05 / (n (n + 1)) at look n. Over any number of looks, these sum to at most
    0.05 (alpha spending: Lan and DeMets, Discrete sequential boundaries for clinical trials, Biometrika 70 (1983)).
    The level of the first look is 0.95.
    """
    return 1 - 2 * (1 - CONFIDENCE_LEVEL) / (looks * (looks + 1))


def run_gate_rules(
    candidate: Sequence[EvaluationResult],
    active: Sequence[EvaluationResult],
    rules: GateRules,
    *,
    kl: float | None = None,
    looks: int = 1,
) -> GateResult:
    """Compare both versions and apply the rules.

    `kl` is that of the candidate to its parent; `None` means that it was not measured. `looks` says how often
    candidates have been compared with this active version, this time included.
    """
    comparison = compare_paired(candidate, active, level=find_level(looks))
    guards = {
        guard.metric: compare_paired(
            candidate, active, lambda one, name=guard.metric: read_metric(one, name), GUARD_LEVEL
        )
        for guard in rules.guards
    }
    reasons = [
        *_check_pairs(comparison, rules),
        *_check_difference(comparison, rules),
        *(reason for guard in rules.guards for reason in _check_guard(guard, guards[guard.metric])),
        *_check_kl(kl, rules),
    ]
    return GateResult(not reasons, tuple(reasons), comparison, guards, looks, rules)


def check_guards(rules: GateRules, results: Sequence[EvaluationResult]) -> None:
    """Raise InvalidInput for a guard whose metric no result has."""
    available = {VIOLATIONS, "turns", "tokens"}.union(*(one.metrics for one in results))
    for guard in rules.guards:
        if guard.metric not in available:
            problem = f"the compared rollouts have no metric {guard.metric!r}"
            raise InvalidInput("not_worse", problem, f"Use one of: {', '.join(sorted(available))}.")


def take_metric_as_reward(results: Sequence[EvaluationResult], metric: str) -> list[EvaluationResult]:
    """Return the results with a metric in place of the reward. Raises InvalidInput for one that no result has."""
    available = sorted({name for one in results for name in one.metrics} - LOWER_IS_BETTER)
    if metric not in available:
        problem = f"the compared rollouts have no metric {metric!r} of which more is better"
        raise InvalidInput("metric", problem, f"Use one of: {', '.join(available) or 'none was measured'}.")
    return [replace(one, reward=one.metrics.get(metric)) for one in results]


def parse_guard(text: str, field: str) -> Guard:
    """Parse METRIC=MARGIN, or METRIC=MARGIN%. Raises InvalidInput for `field`."""
    metric, separator, margin = text.partition("=")
    try:
        value = float(margin.removesuffix("%")) if separator else 0.0
    except ValueError:
        value = -1.0
    if not metric or not 0 <= value < float("inf"):
        raise InvalidInput(field, f"{text!r} is not METRIC=MARGIN", "Write for example `tokens=10%`.")
    return Guard(metric, value / 100, True) if margin.endswith("%") else Guard(metric, value)


def read_metric(result: EvaluationResult, name: str) -> float | None:
    """Return the value of a metric. `None` means that the rollout has none."""
    match name:
        case "reward":
            return result.reward
        case "violations":
            return float(result.outcome == "violated")
        case "turns" | "tokens":
            return float(getattr(result, name))
        case _:
            return result.metrics.get(name)


def compare_paired(
    candidate: Sequence[EvaluationResult],
    active: Sequence[EvaluationResult],
    value: Value = lambda one: one.reward,
    level: float = CONFIDENCE_LEVEL,
) -> PairedComparison:
    """Compare a metric of both sides on the same tasks and members. Without pairs all values are 0.

    Pairs in which the platform failed are excluded from every metric.
    """
    ours, theirs = _index_by_task_member(candidate), _index_by_task_member(active)
    keys = sorted(ours.keys() | theirs.keys())
    by_task: dict[UUID, list[tuple[float, float]]] = {}
    for key in keys:
        pair = _read_pair(ours.get(key), theirs.get(key), value)
        if pair is not None:
            by_task.setdefault(key[0], []).append(pair)
    pairs = [pair for members in by_task.values() for pair in members]
    if not pairs:
        return PairedComparison(0, 0, len(keys), 0.0, 0.0, 0.0, 0.0, 0.0, level)
    means = [(fmean(a for a, _ in members), fmean(b for _, b in members)) for members in by_task.values()]
    interval = find_difference_interval([a for a, _ in means], [b for _, b in means], level)
    return PairedComparison(
        pairs=len(pairs),
        tasks=len(means),
        excluded_pairs=len(keys) - len(pairs),
        candidate=fmean(a for a, _ in pairs),
        active=fmean(b for _, b in pairs),
        difference=fmean(a - b for a, b in means),
        low=interval.low,
        high=interval.high,
        level=level,
    )


def _read_pair(
    ours: EvaluationResult | None, theirs: EvaluationResult | None, value: Value
) -> tuple[float, float] | None:
    if ours is None or theirs is None or ours.reward is None or theirs.reward is None:
        return None
    a, b = value(ours), value(theirs)
    return None if a is None or b is None else (a, b)


def _check_pairs(comparison: PairedComparison, rules: GateRules) -> list[str]:
    if comparison.pairs >= rules.min_pairs:
        return []
    return [f"there are only {comparison.pairs} pairs, and the minimum is {rules.min_pairs}"]


def _check_difference(comparison: PairedComparison, rules: GateRules) -> list[str]:
    gain = comparison.low if rules.confident else comparison.difference
    if not comparison.pairs or gain >= -rules.margin:
        return []
    difference = f"the difference to the active version is {comparison.difference:+.3f}"
    if not rules.confident:
        return [f"{difference}, and the minimum is {-rules.margin:+.3f}"]
    return [
        f"{difference}, and at least {comparison.low:+.3f} is certain at {comparison.level:.2%}; the minimum is "
        f"{-rules.margin:+.3f} (as many tasks would show a difference of {comparison.detectable_difference:.3f} "
        "in 80 of 100 cases)"
    ]


def _check_guard(guard: Guard, comparison: PairedComparison) -> list[str]:
    """Reject what is worse by more than the margin, if it is certain that it is worse at all."""
    if not comparison.pairs:
        return [f"no pair of rollouts has a value of {guard.metric}"]
    margin = guard.margin * abs(comparison.active) if guard.is_relative else guard.margin
    if guard.metric in LOWER_IS_BETTER:
        worse, least = comparison.difference, comparison.low
    else:
        worse, least = -comparison.difference, -comparison.high
    if worse <= margin or least <= 0:
        return []
    if guard.metric == VIOLATIONS:
        template = "{:.1%} of its rollouts violated a rule of the graph, compared with {:.1%} for the active version"
        return [template.format(comparison.candidate, comparison.active)]
    return [
        f"its {guard.metric} is {comparison.candidate:.4g}, compared with {comparison.active:.4g} for the active "
        f"version, and may be worse by at most {margin:.3g}"
    ]


def _check_kl(kl: float | None, rules: GateRules) -> list[str]:
    if rules.max_kl is None or kl is None or kl <= rules.max_kl:
        return []
    return [f"its KL divergence from its parent is {kl:.3g} nats per token, and the maximum is {rules.max_kl:.3g}"]


def _index_by_task_member(results: Sequence[EvaluationResult]) -> Mapping[tuple[UUID, int], EvaluationResult]:
    return {(result.task_id, result.member): result for result in results}

"""Decide whether a candidate is good enough, from paired results. Pure.

The candidate and the active version did the same tasks with the same seeds, so only differences count: the
mean over tasks of the mean difference of the members of a task, with a bootstrap interval over tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from uuid import UUID

from offing.core.bootstrap import bootstrap_interval


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


@dataclass(frozen=True, slots=True)
class GateRules:
    """Conditions that a candidate must meet."""

    margin: float = 0.0
    """Maximum difference by which its mean reward may be below that of the active version."""
    confident: bool = False
    """Whether to use the lower end of the interval instead of the mean."""
    violation_margin: float = 0.02
    """Maximum increase of the fraction of rollouts that violated a rule of their graph."""
    max_kl: float | None = None
    """Maximum KL divergence from its parent in nats per token, as its job measured it last. `None` means that it
    is not checked.
    """
    min_pairs: int = 8


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A candidate compared with the active version."""

    pairs: int
    tasks: int
    excluded_pairs: int
    """Number of pairs in which the platform failed or one side is missing."""
    candidate: float
    """Mean reward of the candidate."""
    active: float
    """Mean reward of the active version."""
    difference: float
    low: float
    """Lower end of the interval of the difference."""
    high: float
    violation_fractions: tuple[float, float]
    """Fractions of rollouts that violated a rule: of the candidate, and of the active version."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a candidate may become active, and if not, why."""

    passed: bool
    reasons: tuple[str, ...]
    comparison: PairedComparison
    rules: GateRules = field(default_factory=GateRules)


def compare_paired(
    candidate: Sequence[EvaluationResult], active: Sequence[EvaluationResult], seed: int = 0
) -> PairedComparison:
    """Compare the results of both sides on the same tasks and members. Without pairs all values are 0."""
    ours, theirs = _index_by_task_member(candidate), _index_by_task_member(active)
    keys = sorted(ours.keys() | theirs.keys())
    both = [(ours[p], theirs[p]) for p in keys if p in ours and p in theirs]
    scored = [(a, b) for a, b in both if a.reward is not None and b.reward is not None]
    gains: dict[UUID, list[float]] = {}
    for a, b in scored:
        gains.setdefault(a.task_id, []).append((a.reward or 0.0) - (b.reward or 0.0))
    means = [fmean(gains[task]) for task in gains]
    low, high = bootstrap_interval(means, seed)
    return PairedComparison(
        pairs=len(scored),
        tasks=len(means),
        excluded_pairs=len(keys) - len(scored),
        candidate=_mean([a.reward or 0.0 for a, _ in scored]),
        active=_mean([b.reward or 0.0 for _, b in scored]),
        difference=_mean(means),
        low=low,
        high=high,
        violation_fractions=(_violation_fraction([a for a, _ in scored]), _violation_fraction([b for _, b in scored])),
    )


def judge_gate(comparison: PairedComparison, rules: GateRules, kl: float | None = None) -> GateResult:
    """Apply the gate rules.

    `kl` is that of the candidate to its parent; `None` means that it was not measured.
    """
    reasons: list[str] = []
    if comparison.pairs < rules.min_pairs:
        reasons.append(f"there are only {comparison.pairs} pairs, and the minimum is {rules.min_pairs}")
    gain, what = (
        (comparison.low, "lower bound of the difference") if rules.confident else (comparison.difference, "difference")
    )
    if comparison.pairs and gain < -rules.margin:
        reasons.append(f"the {what} to the active version is {gain:+.3f}, and the minimum is {-rules.margin:+.3f}")
    if comparison.violation_fractions[0] > comparison.violation_fractions[1] + rules.violation_margin:
        template = "{:.1%} of its rollouts violated a rule of the graph, compared with {:.1%} for the active version"
        reasons.append(template.format(*comparison.violation_fractions))
    if rules.max_kl is not None and kl is not None and kl > rules.max_kl:
        reasons.append(
            f"its KL divergence from its parent is {kl:.3g} nats per token, and the maximum is {rules.max_kl:.3g}"
        )
    return GateResult(not reasons, tuple(reasons), comparison, rules)


def _index_by_task_member(results: Sequence[EvaluationResult]) -> Mapping[tuple[UUID, int], EvaluationResult]:
    return {(result.task_id, result.member): result for result in results}


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _violation_fraction(results: Sequence[EvaluationResult]) -> float:
    return _mean([float(result.outcome == "violated") for result in results])

"""When a candidate is good enough. Pure: paired results in, a verdict with its reasons out.

Candidate and champion did the same tasks with the same seeds, so only differences count: the mean over tasks of the
mean difference of a task's members, with a bootstrap interval over tasks (percentile method; Efron and Tibshirani,
An Introduction to the Bootstrap, 1993, ch. 13).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from uuid import UUID

RESAMPLES = 2000

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Result:
    """One evaluated rollout."""

    task: UUID
    member: int
    reward: float | None
    """None: the platform failed, not the policy; the pair is left out."""
    outcome: str
    turns: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """What a candidate must keep to."""

    margin: float = 0.0
    """How far below the champion its mean reward may lie."""
    confident: bool = False
    """Judge by the lower end of the interval, instead of the mean."""
    format_margin: float = 0.02
    """How much larger its share of rollouts that broke a rule of their flow may be."""
    kl_ceiling: float | None = None
    """Nats a token from its parent, as its job last measured it. None: not looked at."""
    least_pairs: int = 8


@dataclass(frozen=True, slots=True)
class Paired:
    """Candidate against champion."""

    pairs: int
    tasks: int
    left_out: int
    """Pairs in which the platform failed, or one side is missing."""
    candidate: float
    """Mean reward."""
    champion: float
    difference: float
    low: float
    """Of the interval of the difference."""
    high: float
    violated: tuple[float, float]
    """Share of rollouts that broke a rule: candidate's, champion's."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a candidate may take over, and why not."""

    passed: bool
    why_not: tuple[str, ...]
    paired: Paired
    rules: Rules = field(default_factory=Rules)


def paired(candidate: Sequence[Result], champion: Sequence[Result], seed: int = 0) -> Paired:
    """Both sides' results of the same tasks and members. With no pair everything is 0."""
    ours, theirs = _by_place(candidate), _by_place(champion)
    places = sorted(ours.keys() | theirs.keys())
    both = [(ours[p], theirs[p]) for p in places if p in ours and p in theirs]
    scored = [(a, b) for a, b in both if a.reward is not None and b.reward is not None]
    gains: dict[UUID, list[float]] = {}
    for a, b in scored:
        gains.setdefault(a.task, []).append((a.reward or 0.0) - (b.reward or 0.0))
    means = [fmean(gains[task]) for task in gains]
    low, high = _interval(means, seed)
    return Paired(
        pairs=len(scored),
        tasks=len(means),
        left_out=len(places) - len(scored),
        candidate=_mean([a.reward or 0.0 for a, _ in scored]),
        champion=_mean([b.reward or 0.0 for _, b in scored]),
        difference=_mean(means),
        low=low,
        high=high,
        violated=(_share([a for a, _ in scored]), _share([b for _, b in scored])),
    )


def judged(found: Paired, rules: Rules, kl: float | None = None) -> Verdict:
    """`kl`: of the candidate to its parent; None: not measured."""
    why: list[str] = []
    if found.pairs < rules.least_pairs:
        why.append(f"only {found.pairs} pairs, and {rules.least_pairs} are needed")
    gain, what = (found.low, "lower end of its difference") if rules.confident else (found.difference, "difference")
    if found.pairs and gain < -rules.margin:
        why.append(f"the {what} to the champion is {gain:+.3f}, and may be {-rules.margin:+.3f} at least")
    if found.violated[0] > found.violated[1] + rules.format_margin:
        told = "{:.1%} of its rollouts broke a rule of the flow, the champion's {:.1%}"
        why.append(told.format(*found.violated))
    if rules.kl_ceiling is not None and kl is not None and kl > rules.kl_ceiling:
        why.append(f"it is {kl:.3g} nats a token from its parent, and may be {rules.kl_ceiling:.3g}")
    return Verdict(not why, tuple(why), found, rules)


def _by_place(results: Sequence[Result]) -> Mapping[tuple[UUID, int], Result]:
    return {(result.task, result.member): result for result in results}


def _interval(means: Sequence[float], seed: int) -> tuple[float, float]:
    """Of the mean of means; the same seed gives the same."""
    if not means:
        return 0.0, 0.0
    rng = Random(seed)
    drawn = sorted(fmean(rng.choices(means, k=len(means))) for _ in range(RESAMPLES))
    cut = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return drawn[cut], drawn[RESAMPLES - 1 - cut]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _share(results: Sequence[Result]) -> float:
    return _mean([float(result.outcome == "violated") for result in results])

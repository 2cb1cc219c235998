"""Measure the variance of an episode's gradient with hierarchical and flat advantages, in fully known problems.

This module has the sizes and the reading of the results. Problems and advantages are in `two_levels`.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.results.experiment import Arm, Curve, Experiment, Metric, Point, Size
from tests.results.intervals import mean_of
from tests.results.pages import render_mean
from tests.results.two_levels import MAX_TURNS, Episodes, Values, World, measured, seen_in

BLOCKS = ("switch", "subgoal", "action")
LAMBDAS = (80, 85, 90, 95, 100)
"""In hundredths, the same at both levels."""
EPISODES = {Size.FULL: 60_000, Size.MINIATURE: 500}
WRONG = 1.0
"""Standard deviation of the error of each state's high value with inexact critics."""
FAR = 4.0
"""Number of standard errors from which an estimate is called biased. By chance, the maximum of about 30 logits is 3."""


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    """Return variances relative to those of flat advantages in the same world with λ = 1."""
    began = time.monotonic()
    exact, mistaken = seen_in(seed, EPISODES[size]), seen_in(seed, EPISODES[size], WRONG)
    base, _ = _variances("flat", exact, 100)
    points: list[Point] = []
    for lam in LAMBDAS:
        variances, far = _variances(arm, exact, lam)
        metrics = {f"variance-{part}": variances[part] / base[part] for part in base}
        _, astray = _variances(arm, mistaken, lam)
        points.append(Point(lam, time.monotonic() - began, {**metrics, "far": far, "far-mistaken": astray}))
    return Curve(arm, seed, tuple(points))


def _variances(arm: str, seen: tuple[World, Episodes, Values], lam: int) -> tuple[Mapping[str, float], float]:
    """Return variances by block and in total, and the standard errors from the mean to the exact gradient."""
    result = measured(arm, *seen, (lam / 100, lam / 100))
    by_block = {one.block: one.variance for one in result}
    return {"all": sum(by_block.values()), **by_block}, max(one.farthest for one in result)


def read(curves: Sequence[Curve]) -> list[str]:
    lines = ["| hierarchical, relative to flat at the same λ | λ = 0.8 | 0.9 | 0.95 | 1 |", "|---|---|---|---|---|"]
    for part in ("all", *BLOCKS):
        cells = [
            render_mean(mean_of(list(ratios(curves, f"variance-{part}", lam).values()))) for lam in (80, 90, 95, 100)
        ]
        lines.append(f"| variance, {'total' if part == 'all' else part} | {' | '.join(cells)} |")
    biased = {
        (arm, kind): _biased(curves, arm, kind) for arm in ("hierarchical", "flat") for kind in ("far", "far-mistaken")
    }
    biases = [
        f"{arm} advantages in {count} of {worlds} worlds with exact critics"
        f" and in {biased[arm, 'far-mistaken'][0]} with inexact ones"
        for (arm, kind), (count, worlds) in biased.items()
        if kind == "far"
    ]
    return [*lines, "", f"The mean of at least one logit is more than {FAR:g} standard errors from the exact gradient "
            f"at λ = 1: {'; '.join(biases)}."]  # fmt: skip


def ratios(curves: Sequence[Curve], metric: str, lam: int) -> dict[int, float]:
    """Return the ratio of hierarchical to flat, by world."""
    ours, flat = (_at(curves, arm, metric, lam) for arm in ("hierarchical", "flat"))
    return {seed: ours[seed] / flat[seed] for seed in sorted(ours.keys() & flat.keys())}


def _biased(curves: Sequence[Curve], arm: str, metric: str) -> tuple[int, int]:
    far = _at(curves, arm, metric, 100)
    return sum(one > FAR for one in far.values()), len(far)


def _at(curves: Sequence[Curve], arm: str, metric: str, lam: int) -> dict[int, float]:
    return {c.seed: p.figures[metric] for c in curves if c.arm == arm for p in c.points if p.step == lam}


EXPERIMENT = Experiment(
    name="hae-variance",
    title="Hierarchical advantages: variance of the gradient",
    claim="Hierarchical advantage estimation gives an unbiased gradient whose variance is not above that of flat "
    "generalized advantages (HiPER, arXiv 2602.16165, theorems for λ = 1 and exact critics).",
    setup=f"Synthetic decision problems with three states, three subgoals and two actions, {MAX_TURNS} turns, without "
    "discount; each seed is another world. Critics and the gradient itself are exact, computed by dynamic programming; "
    f"{EPISODES[Size.FULL]:,} episodes estimate the gradient. Variance is the trace of the covariance of one episode's "
    "estimate, over the logits of switches, subgoals and actions. Inexact critics have an error in each state's high "
    "value, drawn with a standard deviation of 1.",
    arms={
        "hierarchical": Arm(
            "hierarchical", "three streams; the advantage of the switch is relative to its own critic, as released."
        ),
        "paper": Arm(
            "hierarchical, the paper's switch",
            "the advantage of the switch comes from two critics only, as in the paper.",
        ),
        "flat": Arm("flat", "one generalized advantage per turn, from one critic before the turn."),
    },
    figures={
        "variance-all": Metric("total variance (flat, λ = 1: 1)"),
        "variance-switch": Metric("variance of the switches"),
        "variance-subgoal": Metric("variance of the subgoals"),
        "variance-action": Metric("variance of the actions"),
        "far": Metric("largest deviation of a mean, standard errors"),
        "far-mistaken": Metric("the same, inexact critics"),
    },
    run=run,
    read=read,
    seeds=tuple(range(10)),
    step="λ in hundredths",
)

"""Measure the episodes that hierarchical and flat advantages need in the corridor with the key, at several rates.

This module has the sizes and the reading of the curves. The corridor is in `key_door`.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from tests.results.experiment import Arm, Curve, Experiment, Metric, Point, Size
from tests.results.intervals import mean_of, paired
from tests.results.key_door import How, opened
from tests.results.pages import render_mean

RATES: Mapping[float, int] = {0.1: 1920, 0.3: 960, 1.0: 640, 3.0: 640}
"""Rates of the policy, with a number of episodes that suffices for either arm."""
WINDOW = 5
"""Number of steps over which a share is computed."""
THRESHOLD = 0.9
SLOW, QUICK = 0.3, "-quick"
"""The rate of the critics, and the suffix of arms whose critics move all the way to their targets."""


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    began = time.monotonic()
    results: dict[int, dict[str, float]] = {}
    for rate, episodes in RATES.items():
        how = How(arm.removesuffix(QUICK), rate=rate, critic_rate=1.0 if arm.endswith(QUICK) else SLOW)
        steps = WINDOW + 1 if size is Size.MINIATURE else episodes // how.episodes
        last = deque[float](maxlen=WINDOW)
        for nth, share in enumerate(islice(opened(seed, how), steps), 1):
            last.append(share)
            if nth >= WINDOW:
                results.setdefault(nth * how.episodes, {})[_metric_name(rate)] = sum(last) / WINDOW
    took = time.monotonic() - began
    return Curve(arm, seed, tuple(Point(seen, took, metrics) for seen, metrics in sorted(results.items())))


def episodes_needed(curves: Sequence[Curve], arm: str, rate: float) -> dict[int, float]:
    """Return the episodes until the share first reaches the threshold, by seed, without seeds that never reach it."""
    results: dict[int, float] = {}
    for curve in curves:
        there = [p.step for p in curve.points if p.figures.get(_metric_name(rate), 0.0) >= THRESHOLD]
        if curve.arm == arm and there:
            results[curve.seed] = there[0]
    return results


def read(curves: Sequence[Curve]) -> list[str]:
    lines = [
        f"| episodes until {THRESHOLD:.0%} open the door | hierarchical | flat | hierarchical minus flat | fewer? |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(curves, rate, critics) for critics in ("", QUICK) for rate in RATES]
    late = sum(curve.seed not in episodes_needed(curves, curve.arm, rate) for curve in curves for rate in RATES)
    return [*lines, "", f"{late} of {len(curves) * len(RATES)} learners did not reach the threshold and are left out."]


def _row(curves: Sequence[Curve], rate: float, critics: str) -> str:
    ours, flat = (episodes_needed(curves, arm + critics, rate) for arm in ("hierarchical", "flat"))
    gap = paired(ours, flat)
    verdict = {-1: "yes", 0: "undecided", 1: "**no, more**"}[gap.settled if gap else 0]
    means = [render_mean(mean_of(list(one.values())), digits=0) for one in (ours, flat)]
    what = f"rate {rate:g}{', quick critics' if critics else ''}"
    return f"| {what} | {' | '.join(means)} | {render_mean(gap, signed=True, digits=0)} | {verdict} |"


def _metric_name(rate: float) -> str:
    return f"opened-at-{rate:g}"


EXPERIMENT = Experiment(
    name="hae-episodes",
    title="Hierarchical advantages: episodes until a key opens a door",
    claim="With hierarchical advantage estimation, an agent that keeps or switches subgoals learns in fewer episodes "
    "than with flat generalized advantages (HiPER, arXiv 2602.16165: 80 % on ALFWorld after about 50 steps instead of "
    "140).",
    setup="A corridor of nine cells with the key at one end and the door at the other; at most 40 turns. Policy and "
    "critics are tables that start at zero. A training step has 32 episodes, one update of the policy and one of the "
    f"critics (rate {SLOW}). The discount is 0.97, λ is 0.95 at both levels, and each stream of advantages is "
    "standardized. Which arm is ahead depends on the rate of the policy, so four rates are shown. A share is computed "
    f"over the last {WINDOW * 32} episodes.",
    arms={
        "hierarchical": Arm("hierarchical", "advantages in three streams with a critic each, as in HiPER's release."),
        "flat": Arm(
            "flat", "one generalized advantage and one critic for the switch, the subgoal and the action of a turn."
        ),
        f"hierarchical{QUICK}": Arm("hierarchical, quick critics", "critics move all the way to the mean of a step."),
        f"flat{QUICK}": Arm("flat, quick critics", "the same for the flat critic."),
    },
    figures={_metric_name(rate): Metric(f"doors opened, rate {rate:g}", share=True, tabled=False) for rate in RATES},
    run=run,
    read=read,
    seeds=tuple(range(10)),
    step="episodes",
)

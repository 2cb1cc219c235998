"""Compare hierarchical advantages with GiGPO, flat and grouped ones where a subgoal pays late.

The corridor of `key_door` in two lengths. The longer one delays the reward of taking the key three times as much. Each
arm is run at several rates and is judged at its best one, because the best rate differs between arms.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice, product
from pathlib import Path

from tests.results.experiment import Arm, Curve, Experiment, Metric, Point, Size
from tests.results.intervals import mean_of, paired
from tests.results.key_door import How, opened
from tests.results.pages import render_mean

CORRIDORS: Mapping[int, tuple[int, int]] = {9: (40, 1920), 17: (120, 6400)}
"""By number of cells: the maximum turns of an episode, and the episodes of a run."""
RATES = (0.1, 0.3, 1.0, 3.0, 10.0)
WINDOW, THRESHOLD = 5, 0.9


def run(arm: str, seed: int, folder: Path, size: Size) -> Curve:
    began = time.monotonic()
    results: dict[int, dict[str, float]] = {}
    for (cells, (turns, episodes)), rate in product(CORRIDORS.items(), RATES):
        how = How(arm, cells, turns, rate=rate)
        steps = WINDOW + 1 if size is Size.MINIATURE else episodes // how.episodes
        last = deque[float](maxlen=WINDOW)
        for nth, share in enumerate(islice(opened(seed, how), steps), 1):
            last.append(share)
            if nth >= WINDOW:
                results.setdefault(nth * how.episodes, {})[_metric_name(cells, rate)] = sum(last) / WINDOW
    took = time.monotonic() - began
    return Curve(arm, seed, tuple(Point(seen, took, metrics) for seen, metrics in sorted(results.items())))


def needed(curves: Sequence[Curve], arm: str, cells: int, rate: float) -> dict[int, float]:
    """Return the episodes until the share first reaches the threshold, by seed, or all if it never does."""
    results: dict[int, float] = {}
    for curve in (curve for curve in curves if curve.arm == arm):
        there = [p.step for p in curve.points if p.figures.get(_metric_name(cells, rate), 0.0) >= THRESHOLD]
        results[curve.seed] = there[0] if there else CORRIDORS[cells][1]
    return results


def read(curves: Sequence[Curve]) -> list[str]:
    first = next(iter(EXPERIMENT.arms))
    lines = [
        f"| episodes until {THRESHOLD:.0%} open the door | cells | best rate | episodes | {first} minus this | "
        "could have been shown |",
        "|---|---|---|---|---|---|",
    ]
    for cells, arm in product(CORRIDORS, EXPERIMENT.arms):
        ours, (rate, theirs) = _best(curves, first, cells)[1], _best(curves, arm, cells)
        gap = paired(ours, theirs) if arm != first else None
        power = f"{gap.detectable:,.0f}" if gap and gap.detectable else "-"
        mean = render_mean(mean_of(list(theirs.values())), digits=0)
        difference = render_mean(gap, signed=True, digits=0)
        lines.append(f"| {EXPERIMENT.arms[arm].title} | {cells} | {rate:g} | {mean} | {difference} | {power} |")
    return [*lines, "", *_by_rate(curves)]


def _by_rate(curves: Sequence[Curve]) -> list[str]:
    """Return the mean episodes of each arm at each rate."""
    rates = " | ".join(f"rate {rate:g}" for rate in RATES)
    lines = [f"| mean episodes | cells | {rates} |", f"|---|---|{'---|' * len(RATES)}"]
    for cells, arm in product(CORRIDORS, EXPERIMENT.arms):
        means = (mean_of(list(needed(curves, arm, cells, rate).values())) for rate in RATES)
        cells_of = " | ".join(f"{mean.value:,.0f}" if mean else "-" for mean in means)
        lines.append(f"| {EXPERIMENT.arms[arm].title} | {cells} | {cells_of} |")
    return lines


def _best(curves: Sequence[Curve], arm: str, cells: int) -> tuple[float, dict[int, float]]:
    """Return the rate with the fewest episodes on average, and its episodes by seed."""
    by_rate = {rate: needed(curves, arm, cells, rate) for rate in RATES}
    rate = min(RATES, key=lambda rate: sum(by_rate[rate].values()))
    return rate, by_rate[rate]


def _metric_name(cells: int, rate: float) -> str:
    return f"opened-{cells}-at-{rate:g}"


EXPERIMENT = Experiment(
    name="hae-delay",
    title="Hierarchical advantages, GiGPO and flat ones where a subgoal pays late",
    claim="The longer a subgoal's reward is delayed, the more hierarchical advantages save compared with flat ones, "
    "and they need fewer episodes than GiGPO (HiPER, arXiv 2602.16165: 95.3 % on ALFWorld, GiGPO 86.7 %).",
    setup="The corridor with the key at one end and the door at the other, of 9 cells with at most 40 turns and of 17 "
    "cells with at most 120. Policy and critics are tables that start at zero; a training step has 32 episodes. The "
    "discount is 0.97, λ is 0.95, critics have rate 0.3, and every stream of advantages is standardized. Each arm runs "
    f"at the rates {', '.join(f'{rate:g}' for rate in RATES)} and is judged at the one at which it needs the fewest "
    "episodes. A run that never gets there counts with all its episodes.",
    arms={
        "hierarchical": Arm("hierarchical", "advantages in three streams with a critic each, as in HiPER's release."),
        "gigpo": Arm("GiGPO", "z-scores over episodes, plus z-scores of discounted returns in the same state."),
        "flat": Arm("flat", "one generalized advantage and one critic for all parts of a turn."),
        "grouped": Arm("z-scores over episodes", "GiGPO without the part of states, as GRPO."),
    },
    figures={
        _metric_name(cells, rate): Metric(f"{cells} cells, doors opened, rate {rate:g}", share=True, tabled=False)
        for cells in CORRIDORS
        for rate in RATES
    },
    run=run,
    read=read,
    seeds=tuple(range(10)),
    step="episodes",
)

"""The interface of an experiment, by which it is run, its curves are stored and drawn.

An experiment compares arms: ways to train that differ in one thing. It is run once per (arm, seed), in any order and in
processes of their own; what comes back are plain numbers. A
module that has an experiment exports it as `EXPERIMENT`; torch is imported only when `run` is called.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Size(StrEnum):
    """How much work a run is."""

    FULL = "full"
    """What a claim is read from: at most five minutes a run on one core."""
    MINIATURE = "miniature"
    """A few seconds: every line runs, and the numbers mean nothing."""


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured at one moment of a run."""

    step: int
    """Training steps done so far; 0: before the first. `Experiment.step` may say that it counts something else."""
    seconds: float
    """Since the run began, on this machine; teaching a start is not counted."""
    figures: Mapping[str, float]
    """By name. A figure that this moment has not (rounds of successes where nothing succeeded) is absent, never NaN."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One run: an arm with a seed."""

    arm: str
    seed: int
    points: tuple[Point, ...]
    """By step, ascending; at least one."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the ways that are compared."""

    title: str
    """As a legend says it."""
    what: str
    """One sentence: how it differs from the other arms."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a `Point` that is drawn and tabled."""

    title: str
    """As an axis says it."""
    share: bool = False
    """From 0 to 1."""
    tabled: bool = True
    """Its value at the end of a run stands in the page's table."""


Run = Callable[[str, int, Path, Size], Curve]
"""(arm, seed, folder, size). `folder` is the same for all runs of all experiments. What runs share, such as taught
starts, is kept under `folder/starts` and made by the first process that needs it. Runs may start side by side."""


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    """Kebab-case; names files."""
    title: str
    claim: str
    """What the algorithm's source says, as one sentence that the curves can contradict."""
    arms: Mapping[str, Arm]
    """By kebab-case name; the algorithm first, then what it is compared with."""
    figures: Mapping[str, Metric]
    """In the order in which they are shown; the one that the claim is about first."""
    run: Run
    read: Callable[[Sequence[Curve]], Sequence[str]]
    """What the curves of some or all runs say about the claim: lines of Markdown with numbers in them."""
    setup: str = ""
    """Graph, questions, sizes and what was chosen, in a few sentences of Markdown."""
    seeds: tuple[int, ...] = (0, 1, 2)
    step: str = "training steps"
    """What `Point.step` counts, as the horizontal axis says it."""


def means(curves: Sequence[Curve], arm: str, metric: str) -> Mapping[int, tuple[float, float, float]]:
    """By step: mean, smallest and largest over the arm's seeds that have the figure there."""
    results: dict[int, list[float]] = {}
    for point in (point for curve in curves if curve.arm == arm for point in curve.points):
        if metric in point.figures:
            results.setdefault(point.step, []).append(point.figures[metric])
    return {step: (sum(all_) / len(all_), min(all_), max(all_)) for step, all_ in sorted(results.items())}

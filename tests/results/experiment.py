"""The interface of an experiment: how it is run, and how its curves are stored and drawn.

An experiment compares arms: ways to train that differ in one property. It is run once per (arm, seed), in any order and
in separate processes, and returns plain numbers. A module with an experiment exports it as `EXPERIMENT`. Torch is
imported only when `run` is called.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.results.question_overlap import Overlap


class Size(StrEnum):
    """The amount of work of a run."""

    FULL = "full"
    """The size for the published results: some minutes per run on one core, and up to a quarter of an hour beside other
    work."""
    MINIATURE = "miniature"
    """A few seconds: all code runs, and the numbers mean nothing."""


@dataclass(frozen=True, slots=True)
class Point:
    """The metrics at one moment of a run."""

    step: int
    """Number of training steps so far. 0 means before the first step. `Experiment.step` may name another unit."""
    seconds: float
    """Seconds since the start of the run on this machine, without the training of the starting policy."""
    figures: Mapping[str, float]
    """Metrics by name. A metric that is not defined at this moment is absent, never NaN."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The curve of one run: an arm with a seed."""

    arm: str
    seed: int
    points: tuple[Point, ...]
    """In ascending order of steps; at least one."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the ways to train that are compared."""

    title: str
    """Label in the legend."""
    what: str
    """One sentence on how it differs from the other arms."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a `Point` that is drawn and listed in tables."""

    title: str
    """Label of the axis."""
    share: bool = False
    """Whether the values lie between 0 and 1."""
    tabled: bool = True
    """Whether the page's table lists its value at the end of a run."""


Run = Callable[[str, int, Path, Size], Curve]
"""A function of (arm, seed, folder, size). `folder` is the same for all runs of all experiments.

What runs share, such as starting policies, is stored under `folder/starts` by the first process that needs it. Runs may
execute in parallel.
"""


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    """In kebab case; used in file names."""
    title: str
    claim: str
    """The claim of the algorithm's source, as one sentence that the curves can contradict."""
    arms: Mapping[str, Arm]
    """By name in kebab case. The algorithm comes first, then the arms that it is compared with."""
    figures: Mapping[str, Metric]
    """In the order in which they are shown. The metric of the claim comes first."""
    run: Run
    read: Callable[[Sequence[Curve]], Sequence[str]]
    """Return what the curves of some or all runs show about the claim, as lines of Markdown with numbers."""
    setup: str = ""
    """Graph, questions, sizes and choices, in a few sentences of Markdown."""
    seeds: tuple[int, ...] = (0, 1, 2)
    overlap: "Callable[[], Overlap] | None" = None
    """Returns how many evaluation questions occur in training, with seed 0. `None` means that it has no questions."""
    step: str = "training steps"
    """The unit of `Point.step`, as the horizontal axis names it."""


def means(curves: Sequence[Curve], arm: str, metric: str) -> Mapping[int, tuple[float, float, float]]:
    """Return mean, minimum and maximum over the arm's seeds that have the metric, by step."""
    results: dict[int, list[float]] = {}
    for point in (point for curve in curves if curve.arm == arm for point in curve.points):
        if metric in point.figures:
            results.setdefault(point.step, []).append(point.figures[metric])
    return {step: (sum(all_) / len(all_), min(all_), max(all_)) for step, all_ in sorted(results.items())}

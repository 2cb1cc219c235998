"""The page of an experiment. The part above the mark is written by hand and kept; the results are below it.

All functions except `write` are pure.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from tests.results.charts import drawn
from tests.results.experiment import Experiment, Metric
from tests.results.intervals import Mean, mean_of, paired
from tests.results.runs import Finished

if TYPE_CHECKING:
    from tests.results.question_overlap import Overlap

MARK = "<!-- figures: written by `make results` -->"

NO_SPREAD = "no spread"
"""Stands for the interval where all seeds have the same value."""


def write(experiment: Experiment, runs: Sequence[Finished], folder: Path) -> Path:
    """Write the page and its chart. The part above the mark of an existing page is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{experiment.name}.md"
    write_below_mark(page, render_metrics(experiment, runs), _first_prose(experiment))
    (folder / f"{experiment.name}.svg").write_text(drawn(experiment, [one.curve for one in runs]), "utf-8")
    return page


def write_below_mark(page: Path, text: str, first_prose: str = "") -> Path:
    """Write the part of a page below the mark and keep the part above it. A new page begins with `first_prose`."""
    prose = page.read_text("utf-8").partition(MARK)[0] if page.is_file() else first_prose
    page.write_text(f"{prose}{MARK}\n{text}", "utf-8")
    return page


def render_metrics(experiment: Experiment, runs: Sequence[Finished]) -> str:
    """Return the part of the page below the mark."""
    curves = [one.curve for one in runs]
    tables = [*(part for line in experiment.read(curves) for part in _wrapped(line)), "", *_table(experiment, runs)]
    return "\n".join(
        [
            *_paragraph(f"**Claim.** {experiment.claim}"),
            *(_paragraph(f"**Setup.** {experiment.setup}") if experiment.setup else []),
            *(part for arm in experiment.arms.values() for part in _wrapped(f"- **{arm.title}**: {arm.what}")),
            "",
            f"![{experiment.title}]({experiment.name}.svg)",
            "",
            *tables,
            *_detectable_table(experiment, runs),
            *(_paragraph(_tested(experiment.overlap())) if experiment.overlap else []),
            *_paragraph(_how_sure(sorted({curve.seed for curve in curves}), NO_SPREAD in "".join(tables))),
            *_paragraph(f"{_minutes(runs)}{_missing(experiment, runs)}"),
        ]
    )


def at_the_end(runs: Sequence[Finished], arm: str, metric: str) -> dict[int, float]:
    """Return the metric at the end of the arm's runs, by seed, if it is defined there."""
    last = {one.curve.seed: one.curve.points[-1].figures for one in runs if one.curve.arm == arm}
    return {seed: result[metric] for seed, result in last.items() if metric in result}


def _first_prose(experiment: Experiment) -> str:
    return f"# {experiment.title}\n\n```sh\nmake results ONLY={experiment.name}\n```\n\n"


def _table(experiment: Experiment, runs: Sequence[Finished]) -> list[str]:
    first, *others = experiment.arms
    titles = {name: arm.title for name, arm in experiment.arms.items()}
    heads = ["at the end", *titles.values(), *(f"{titles[first]} minus {titles[other]}" for other in others)]
    rows = [heads, ["---"] * len(heads)]
    for name, metric in ((name, metric) for name, metric in experiment.figures.items() if metric.tabled):
        ends = {arm: at_the_end(runs, arm, name) for arm in experiment.arms}
        rows.append([metric.title, *_cells(metric, ends)])
    return [*("| " + " | ".join(row) + " |" for row in rows), ""] if len(rows) > 2 else []


def _cells(measurement: Metric, ends: Mapping[str, Mapping[int, float]]) -> list[str]:
    first, *others = ends.values()
    means = [render_mean(mean_of(list(one.values())), share=measurement.share) for one in ends.values()]
    return [*means, *(render_mean(paired(first, other), signed=True) for other in others)]


def _detectable_table(experiment: Experiment, runs: Sequence[Finished]) -> list[str]:
    """Return the differences that these runs could have shown. Empty means that no two arms share two seeds."""
    first, *others = experiment.arms
    heads = [
        "could have been shown",
        *(f"{experiment.arms[first].title} minus {experiment.arms[o].title}" for o in others),
    ]
    rows = list[list[str]]()
    for name, metric in ((name, metric) for name, metric in experiment.figures.items() if metric.tabled):
        gaps = [paired(at_the_end(runs, first, name), at_the_end(runs, other, name)) for other in others]
        values = [gap.detectable if gap else None for gap in gaps]
        if any(value is not None for value in values):
            rows.append([metric.title, *("-" if value is None else f"{value:.2f}" for value in values)])
    if not rows:
        return []
    foot = "Differences that as many seeds with the measured spread show in 80 of 100 cases, at 95 %."
    table = [heads, ["---"] * len(heads), *rows]
    return [*("| " + " | ".join(row) + " |" for row in table), "", foot, ""]


def _tested(overlap: "Overlap") -> str:
    return (
        f"Each evaluation has {overlap.held_out} held-out questions. With seed 0, {overlap.longer_words} of the "
        f"{overlap.longer} with two or more look-ups occur in training in the compact form that a policy reads, among "
        f"{overlap.trained:,} training questions."
    )


def _how_sure(seeds: Sequence[int], some_equal: bool) -> str:
    apart = [str(seed) for seed in seeds]
    whole = len(seeds) > 3 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    named = f"{apart[0]} to {apart[-1]}" if whole else ", ".join(apart)
    lines = "Thin lines are seeds, bold lines are their means."
    if len(seeds) == 1:
        return f"Only seed {named} was run, so there is no interval, and another seed may give another result."
    wide = " With three seeds, they are wide: 4.3 standard errors to each side." if len(seeds) == 3 else ""
    intervals = f"Tables show means over seeds {named} with 95 % confidence intervals (Student's t over seeds)."
    equal = " Where all seeds have the same value, there is no interval." if some_equal else ""
    return f"{lines} {intervals} Differences are paired by seed.{wide}{equal}"


def render_mean(mean: Mean | None, *, share: bool = False, signed: bool = False, digits: int = 2) -> str:
    """Render a mean with its interval. The interval of a share stays within 0 and 1."""
    if mean is None:
        return "-"
    sign = "+" if signed else ""
    value = f"{mean.value:{sign},.{digits}f}"
    if mean.half is None:
        return value if mean.seeds == 1 else f"{value} ({NO_SPREAD})"
    low, high = (max(0.0, mean.low), min(1.0, mean.high)) if share else (mean.low, mean.high)
    return f"{value} ({low:{sign},.{digits}f} to {high:{sign},.{digits}f})"


def _minutes(runs: Sequence[Finished]) -> str:
    maximum = max(one.minutes for one in runs)
    longest = f"{60 * maximum:.1f} seconds" if maximum < 1 else f"{maximum:.1f} minutes"
    commits = sorted({one.commit for one in runs} - {""})
    ran_at = f" Commits: {', '.join(commits)}." if commits else ""
    return f"{len(runs)} runs; the longest took {longest}.{ran_at}"


def _missing(experiment: Experiment, runs: Sequence[Finished]) -> str:
    there = {(one.curve.arm, one.curve.seed) for one in runs}
    every = [(arm, seed) for seed in experiment.seeds for arm in experiment.arms]
    missing = [f"{arm} with seed {seed}" for arm, seed in every if (arm, seed) not in there]
    if not missing:
        return ""
    named = ", ".join(missing[:4]) + (" and more" if len(missing) > 4 else "")
    return f" **{len(missing)} of {len(every)} runs are missing**: {named}."


def _paragraph(text: str) -> list[str]:
    return [*_wrapped(text), ""]


def _wrapped(line: str) -> list[str]:
    """Wrap a line. A line of a table stays one line."""
    if line.startswith("|") or not line:
        return [line]
    later = "  " if line.startswith("- ") else ""
    return wrap(line, 120, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)

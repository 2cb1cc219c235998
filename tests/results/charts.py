"""Draw curves as SVG. Equal numbers give equal bytes.

There is one panel per metric and one line per arm: thin lines are seeds, the bold line is their mean. The panels share
one legend. Colors follow the light or dark mode of the reader's system. Arms also differ in their dashes.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

from tests.results.experiment import Arm, Curve, Experiment, Metric

WIDTH, HEIGHT = 880, 300
"""Size of the image, and height of a row of panels, in pixels."""
LEFT, RIGHT, ABOVE, BELOW = 48, 22, 34, 46
"""Margins of a panel's plot."""
COLOURS = ("sea", "sun", "violet", "moss", "coral")
DASHES = ("none", "7 4", "2 3", "10 3 2 3", "5 5")

STYLE = """
:root { --surface: #ffffff; --line: #e4e0d7; --horizon: #8f8b82; --ink: #15202b; --ink-2: #4a5763;
  --sea: #0f6670; --sun: #c8791a; --violet: #6450a0; --moss: #416b2f; --coral: #ab3830; }
@media (prefers-color-scheme: dark) {
  :root { --surface: #121c22; --line: #23323b; --horizon: #6b7a84; --ink: #e7ecee; --ink-2: #a9b6bd;
    --sea: #4cb8bd; --sun: #e2a04c; --violet: #ae9ee0; --moss: #8dbb78; --coral: #ea8f89; }
}
text { font: 12px Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink-2);
  font-variant-numeric: tabular-nums; }
.name { font-weight: 600; fill: var(--ink); }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--line); } .horizon { stroke: var(--horizon); }
polyline { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.seed { stroke-width: 1; opacity: .38; } .mean { stroke-width: 2.4; }
""".strip()

Line = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Map numbers to positions along one side of a plot."""

    ticks: tuple[float, ...]
    """In ascending order, at least two. The first and the last are the ends."""
    start: float
    end: float

    def at(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def drawn(experiment: Experiment, curves: Sequence[Curve]) -> str:
    """Return the SVG file. A metric that no curve has gets no panel."""
    rendered = [name for name in experiment.figures if any(name in p.figures for c in curves for p in c.points)]
    columns = _columns(len(rendered))
    key = list(_key(list(experiment.arms.values())))
    rows = math.ceil(len(rendered) / columns)
    height = 36 + rows * HEIGHT
    width = WIDTH / columns
    panels = [
        line
        for nth, name in enumerate(rendered)
        for line in _panel(experiment, curves, name, (nth % columns * width, 36 + nth // columns * HEIGHT), width)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img">',
            f"<title>{escape(experiment.title)}</title>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="var(--surface)"/>',
            *key,
            *panels,
            "</svg>\n",
        ]
    )


def seeds_and_mean(curves: Sequence[Curve], arm: str, metric: str) -> tuple[list[Line], Line]:
    """Return one line per seed, in order of seeds, and their mean at the steps that all of them have."""
    own = sorted((c for c in curves if c.arm == arm), key=lambda c: c.seed)
    lines = [{p.step: p.figures[metric] for p in c.points if metric in p.figures} for c in own]
    lines = [line for line in lines if line]
    common = sorted(set[int].intersection(*(set(line) for line in lines))) if lines else []
    mean = [(step, sum(line[step] for line in lines) / len(lines)) for step in common]
    return [sorted(line.items()) for line in lines], mean


def ticks(low: float, high: float, maximum: int = 6) -> tuple[float, ...]:
    """Return at most `maximum` round numbers from at most `low` to at least `high`."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / (maximum - 1)))
    for nth in range(8):
        step = power * (1, 2, 5)[nth % 3] * 10 ** (nth // 3)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        last = max(last, first + 1)
        if last - first < maximum:
            return tuple(round(n * step, 12) for n in range(first, last + 1))
    raise ValueError(f"no ticks from {low} to {high}")


def _columns(panels: int) -> int:
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def _key(arms: Sequence[Arm]) -> Iterator[str]:
    left = float(LEFT)
    for nth, arm in enumerate(arms):
        yield f'<polyline class="mean" {_stroke(nth)} points="{left:.1f},20 {left + 30:.1f},20"/>'
        yield f'<text x="{left + 37:.1f}" y="24">{escape(arm.title)}</text>'
        left += 37 + 6.6 * len(arm.title) + 22


def _panel(
    experiment: Experiment, curves: Sequence[Curve], name: str, at: tuple[float, float], width: float
) -> Iterator[str]:
    metric = experiment.figures[name]
    left, top = at[0] + LEFT, at[1] + ABOVE
    right, bottom = at[0] + width - RIGHT, at[1] + HEIGHT - BELOW
    lines = {arm: seeds_and_mean(curves, arm, name) for arm in experiment.arms}
    points = [point for seeds, _ in lines.values() for line in seeds for point in line]
    x = Scale(ticks(min(p[0] for p in points), max(p[0] for p in points), max(3, int(width / 75))), left, right)
    y = Scale(_heights([p[1] for p in points], metric), bottom, top)
    yield from _axes(x, y)
    title = escape(f"{metric.title}, share" if metric.share else metric.title)
    yield f'<text class="name" x="{at[0] + LEFT:.1f}" y="{top - 14:.1f}">{title}</text>'
    yield f'<text class="end" x="{right:.1f}" y="{bottom + 36:.1f}">{escape(experiment.step)}</text>'
    for kind in ("seed", "mean"):
        for nth, arm in enumerate(experiment.arms):
            for line in lines[arm][0] if kind == "seed" else [lines[arm][1]]:
                yield from _line(line, kind, nth, x, y)


def _heights(values: Sequence[float], measurement: Metric) -> tuple[float, ...]:
    """Return the ticks of the vertical axis: from 0 to 1 for shares, from 0 for values that are never negative."""
    if measurement.share:
        return ticks(0.0, 1.0)
    return ticks(min(0.0, *values), max(0.0, *values))


def _axes(x: Scale, y: Scale) -> Iterator[str]:
    for nth, tick in enumerate(y.ticks):
        kind = "grid" if nth else "horizon"
        yield f'<line class="{kind}" x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{y.at(tick):.1f}" y2="{y.at(tick):.1f}"/>'
        yield f'<text class="end" x="{x.start - 7:.1f}" y="{y.at(tick) + 4:.1f}">{_number(tick, y)}</text>'
    for tick in x.ticks:
        yield f'<path class="horizon" d="M{x.at(tick):.1f} {y.start:.1f}v4"/>'
        yield f'<text class="middle" x="{x.at(tick):.1f}" y="{y.start + 18:.1f}">{_number(tick, x)}</text>'


def _number(value: float, scale: Scale) -> str:
    """Format a number with the decimals that distinguish neighboring ticks."""
    apart = min(b - a for a, b in pairwise(scale.ticks))
    return f"{value:,.{max(0, -math.floor(math.log10(apart) + 1e-9))}f}"


def _line(line: Line, kind: str, nth: int, x: Scale, y: Scale) -> Iterator[str]:
    """Draw a line. A line of one point is a dot."""
    if len(line) == 1:
        yield f'<circle cx="{x.at(line[0][0]):.1f}" cy="{y.at(line[0][1]):.1f}" r="3" fill="var(--{COLOURS[nth]})"/>'
    elif line:
        points = " ".join(f"{x.at(step):.1f},{y.at(value):.1f}" for step, value in line)
        yield f'<polyline class="{kind}" {_stroke(nth, dashed=kind == "mean")} points="{points}"/>'


def _stroke(nth: int, *, dashed: bool = True) -> str:
    dash = f' stroke-dasharray="{DASHES[nth]}"' if dashed and DASHES[nth] != "none" else ""
    return f'stroke="var(--{COLOURS[nth]})"{dash}'

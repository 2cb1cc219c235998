"""Figures for Prometheus, from what Postgres recorded.

Workers expose nothing: every figure worth counting is a row, so the API renders one text for the whole installation,
right after a restart and for any number of workers. Opens no connection; storage gives the figures.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class RunFigure:
    """Runs of one graph in one status."""

    graph: str
    status: str
    count: int
    waited_seconds: float = 0.0
    """From submission to the first claim, summed over those that started."""
    started: int = 0


@dataclass(frozen=True, slots=True)
class StepFigure:
    """Steps of one kind and label."""

    kind: str
    label: str
    count: int
    seconds: float = 0.0
    """Of the calls behind them, summed."""
    timed: int = 0
    """How many of them are calls."""
    failed: int = 0


@dataclass(frozen=True, slots=True)
class EngineFigure:
    """Role calls by role, engine and model."""

    role: str
    engine: str
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    failed_attempts: int = 0


Figure = RunFigure | StepFigure | EngineFigure


def metrics_from(rows: Iterable[Figure]) -> bytes:
    """The exposition text for `/metrics`. No row: the metric names without samples."""
    return generate_latest(_Figures(tuple(rows)))


class _Figures(Collector):
    """A registry of one collector; `generate_latest` needs nothing more than `collect`."""

    def __init__(self, rows: Sequence[Figure]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        yield from _runs([row for row in self._rows if isinstance(row, RunFigure)])
        yield from _steps([row for row in self._rows if isinstance(row, StepFigure)])
        yield from _engines([row for row in self._rows if isinstance(row, EngineFigure)])


def _runs(rows: list[RunFigure]) -> Iterator[Metric]:
    count = GaugeMetricFamily("offing_runs", "Runs on record by graph and status.", labels=["graph", "status"])
    wait = SummaryMetricFamily("offing_queue_wait_seconds", "From submission to the first claim.", labels=["graph"])
    for row in rows:
        count.add_metric([row.graph, row.status], row.count)
    for graph in sorted({row.graph for row in rows}):
        mine = [row for row in rows if row.graph == graph]
        wait.add_metric([graph], sum(r.started for r in mine), sum(r.waited_seconds for r in mine))
    yield from (count, wait)


def _steps(rows: list[StepFigure]) -> Iterator[Metric]:
    labels = ["kind", "label"]
    count = CounterMetricFamily("offing_steps", "Steps recorded.", labels=labels)
    failed = CounterMetricFamily("offing_step_failures", "Steps that record a failure.", labels=labels)
    time = SummaryMetricFamily("offing_step_seconds", "Time of the calls behind steps.", labels=labels)
    for row in rows:
        names = [row.kind, row.label]
        count.add_metric(names, row.count)
        failed.add_metric(names, row.failed)
        time.add_metric(names, row.timed, row.seconds)
    yield from (count, failed, time)


def _engines(rows: list[EngineFigure]) -> Iterator[Metric]:
    labels = ["role", "engine", "model"]
    tokens = CounterMetricFamily("offing_tokens", "Tokens as billed.", labels=[*labels, "direction"])
    cost = CounterMetricFamily("offing_cost_usd", "Money as reported by providers.", labels=labels)
    failed = CounterMetricFamily("offing_engine_failures", "Attempts that gave no accepted answer.", labels=labels)
    for row in rows:
        names = [row.role, row.engine, row.model]
        tokens.add_metric([*names, "input"], row.prompt_tokens)
        tokens.add_metric([*names, "output"], row.completion_tokens)
        cost.add_metric(names, row.usd)
        failed.add_metric(names, row.failed_attempts)
    yield from (tokens, cost, failed)

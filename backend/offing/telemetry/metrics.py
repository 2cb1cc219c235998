"""Metrics for Prometheus, computed from rows in Postgres.

Workers expose no metrics. All counted events are rows, so the API renders one text for the whole
installation, correct right after a restart and for any number of workers. Storage passes the
rows in.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


FIRST_TOKEN_BUCKETS_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of the time to the first token."""


@dataclass(frozen=True, slots=True)
class RunMetric:
    """Runs of one graph in one status."""

    graph: str
    status: str
    run_count: int
    queued_seconds: float = 0.0
    """Time from submission to the first claim, summed over the runs that have started."""
    started_count: int = 0


@dataclass(frozen=True, slots=True)
class StepMetric:
    """Steps of one kind and label."""

    kind: str
    label: str
    step_count: int
    duration_seconds: float = 0.0
    """Duration of the calls behind these steps, summed."""
    timed_count: int = 0
    """Number of these steps that are calls."""
    failed_count: int = 0


@dataclass(frozen=True, slots=True)
class EngineMetric:
    """Role calls by role, engine and model."""

    role: str
    engine: str
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    failed_attempt_count: int = 0
    streamed_count: int = 0
    """Number of calls whose time to the first token is known, because their answer was streamed."""
    first_token_seconds: float = 0.0
    """Time from the request to the first token, summed over these calls."""
    first_token_counts: Sequence[int] = ()
    """Number of these calls up to each of `FIRST_TOKEN_BUCKETS_SECONDS`."""
    slot_wait_count: int = 0
    """Number of calls that waited for a call slot of their provider."""
    slot_wait_seconds: float = 0.0
    """Time that they waited, summed."""


MetricRow = RunMetric | StepMetric | EngineMetric


def render_metrics(rows: Iterable[MetricRow]) -> bytes:
    """Render the exposition text for `/metrics`.

    Without rows, it contains the metric names without samples.
    """
    return generate_latest(_MetricsCollector(tuple(rows)))


class _MetricsCollector(Collector):
    """A registry with one collector. `generate_latest` only needs `collect`."""

    def __init__(self, rows: Sequence[MetricRow]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        yield from _run_metrics([row for row in self._rows if isinstance(row, RunMetric)])
        yield from _step_metrics([row for row in self._rows if isinstance(row, StepMetric)])
        yield from _engine_metrics([row for row in self._rows if isinstance(row, EngineMetric)])


def _run_metrics(rows: list[RunMetric]) -> Iterator[Metric]:
    count = GaugeMetricFamily("offing_runs", "Stored runs by graph and status.", labels=["graph", "status"])
    wait = SummaryMetricFamily("offing_queue_wait_seconds", "From submission to the first claim.", labels=["graph"])
    for row in rows:
        count.add_metric([row.graph, row.status], row.run_count)
    for graph in sorted({row.graph for row in rows}):
        mine = [row for row in rows if row.graph == graph]
        wait.add_metric([graph], sum(r.started_count for r in mine), sum(r.queued_seconds for r in mine))
    yield from (count, wait)


def _step_metrics(rows: list[StepMetric]) -> Iterator[Metric]:
    labels = ["kind", "label"]
    count = CounterMetricFamily("offing_steps", "Recorded steps.", labels=labels)
    failed = CounterMetricFamily("offing_step_failures", "Recorded steps of failures.", labels=labels)
    time = SummaryMetricFamily("offing_step_seconds", "Duration of the calls that steps record.", labels=labels)
    for row in rows:
        names = [row.kind, row.label]
        count.add_metric(names, row.step_count)
        failed.add_metric(names, row.failed_count)
        time.add_metric(names, row.timed_count, row.duration_seconds)
    yield from (count, failed, time)


def _engine_metrics(rows: list[EngineMetric]) -> Iterator[Metric]:
    labels = ["role", "engine", "model"]
    tokens = CounterMetricFamily("offing_tokens", "Billed tokens.", labels=[*labels, "direction"])
    cost = CounterMetricFamily("offing_cost_usd", "Cost as reported by providers.", labels=labels)
    failed = CounterMetricFamily("offing_engine_failures", "Attempts whose answer was not accepted.", labels=labels)
    first = HistogramMetricFamily(
        "offing_first_token_seconds", "From the request to the first token of streamed answers.", labels=labels
    )
    waits = SummaryMetricFamily(
        "offing_slot_wait_seconds", "Waits for the limit of concurrent calls of a provider.", labels=labels
    )
    for row in rows:
        names = [row.role, row.engine, row.model]
        if row.slot_wait_count:
            waits.add_metric(names, row.slot_wait_count, row.slot_wait_seconds)
        if row.streamed_count:
            first.add_metric(names, _build_buckets(row), row.first_token_seconds)
        tokens.add_metric([*names, "input"], row.prompt_tokens)
        tokens.add_metric([*names, "output"], row.completion_tokens)
        cost.add_metric(names, row.cost_usd)
        failed.add_metric(names, row.failed_attempt_count)
    yield from (tokens, cost, failed, first, waits)


def _build_buckets(row: EngineMetric) -> list[tuple[str, float]]:
    bounds = zip(FIRST_TOKEN_BUCKETS_SECONDS, row.first_token_counts, strict=True)
    return [*((str(bound), float(count)) for bound, count in bounds), ("+Inf", float(row.streamed_count))]

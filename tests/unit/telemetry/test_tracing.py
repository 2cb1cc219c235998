"""Traces: configured from the environment alone, free when they are not, and unbroken across processes."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from offing.core.errors import InvalidInput
from offing.telemetry.tracing import continue_trace, current_traceparent, get_exporter_name, open_span, setup_tracing


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Finished spans of this test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


@pytest.mark.parametrize(
    ("env", "exporter"),
    [
        ({}, "none"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, "none"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, "none"),
    ],
)
def test_standard_variables_alone_decide_where_spans_go(env: dict[str, str], exporter: str) -> None:
    assert get_exporter_name(env) == exporter


def test_an_exporter_that_is_not_here_is_named_with_the_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"OTEL_TRACES_EXPORTER.*zipkin.*Use otlp"):
        setup_tracing("offing", {"OTEL_TRACES_EXPORTER": "zipkin"})


def test_without_an_exporter_nothing_is_installed_and_a_span_costs_microseconds() -> None:
    assert setup_tracing("offing", {}) is False
    assert current_traceparent() is None
    started = time.thread_time()
    for _ in range(1000):
        with open_span("x", {"offing.run.id": "r"}):
            pass
    assert (time.thread_time() - started) / 1000 < 0.0005


def test_a_trace_continues_in_another_process_through_its_traceparent(spans: InMemorySpanExporter) -> None:
    with open_span("request"):
        carried = current_traceparent()
    with continue_trace(carried), open_span("slice", {"offing.fence": 1}):
        pass
    request, slice_ = spans.get_finished_spans()
    assert slice_.parent is not None
    assert request.context is not None
    assert slice_.parent.span_id == request.context.span_id
    assert slice_.context is not None
    assert slice_.context.trace_id == request.context.trace_id


@pytest.mark.parametrize("parent", [None, "", "nonsense", "00-0-0-00"])
def test_a_missing_or_malformed_traceparent_starts_a_trace_of_its_own(
    spans: InMemorySpanExporter, parent: str | None
) -> None:
    with open_span("outer"), continue_trace(parent), open_span("slice"):
        pass
    assert spans.get_finished_spans()[0].parent is None


def test_an_exception_marks_the_span_without_its_secret_and_continues(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary-secret-value")
    with pytest.raises(ValueError, match="canary"), open_span("work"):
        raise ValueError("said canary-secret-value")
    (failed,) = spans.get_finished_spans()
    assert failed.status.status_code is StatusCode.ERROR
    assert "canary" not in failed.to_json()
    assert (failed.attributes or {})["error.type"] == "ValueError"


def test_the_sdk_is_not_imported_until_an_exporter_is_named() -> None:
    code = (
        "import sys; from offing.telemetry.tracing import setup_tracing, open_span; setup_tracing('x', {});"
        "assert not [m for m in sys.modules if m.startswith('opentelemetry.sdk')], 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(p for p in sys.path if p)})

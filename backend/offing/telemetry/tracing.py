"""OpenTelemetry set-up and the one way to open a span.

Configured by the standard OTEL_* variables alone. Without an exporter there, spans are the API's no-ops and cost a few
microseconds; the SDK is not even imported. Knows no exporter's address and records no content.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from offing.core.errors import InvalidInput
from offing.telemetry.attributes import Attribute
from offing.telemetry.redaction import redact

_PROPAGATOR = TraceContextTextMapPropagator()
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def exporter_named(env: Mapping[str, str]) -> str:
    """`otlp`, `console` or `none`: which exporter the environment asks for. An OTLP endpoint alone asks for `otlp`.

    Raises `InvalidInput` for one that this build does not carry.
    """
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return "none"
    named = env.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named not in ("", "otlp", "console", "none"):
        raise InvalidInput("OTEL_TRACES_EXPORTER", f"there is no exporter {named!r} here", "Use otlp, console or none.")
    return named or ("otlp" if any(env.get(name) for name in _ENDPOINTS) else "none")


def setup_tracing(service: str, env: Mapping[str, str] = os.environ) -> bool:
    """Install a provider for this process when the environment names an exporter. True: spans are exported.

    Call once a process, after any fork. OTEL_SERVICE_NAME wins over `service`.
    """
    exporter = exporter_named(env)
    if exporter == "none":
        return False
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

    def chosen() -> SpanExporter:
        if exporter == "console":
            return ConsoleSpanExporter()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()

    provider = TracerProvider(resource=Resource.create({"service.name": env.get("OTEL_SERVICE_NAME") or service}))
    provider.add_span_processor(BatchSpanProcessor(chosen()))
    trace.set_tracer_provider(provider)
    return True


def shutdown_tracing() -> None:
    """Send what is left. Harmless when nothing was set up."""
    close = getattr(trace.get_tracer_provider(), "shutdown", None)
    if close is not None:
        close()


@contextmanager
def span(
    name: str, attributes: Mapping[str, Attribute] | None = None, kind: SpanKind = SpanKind.INTERNAL
) -> Generator[Span]:
    """A span around the block, child of the current one. An exception marks it as failed and goes on."""
    with trace.get_tracer("offing").start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except Exception as error:
            mark_failed(current, type(error).__name__, str(error))
            raise


def mark_failed(current: Span, kind: str, message: str = "") -> None:
    """Say on a span that its work failed, for failures that are values and for exceptions."""
    if current.is_recording():
        current.set_attribute("error.type", kind)
        current.set_status(Status(StatusCode.ERROR, redact(message)[:300]))


def traceparent() -> str | None:
    """The current span as a W3C `traceparent`, to be stored with a run. None: no span is recorded."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def continued(parent: str | None) -> Generator[None]:
    """Spans in the block are children of `parent`, a stored `traceparent`. None or malformed: a trace of their own."""
    token = context.attach(_PROPAGATOR.extract({"traceparent": parent} if parent else {}))
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def unrecorded() -> Generator[None]:
    """A block in which libraries that open spans of their own record nothing, and pass no trace of ours to others."""
    nobody = SpanContext(trace_id=1, span_id=1, is_remote=False, trace_flags=TraceFlags(TraceFlags.DEFAULT))
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(nobody)))
    try:
        yield
    finally:
        context.detach(token)

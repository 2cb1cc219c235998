"""OpenTelemetry setup, and the function that opens spans.

It is configured by the standard OTEL_* variables only. Without an exporter, spans are the API's
no-ops, which take a few microseconds, and the SDK is not imported. Spans contain no content.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from offing import environment
from offing.core.errors import InvalidInput
from offing.telemetry.attributes import Attribute
from offing.telemetry.redaction import redact

_PROPAGATOR = TraceContextTextMapPropagator()
_ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def get_exporter_name(env: Mapping[str, str]) -> str:
    """Return which exporter the environment selects:

    `otlp`, `console` or `none`. An OTLP endpoint without an exporter selects `otlp`. Raises
    `InvalidInput` for an exporter that is not included in this build.
    """
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return "none"
    named = env.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named not in ("", "otlp", "console", "none"):
        raise InvalidInput("OTEL_TRACES_EXPORTER", f"there is no exporter {named!r}", "Use otlp, console or none.")
    return named or ("otlp" if any(env.get(name) for name in _ENDPOINT_VARIABLES) else "none")


def setup_tracing(service: str, env: Mapping[str, str] = environment.VARIABLES) -> bool:
    """Install a tracer provider if the environment selects an exporter.

    Return whether spans are exported. Call it once per process, after any fork.
    OTEL_SERVICE_NAME takes precedence over `service`.
    """
    exporter = get_exporter_name(env)
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
    """Export the remaining spans. Does nothing if tracing was not set up."""
    close = getattr(trace.get_tracer_provider(), "shutdown", None)
    if close is not None:
        close()


@contextmanager
def open_span(
    name: str, attributes: Mapping[str, Attribute] | None = None, kind: SpanKind = SpanKind.INTERNAL
) -> Generator[Span]:
    """Open a span around the block as a child of the current one.

    An exception marks it as failed and is raised again.
    """
    with trace.get_tracer("offing").start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except Exception as error:
            mark_failed(current, type(error).__name__, str(error))
            raise


def mark_failed(span: Span, kind: str, message: str = "") -> None:
    """Mark a span as failed, for failures that are values and for exceptions."""
    if span.is_recording():
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, redact(message)[:300]))


def current_traceparent() -> str | None:
    """Return the current span as a W3C `traceparent`, to be stored with a run.

    `None` means that no span is recorded.
    """
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def continue_trace(traceparent: str | None) -> Generator[None]:
    """Make spans in the block children of `traceparent`, a stored value.

    If it is `None` or malformed, they start a new trace.
    """
    token = context.attach(_PROPAGATOR.extract({"traceparent": traceparent} if traceparent else {}))
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def suppress_tracing() -> Generator[None]:
    """Prevent libraries from recording spans in the block.

    They also do not pass on the current trace.
    """
    nobody = SpanContext(trace_id=1, span_id=1, is_remote=False, trace_flags=TraceFlags(TraceFlags.DEFAULT))
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(nobody)))
    try:
        yield
    finally:
        context.detach(token)

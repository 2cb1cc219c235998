"""Structured logs to standard error: JSON for machines, columns for people, the same fields in both.

Every line carries what the code around it bound (run, tenant), the trace it belongs to, and no secret: redaction is
the last step before rendering, and lines of other libraries pass through it, too.
"""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, TextIO
from uuid import UUID

import structlog
from opentelemetry import trace
from structlog.types import EventDict, Processor, WrappedLogger

from offing.telemetry.redaction import redact_value

Format = Literal["json", "console"]

_QUIET = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai", "asyncio", "trafilatura")
"""Libraries whose lines below WARNING say nothing about a run, or repeat what they send."""


def setup_logs(form: Format = "json", level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Configure this process's logging, replacing what was there. `stream` None: standard error."""
    shared = _shared()
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_final(form)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger whose lines name `name` as their source."""
    return structlog.stdlib.get_logger(name)


@contextmanager
def bound(*, run: UUID | None = None, tenant: UUID | None = None, **more: str | int) -> Generator[None]:
    """Lines logged in the block, by tasks started in it, too, carry these fields. None: the field is left out."""
    named = {"run": str(run) if run else None, "tenant": str(tenant) if tenant else None}
    fields = {name: value for name, value in named.items() if value is not None}
    with structlog.contextvars.bound_contextvars(**fields, **more):
        yield


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
    ]


def _final(form: Format) -> list[Processor]:
    """Rendering. Tracebacks become text before redaction, so that a secret in one is found."""
    render: Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        _redact,
        render,
    ]


def _add_trace(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    current = trace.get_current_span().get_span_context()
    if current.is_valid:
        event["trace_id"] = f"{current.trace_id:032x}"
        event["span_id"] = f"{current.span_id:016x}"
    return event


def _redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return redact_value(dict(event))

"""Structured logs on standard error:

JSON for machines, columns for people, with the same fields. Every line contains the fields bound
by the surrounding code (run, tenant) and the current trace, and no secrets: redaction is the
last step before rendering and also applies to lines of other libraries.
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

LogFormat = Literal["json", "console"]

_QUIET_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai", "asyncio", "trafilatura")
"""Libraries whose lines below WARNING are not about runs or repeat the content that they send."""


def setup_logs(log_format: LogFormat = "json", level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Configure logging for this process, replacing the previous configuration.

    If `stream` is `None`, use standard error.
    """
    shared = _shared_processors()
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
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_final_processors(log_format))
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger with `name` as the source of its lines."""
    return structlog.stdlib.get_logger(name)


@contextmanager
def bind_log_context(
    *, run_id: UUID | None = None, tenant_id: UUID | None = None, **extra_fields: str | int
) -> Generator[None]:
    """Add fields to all lines logged in the block, also by tasks started in it.

    A field that is `None` is left out.
    """
    named = {"run": str(run_id) if run_id else None, "tenant": str(tenant_id) if tenant_id else None}
    fields = {name: value for name, value in named.items() if value is not None}
    with structlog.contextvars.bound_contextvars(**fields, **extra_fields):
        yield


def _shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
    ]


def _final_processors(log_format: LogFormat) -> list[Processor]:
    """Return the processors for rendering.

    Tracebacks become text before redaction, so that secrets in them are found.
    """
    render: Processor = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
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

"""Mapping of litellm's exceptions to attempt failures with an informative message.

litellm is passed in. Unknown exceptions count as transient failures.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from offing.core.model import FailureKind
from offing.core.step import shorten_line
from offing.models.retry import parse_retry_after
from offing.models.role_call import AttemptFailure
from offing.telemetry.redaction import redact

_PREFIX = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: -|:)\s+")

_SSL_CONTEXT = re.compile(r" ssl:<[^>]*>")
"""What aiohttp adds to the address of a server to which it cannot connect."""


def failure_from_error(litellm: Any, error: Exception) -> AttemptFailure:
    """Return an exception as an attempt failure.

    It has the kind, the first informative line without secrets, and the retry delay.
    """
    cause = getattr(error, "original_exception", None)
    kind = classify_error(litellm, cause if isinstance(cause, Exception) else error)
    headers: Mapping[str, str] = getattr(error, "litellm_response_headers", None) or {}
    after = parse_retry_after(headers.get("retry-after"), datetime.now(UTC))
    return AttemptFailure(kind, first_informative_line(error), after)


def classify_error(litellm: Any, error: Exception) -> FailureKind:
    """Return the kind of a failure: that of the first matching class."""
    text = str(error).lower()
    if isinstance(error, ImportError):
        return FailureKind.BAD_REQUEST
    if _provider_code(error) == "insufficient_quota" or "missing credentials" in text:
        return FailureKind.AUTHENTICATION_FAILED
    if _provider_code(error) == "content_filter":
        return FailureKind.CONTENT_FILTERED
    for names, kind in _KINDS:
        if isinstance(error, tuple(getattr(litellm.exceptions, name) for name in names.split())):
            return kind
    return _classify_status(getattr(error, "status_code", None))


def _provider_code(error: Exception) -> str:
    """Return the provider's error code, if the body has one. An exceeded quota is a 429, too."""
    body: Any = getattr(error, "body", None)
    return str(body.get("code")) if isinstance(body, dict) else ""  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


_KINDS = (
    ("ContextWindowExceededError", FailureKind.CONTEXT_TOO_LONG),
    ("ContentPolicyViolationError RejectedRequestError", FailureKind.CONTENT_FILTERED),
    ("AuthenticationError PermissionDeniedError PaymentRequiredError", FailureKind.AUTHENTICATION_FAILED),
    ("RateLimitError", FailureKind.RATE_LIMITED),
    ("Timeout", FailureKind.TIMEOUT),
    ("NotFoundError", FailureKind.MODEL_UNAVAILABLE),
    ("BadRequestError UnprocessableEntityError", FailureKind.BAD_REQUEST),
)


def _classify_status(status: int | None) -> FailureKind:
    """Classify an error without a known class by its status.

    Connection errors and 5xx are transient, and other statuses are not.
    """
    if status in (401, 402, 403):
        return FailureKind.AUTHENTICATION_FAILED
    if status == 404:
        return FailureKind.MODEL_UNAVAILABLE
    if status == 429:
        return FailureKind.RATE_LIMITED
    if status is not None and 400 <= status < 500 and status not in (408, 409, 425):
        return FailureKind.BAD_REQUEST
    return FailureKind.OVERLOADED


def first_informative_line(error: Exception) -> str:
    """Return the first informative line of an error, without litellm's prefixes and without secrets."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = _SSL_CONTEXT.sub("", lines[0]) if lines else type(error).__name__
    while (shorter := _PREFIX.sub("", line, count=1)) != line and shorter:
        line = shorter
    return shorten_line(redact(line), 300)

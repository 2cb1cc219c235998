"""What an exception of litellm means for a run: a typed refusal, with the first line that says something.

Gets litellm handed in, and imports none. Every exception has a meaning here; what fits nowhere counts as a fault that
can pass.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from offing.core.model import FailureKind
from offing.core.step import shortened
from offing.models.retry import retry_after_seconds
from offing.models.role_call import Refusal
from offing.telemetry.redaction import redact

_PREFIX = re.compile(r"^(?:litellm\.)?[A-Za-z]*(?:Error|Exception|Timeout)(?: -|:)\s+")


def refusal_of(litellm: Any, error: Exception) -> Refusal:
    """The exception as a value: its kind, the first telling line without secrets, and when to come back."""
    cause = getattr(error, "original_exception", None)
    kind = kind_of(litellm, cause if isinstance(cause, Exception) else error)
    headers: Mapping[str, str] = getattr(error, "litellm_response_headers", None) or {}
    after = retry_after_seconds(headers.get("retry-after"), datetime.now(UTC))
    return Refusal(kind, telling_line(error), after)


def kind_of(litellm: Any, error: Exception) -> FailureKind:
    """What the failure means for us; the first class that fits."""
    text = str(error).lower()
    if isinstance(error, ImportError):
        return FailureKind.BAD_REQUEST
    if _code(error) == "insufficient_quota" or "missing credentials" in text:
        return FailureKind.REFUSED_KEY
    if _code(error) == "content_filter":
        return FailureKind.CONTENT_REFUSED
    for names, kind in _KINDS:
        if isinstance(error, tuple(getattr(litellm.exceptions, name) for name in names.split())):
            return kind
    return _kind_of_status(getattr(error, "status_code", None))


def _code(error: Exception) -> str:
    """The provider's own word for it, where its body has one: a quota that is used up comes as a 429, too."""
    body: Any = getattr(error, "body", None)
    return str(body.get("code")) if isinstance(body, dict) else ""  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


_KINDS = (
    ("ContextWindowExceededError", FailureKind.CONTEXT_TOO_LONG),
    ("ContentPolicyViolationError RejectedRequestError", FailureKind.CONTENT_REFUSED),
    ("AuthenticationError PermissionDeniedError PaymentRequiredError", FailureKind.REFUSED_KEY),
    ("RateLimitError", FailureKind.RATE_LIMITED),
    ("Timeout", FailureKind.TIMEOUT),
    ("BadRequestError NotFoundError UnprocessableEntityError", FailureKind.BAD_REQUEST),
)


def _kind_of_status(status: int | None) -> FailureKind:
    """For what has no class: connection faults and 5xx can pass, other refusals cannot."""
    if status in (401, 402, 403):
        return FailureKind.REFUSED_KEY
    if status == 429:
        return FailureKind.RATE_LIMITED
    if status is not None and 400 <= status < 500 and status not in (408, 409, 425):
        return FailureKind.BAD_REQUEST
    return FailureKind.OVERLOADED


def telling_line(error: Exception) -> str:
    """The first line that says something, without litellm's prefixes and without secrets."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[0] if lines else type(error).__name__
    while (shorter := _PREFIX.sub("", line, count=1)) != line and shorter:
        line = shorter
    return shortened(redact(line), 300)

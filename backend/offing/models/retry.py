"""Retry policy: exponential backoff with full jitter, or a provider's Retry-After.

The caller passes the time and the random number.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime

from offing.core.model import RETRYABLE_FAILURES, FailureKind

MAX_RETRY_AFTER_BEFORE_FALLBACK_SECONDS = 10.0
"""A longer Retry-After of an engine that has a fallback is not waited for."""

_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of retries. All durations are in seconds."""

    max_attempts: int = 4
    """Maximum number of requests, including the first."""
    base_seconds: float = 0.5
    """Upper bound of the first wait. It doubles with each wait."""
    max_wait_seconds: float = 20.0
    """Upper bound of every wait."""
    max_retry_after_seconds: float = 60.0
    """A longer Retry-After ends the call at once, so that the run can wait in the queue."""
    retries_timeouts: bool = True
    """Whether a request follows one that had no complete response in its time."""

    def next_wait_seconds(
        self, kind: FailureKind, failure_count: int, retry_after: float | None, draw: float
    ) -> float | None:
        """Return the seconds until the next attempt after `failure_count` failures.

        `None` means that there is no further attempt. `draw` is a random number in [0, 1).
        """
        if kind not in RETRYABLE_FAILURES or failure_count >= self.max_attempts:
            return None
        if kind is FailureKind.TIMEOUT and not self.retries_timeouts:
            return None
        jitter = draw * min(self.max_wait_seconds, self.base_seconds * 2 ** (failure_count - 1))
        if retry_after is None:
            return jitter
        return None if retry_after > self.max_retry_after_seconds else retry_after + draw * self.base_seconds


def shorten_patience(policy: RetryPolicy) -> RetryPolicy:
    """Return the policy for an engine after which a fallback is tried: the fallback is faster than a long wait."""
    seconds = min(policy.max_retry_after_seconds, MAX_RETRY_AFTER_BEFORE_FALLBACK_SECONDS)
    return replace(policy, max_retry_after_seconds=seconds, retries_timeouts=False)


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Parse a Retry-After header, in seconds or as an HTTP date, as seconds from `now`.

    `None` means that it is absent or unreadable.
    """
    if not value:
        return None
    try:
        if _NUMBER.fullmatch(value.strip()):
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return None

"""When to try again, and after how long: exponential back-off with full jitter, below a provider's own Retry-After.

The only home of the policy; knows no provider, reads no clock and draws no random number.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from offing.core.model import RETRYABLE, FailureKind

_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Seconds throughout."""

    attempts: int = 4
    """Requests in all, the first included."""
    base: float = 0.5
    """Upper end of the first wait; it doubles with each."""
    cap: float = 20.0
    """Upper end of any wait."""
    patience: float = 60.0
    """A Retry-After longer than this ends the call at once, so that the run can wait elsewhere."""

    def wait(self, kind: FailureKind, failed: int, retry_after: float | None, draw: float) -> float | None:
        """Seconds until the next attempt after `failed` failures. None: do not try again. `draw` is in [0, 1)."""
        if kind not in RETRYABLE or failed >= self.attempts:
            return None
        jitter = draw * min(self.cap, self.base * 2 ** (failed - 1))
        if retry_after is None:
            return jitter
        return None if retry_after > self.patience else retry_after + draw * self.base


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """A Retry-After header, seconds or an HTTP date, as seconds from `now`. None: absent or unreadable."""
    if not value:
        return None
    try:
        if _NUMBER.fullmatch(value.strip()):
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return None

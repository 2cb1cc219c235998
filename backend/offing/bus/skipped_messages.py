"""Reports of skipped messages.

They are written when Offing did not write the message, and contain its beginning without
secrets.
"""

import time
from collections.abc import Callable

import structlog

from offing.telemetry.redaction import redact

MAX_EXCERPT_CHARS = 120
"""Maximum length of the content in a report."""

MAX_REDACTED_CHARS = 4_000
"""Length of the part that is checked for secrets. Text after it is ignored, because a message may be very
large.
"""

REPORT_INTERVAL_SECONDS = 1.0
"""Minimum interval between two reports of one source, so that many malformed messages do not flood
the log.
"""

log = structlog.get_logger()


class SkippedMessages:
    """The malformed messages of one source: a queue, a channel or a key."""

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._clock = source, clock
        self._reported_at, self._unreported = float("-inf"), 0

    def skip(self, reason: str, content: bytes | str) -> None:
        """Report a message that is skipped for `reason`.

        If a report was written recently, count the message for the next one.
        """
        self._unreported += 1
        if self._clock() - self._reported_at < REPORT_INTERVAL_SECONDS:
            return
        log.warning(
            "malformed message skipped",
            source=self._source,
            reason=reason,
            content=render_excerpt(content),
            length=len(content),
            count=self._unreported,
        )
        self._reported_at, self._unreported = self._clock(), 0


def render_excerpt(content: bytes | str) -> str:
    """Return the beginning of a message with secrets removed and in printable characters."""
    begun = content[:MAX_REDACTED_CHARS]
    text = begun.decode("utf-8", "backslashreplace") if isinstance(begun, bytes) else begun
    return ascii(redact(text))[1:-1][:MAX_EXCERPT_CHARS]

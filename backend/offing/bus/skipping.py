"""Reporting messages that are skipped because nobody of ours wrote them. The only home of what is shown of them."""

import time
from collections.abc import Callable

import structlog

from offing.telemetry.redaction import redact

SHOWN_CHARS = 120
"""Of a message's content, at most."""

READ_CHARS = 4_000
"""Of which secrets are taken out; more is not looked at, since a message may be huge."""

REPORT_SECONDS = 1.0
"""Between two reports of one source: whoever writes many malformed messages does not fill the log."""

log = structlog.get_logger()


class SkippedMessages:
    """The malformed messages of one source: a queue, a channel or a key."""

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._clock = source, clock
        self._reported_at, self._unreported = float("-inf"), 0

    def skip(self, reason: str, content: bytes | str) -> None:
        """Report a message that is skipped for `reason`, or count it for the next report."""
        self._unreported += 1
        if self._clock() - self._reported_at < REPORT_SECONDS:
            return
        log.warning(
            "malformed message skipped",
            source=self._source,
            reason=reason,
            content=excerpt(content),
            length=len(content),
            count=self._unreported,
        )
        self._reported_at, self._unreported = self._clock(), 0


def excerpt(content: bytes | str) -> str:
    """The beginning of a message, without secrets and in printable characters."""
    begun = content[:READ_CHARS]
    text = begun.decode("utf-8", "backslashreplace") if isinstance(begun, bytes) else begun
    return ascii(redact(text))[1:-1][:SHOWN_CHARS]

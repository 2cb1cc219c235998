"""A virtual clock for tests, which advances only when a test advances it."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Seconds since a run began.

    `durations_seconds` are the durations of roles and tools by name; all others take 0.
    """

    def __init__(self, durations_seconds: dict[str, float] | None = None) -> None:
        self._takes, self.seconds = dict(durations_seconds or {}), 0.0

    def advance_for(self, name: str) -> float:
        """Advance the clock by the duration of a call of this role or tool.

        Returns that duration in seconds.
        """
        seconds = self._takes.get(name, 0.0)
        self.seconds += seconds
        return seconds

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.seconds)

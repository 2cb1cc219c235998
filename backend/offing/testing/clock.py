"""Time in a test: it passes when somebody says so."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Seconds since a run began. `takes`: how long each role or tool takes, by name; others take no time."""

    def __init__(self, takes: dict[str, float] | None = None) -> None:
        self._takes, self.seconds = dict(takes or {}), 0.0

    def pass_for(self, name: str) -> float:
        """Let the time of a call of this role or tool pass; how long that was."""
        taken = self._takes.get(name, 0.0)
        self.seconds += taken
        return taken

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.seconds)

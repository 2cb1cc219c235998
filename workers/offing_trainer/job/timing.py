"""How long the parts of a step take: the time between one thing that a job says of itself and the next.

The only home of which part each of those belongs to. Knows no job; the clock is passed in.
"""

from collections.abc import Callable

PARTS = {
    "exporting": "export",
    "exported": "register",
    "named": "register",
    "registered": "register",
    "loading": "load",
    "collecting": "ask",
    "waiting": "collect",
    "collected": "choose",
    "choosing": "choose",
    "reading": "read",
    "forward": "forward",
    "forwarded": "forward",
    "backward": "update",
    "optimiser": "update",
    "saving": "save",
    "saved": "commit",
}
"""What time after a phase was said is counted as; all else is the rest."""

REST = "rest"


class Timing:
    """Seconds by part since the figures were last taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._part, self._since = clock, REST, clock()
        self._spent: dict[str, float] = {}

    def enter(self, phase: str) -> None:
        """What the job says now; the time until it says the next thing belongs to it."""
        self._close()
        self._part = PARTS.get(phase, REST)

    def figures(self) -> dict[str, float]:
        """`seconds_PART` of each part, and `seconds_step` of all. The next ones begin where these end."""
        self._close()
        spent, self._spent = self._spent, {}
        return {f"seconds_{part}": seconds for part, seconds in spent.items()} | {"seconds_step": sum(spent.values())}

    def _close(self) -> None:
        now = self._clock()
        self._spent[self._part] = self._spent.get(self._part, 0.0) + now - self._since
        self._since = now

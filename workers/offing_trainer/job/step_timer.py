"""Timer of the parts of a training step, from one phase of the job to the next.

The clock is a parameter.
"""

from collections.abc import Callable

PHASE_PARTS = {
    "exporting": "export",
    "exported": "register",
    "named": "register",
    "registered": "register",
    "loading": "load",
    "collecting": "create_batch",
    "waiting": "collect",
    "collected": "choose",
    "choosing": "choose",
    "reading": "read",
    "forward": "forward",
    "forwarded": "forward",
    "backward": "update",
    "optimizer": "update",
    "saving": "save",
    "saved": "commit",
}
"""The part that the time after each phase counts for. All other time counts as `other`."""

OTHER = "other"


class StepTimer:
    """Accumulates seconds by part since the metrics were last taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._part, self._since = clock, OTHER, clock()
        self._spent: dict[str, float] = {}

    def enter_phase(self, phase: str) -> None:
        """Start a phase. The time until the next phase belongs to it."""
        self._end_part()
        self._part = PHASE_PARTS.get(phase, OTHER)

    def take_metrics(self) -> dict[str, float]:
        """Return `seconds_PART` of each part and `seconds_step` of all, and start again from 0."""
        self._end_part()
        spent, self._spent = self._spent, {}
        return {f"seconds_{part}": seconds for part, seconds in spent.items()} | {"seconds_step": sum(spent.values())}

    def _end_part(self) -> None:
        now = self._clock()
        self._spent[self._part] = self._spent.get(self._part, 0.0) + now - self._since
        self._since = now

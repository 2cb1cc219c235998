"""Usage that is added to the totals of a run."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class UsageDelta:
    """What a run used since its last append. The next append adds it to the run's totals."""

    turns: int = 0
    """Turns begun in all, not since the last append. 0 means that none has begun."""
    tokens: int = 0
    usd: Decimal = field(default_factory=Decimal)
    inherited: Decimal = field(default_factory=Decimal)
    """Cost of child runs. It is part of the run's total, and the tenant has been charged for it already."""
    seconds: float = 0.0
    released: Decimal = field(default_factory=Decimal)
    """Money that was reserved for calls that have ended."""
    day: date | None = None
    """Day of the reservation. `None` means that nothing was reserved."""

    def __add__(self, other: "UsageDelta") -> "UsageDelta":
        """Return both together, but for `turns`, which is a total and taken from the left one."""
        return UsageDelta(
            turns=self.turns,
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
            inherited=self.inherited + other.inherited,
            seconds=self.seconds + other.seconds,
            released=self.released + other.released,
            day=self.day or other.day,
        )

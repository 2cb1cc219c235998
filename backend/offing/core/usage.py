"""Usage that is added to the totals of a run."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class UsageDelta:
    """Usage of a run since its last append. The next append adds it to the run's totals."""

    turns: int = 0
    """Number of turns begun in total, not since the last append. 0 means that none has begun."""
    tokens: int = 0
    cost_usd: Decimal = field(default_factory=Decimal)
    child_cost_usd: Decimal = field(default_factory=Decimal)
    """Cost of child runs in USD.

    It is part of the run's total; the tenant has already been charged for it.
    """
    seconds: float = 0.0
    released_usd: Decimal = field(default_factory=Decimal)
    """USD that were reserved for calls that have ended."""
    reservation_day: date | None = None
    """Day of the reservation. `None` means that nothing was reserved."""

    def __add__(self, other: "UsageDelta") -> "UsageDelta":
        """Return the sum of both. `turns` is a total, so it is taken from the left one."""
        return UsageDelta(
            turns=self.turns,
            tokens=self.tokens + other.tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            child_cost_usd=self.child_cost_usd + other.child_cost_usd,
            seconds=self.seconds + other.seconds,
            released_usd=self.released_usd + other.released_usd,
            reservation_day=self.reservation_day or other.reservation_day,
        )

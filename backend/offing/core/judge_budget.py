"""What the judges among the scorers of a batch may use."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class JudgeBudget:
    """Limits of the calls that score the rollouts of a batch. `None` means no limit, and 0 that nothing is left."""

    max_calls: int | None = None
    """Maximum number of attempts to call a judge, also of those that fail."""
    max_cost_usd: Decimal | None = None
    """Maximum cost in USD. Calls of a model without a known price count only as calls."""

    @property
    def is_limited(self) -> bool:
        return self.max_calls is not None or self.max_cost_usd is not None

    def subtract(self, calls: int, cost_usd: Decimal) -> "JudgeBudget":
        """Return what is left after this usage."""
        return JudgeBudget(
            None if self.max_calls is None else max(0, self.max_calls - calls),
            None if self.max_cost_usd is None else max(Decimal(), self.max_cost_usd - cost_usd),
        )

    def narrow(self, other: "JudgeBudget") -> "JudgeBudget":
        """Return the smaller of each limit."""
        calls = [one for one in (self.max_calls, other.max_calls) if one is not None]
        costs = [one for one in (self.max_cost_usd, other.max_cost_usd) if one is not None]
        return JudgeBudget(min(calls, default=None), min(costs, default=None))

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of a limit."""
        return self.max_calls == 0 or self.max_cost_usd == 0


@dataclass(frozen=True, slots=True)
class JudgeUsage:
    """What judges have used, and what they may use."""

    calls: int
    """Attempts to call a judge, also those that failed."""
    cost_usd: Decimal
    """With the most that the calls which run now may cost."""
    budget: JudgeBudget


NO_JUDGE_LIMIT = JudgeBudget()

"""The usage of a run while a worker advances it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import add

from offing.core.run import RunUsage
from offing.core.step import CallKey
from offing.core.usage import UsageDelta

ZERO_USD = Decimal(0)


@dataclass(frozen=True, slots=True)
class Charge:
    """The usage that is charged with one append."""

    by_call: Mapping[CallKey, UsageDelta]
    turns: int
    seconds: float

    @property
    def total_delta(self) -> UsageDelta:
        """The sum of all usage in this charge."""
        return reduce(add, self.by_call.values(), UsageDelta(turns=self.turns, seconds=self.seconds))


class UsageLedger:
    """Totals of a run, and the usage of each call that is not charged yet.

    The usage of a call is charged with the step of the call. If it were charged with another step, it
    would be charged twice when the call is repeated after a crash. The usage of calls without a step is
    charged at the end.
    """

    def __init__(self, usage: RunUsage, monotonic: Callable[[], float]) -> None:
        self._total, self._monotonic, self._charged_at = usage, monotonic, monotonic()
        self._open: dict[CallKey, UsageDelta] = {}
        self._child_turns: dict[CallKey, int] = {}
        """Turns of child runs. After a crash before the consuming step, the next claim counts it again."""
        self._call_turns = set[CallKey]()
        """Calls that count as a turn. After a crash before its step, the next claim repeats and counts it."""
        self._without_step = set[CallKey]()
        self._open_seconds = 0.0

    @property
    def total(self) -> RunUsage:
        """Totals of the run, including usage that is not charged yet."""
        return replace(self._total, seconds=self._total.seconds + self._monotonic() - self._charged_at)

    def begin_turn(self, number: int) -> bool:
        """Count a turn. Return `False` if it was counted before a crash."""
        if number <= self._total.turns:
            return False
        self._total = replace(self._total, turns=number)
        return True

    def begin_call_turn(self, key: CallKey) -> None:
        """Count a call as a turn."""
        self._total = replace(self._total, turns=self._total.turns + 1)
        self._call_turns.add(key)
        self._add_delta(key, UsageDelta())

    def add_usage(
        self, key: CallKey, tokens: int, usd: Decimal, released: Decimal = ZERO_USD, day: date | None = None
    ) -> None:
        """Add the usage of a call, and the reservation that it releases."""
        self._total = replace(self._total, tokens=self._total.tokens + tokens, cost_usd=self._total.cost_usd + usd)
        self._add_delta(key, UsageDelta(tokens=tokens, cost_usd=usd, released_usd=released, reservation_day=day))

    def add_child_usage(self, key: CallKey, usage: RunUsage) -> None:
        """Add the usage of a child run. The call with this key consumes it."""
        mine = self._total
        self._total = RunUsage(
            mine.turns + usage.turns,
            mine.tokens + usage.tokens,
            mine.cost_usd + usage.cost_usd,
            mine.seconds + usage.seconds,
        )
        self._child_turns[key] = usage.turns
        self._add_delta(key, UsageDelta(tokens=usage.tokens, child_cost_usd=usage.cost_usd, seconds=usage.seconds))

    def detach_call(self, key: CallKey) -> None:
        """Note that a call will have no step. Its usage is charged with the next append."""
        if key in self._open:
            self._without_step.add(key)

    def take_charge(self, keys: Collection[CallKey], *, include_open_calls: bool) -> Charge:
        """Take the usage that is charged with an append of these keys.

        With `include_open_calls`, the usage of calls without a step is charged, too.
        """
        call_keys = {*keys, *self._without_step}
        if include_open_calls:
            call_keys |= self._open.keys() - self._child_turns.keys()
        self._without_step = set[CallKey]()
        taken_charges = {key: self._open.pop(key) for key in call_keys & self._open.keys()}
        later = sum(turns for key, turns in self._child_turns.items() if key in self._open)
        turns = self._total.turns - later - len(self._call_turns & self._open.keys())
        return Charge(taken_charges, turns, self._take_seconds())

    def restore_charge(self, charge: Charge) -> None:
        """Restore the charge of a failed append. A later append takes it."""
        for key, used in charge.by_call.items():
            self._add_delta(key, used)
        self._open_seconds += charge.seconds

    def _add_delta(self, key: CallKey, delta: UsageDelta) -> None:
        self._open[key] = self._open.get(key, UsageDelta()) + delta

    def _take_seconds(self) -> float:
        now = self._monotonic()
        worked, self._charged_at = now - self._charged_at, now
        self._total = replace(self._total, seconds=self._total.seconds + worked)
        seconds, self._open_seconds = self._open_seconds + worked, 0.0
        return seconds

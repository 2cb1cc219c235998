"""The usage of a run while a worker advances it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import add

from offing.core.run import Spent
from offing.core.step import CallKey
from offing.core.usage import UsageDelta

NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Charge:
    """Usage that goes with one append."""

    by_call: Mapping[CallKey, UsageDelta]
    turns: int
    seconds: float

    @property
    def delta(self) -> UsageDelta:
        """Return all of it together."""
        return reduce(add, self.by_call.values(), UsageDelta(turns=self.turns, seconds=self.seconds))


class UsageLedger:
    """Totals of a run, and the usage of each call that no append has taken along yet.

    What a call used is charged with the call's own step. With another's, the worker that makes the call anew after a
    loss would charge it again. What never gets a step is charged at the end.
    """

    def __init__(self, spent: Spent, monotonic: Callable[[], float]) -> None:
        self._spent, self._monotonic, self._charged_at = spent, monotonic, monotonic()
        self._open: dict[CallKey, UsageDelta] = {}
        self._child_turns: dict[CallKey, int] = {}
        """Turns of child runs. Without the step that consumes it, a child is counted by the next claim."""
        self._own_turns = set[CallKey]()
        """Calls that are a turn each. Without its step, the next claim makes such a call again and counts it then."""
        self._without_step = set[CallKey]()
        self._open_seconds = 0.0

    @property
    def spent(self) -> Spent:
        """Totals of the run, with what no append has taken along yet."""
        return replace(self._spent, seconds=self._spent.seconds + self._monotonic() - self._charged_at)

    def begin_turn(self, number: int) -> bool:
        """Count a turn. Return `False` if it was counted before a loss."""
        if number <= self._spent.turns:
            return False
        self._spent = replace(self._spent, turns=number)
        return True

    def begin_own_turn(self, key: CallKey) -> None:
        """Count a call as a turn."""
        self._spent = replace(self._spent, turns=self._spent.turns + 1)
        self._own_turns.add(key)
        self._note(key, UsageDelta())

    def add(
        self, key: CallKey, tokens: int, usd: Decimal, released: Decimal = NOTHING, day: date | None = None
    ) -> None:
        """Add what a call used, and what had been reserved for it."""
        self._spent = replace(self._spent, tokens=self._spent.tokens + tokens, usd=self._spent.usd + usd)
        self._note(key, UsageDelta(tokens=tokens, usd=usd, released=released, day=day))

    def add_child(self, key: CallKey, spent: Spent) -> None:
        """Add what a child run used. The call with this key consumes it."""
        mine = self._spent
        self._spent = Spent(
            mine.turns + spent.turns, mine.tokens + spent.tokens, mine.usd + spent.usd, mine.seconds + spent.seconds
        )
        self._child_turns[key] = spent.turns
        self._note(key, UsageDelta(tokens=spent.tokens, inherited=spent.usd, seconds=spent.seconds))

    def give_up(self, key: CallKey) -> None:
        """A call will have no step, while its node may continue. What it used goes with the next append."""
        if key in self._open:
            self._without_step.add(key)

    def take(self, keys: Collection[CallKey], *, everything: bool) -> Charge:
        """Take what goes with an append of these keys. `everything`: also what calls without a step used."""
        wanted = {*keys, *self._without_step}
        if everything:
            wanted |= self._open.keys() - self._child_turns.keys()
        self._without_step = set[CallKey]()
        taken = {key: self._open.pop(key) for key in wanted & self._open.keys()}
        later = sum(turns for key, turns in self._child_turns.items() if key in self._open)
        turns = self._spent.turns - later - len(self._own_turns & self._open.keys())
        return Charge(taken, turns, self._take_seconds())

    def give_back(self, charge: Charge) -> None:
        """A failed append did not write it; a later one takes it along."""
        for key, used in charge.by_call.items():
            self._note(key, used)
        self._open_seconds += charge.seconds

    def _note(self, key: CallKey, used: UsageDelta) -> None:
        self._open[key] = self._open.get(key, UsageDelta()) + used

    def _take_seconds(self) -> float:
        now = self._monotonic()
        worked, self._charged_at = now - self._charged_at, now
        self._spent = replace(self._spent, seconds=self._spent.seconds + worked)
        seconds, self._open_seconds = self._open_seconds + worked, 0.0
        return seconds

"""The budget of a run: when it stops, and what each attempt of a role call may use."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Protocol

from offing.core.model import Usage
from offing.core.run import Budget, Spent, StopReason, exhausted
from offing.core.step import CallKey
from offing.finishing import finished
from offing.kernel.store import SpendingStore
from offing.kernel.usage import NOTHING, UsageLedger


class RunControls(Protocol):
    """What people and clocks want of a run while it is advanced."""

    def forced_stop(self) -> StopReason | None:
        """Return why the run should write its report now. `None` means that it may continue."""
        ...

    def turn_begun(self) -> None:
        """A turn has begun that was not counted before."""
        ...


class RunBudget:
    """The budget of one claim's run. `check_open`: raises when the graph's calls are over."""

    def __init__(
        self,
        limits: Budget,
        usage: UsageLedger,
        store: SpendingStore,
        controls: RunControls,
        check_open: Callable[[], None],
    ) -> None:
        self.limits, self.usage, self.store, self.check_open = limits, usage, store, check_open
        self.controls = controls
        self.reservations = OpenReservations()

    @property
    def spent(self) -> Spent:
        return self.usage.spent

    @property
    def seconds_left(self) -> float | None:
        """Seconds of work that are left. `None` means no limit."""
        limit = self.limits.seconds
        return None if limit is None else max(0.0, limit - self.spent.seconds)

    def stop_reason(self) -> StopReason | None:
        """Return why the run should stop collecting. A turn that has begun may end."""
        spent = self.spent
        return self.controls.forced_stop() or exhausted(replace(spent, turns=spent.turns - 1), self.limits)

    def begin_turn(self, number: int) -> None:
        """Count a turn, unless it was counted before a loss."""
        self.check_open()
        if self.usage.begin_turn(number):
            self.controls.turn_begun()

    def begin_own_turn(self, key: CallKey) -> StopReason | None:
        """Begin a turn that is one call. Return why there is no room for it; `None` means that it has begun."""
        if reason := self.stop_reason() or exhausted(self.spent, self.limits):
            return reason
        self.check_open()
        self.usage.begin_own_turn(key)
        self.controls.turn_begun()
        return None

    def meter(self, key: CallKey) -> "CallMeter":
        """Return the meter of one role call."""
        return CallMeter(self, key)

    def find_exceeded(
        self, tokens: int, usd: Decimal, beside_tokens: int = 0, beside_usd: Decimal = NOTHING
    ) -> StopReason | None:
        """Return the limit that leaves no room for this much more. `None` means that all do."""
        self.check_open()
        spent, limits = self.spent, self.limits
        if limits.tokens is not None and spent.tokens + beside_tokens + tokens > limits.tokens:
            return StopReason.TOKEN_LIMIT
        if limits.usd is not None and spent.usd + beside_usd + usd > limits.usd:
            return StopReason.SPEND_LIMIT
        if limits.seconds is not None and spent.seconds >= limits.seconds:
            return StopReason.TIME_LIMIT
        return None


class OpenReservations:
    """The maximum that the calls under way in one claim may use."""

    def __init__(self) -> None:
        self.count, self.tokens, self.usd = 0, 0, NOTHING
        self._settled = asyncio.Event()

    def open(self, tokens: int, usd: Decimal) -> None:
        self.count, self.tokens, self.usd = self.count + 1, self.tokens + tokens, self.usd + usd

    def settle(self, tokens: int, usd: Decimal) -> None:
        self.count, self.tokens, self.usd = self.count - 1, self.tokens - tokens, self.usd - usd
        self._settled.set()
        self._settled = asyncio.Event()

    async def next_settled(self) -> None:
        """Wait until one of them is settled."""
        await self._settled.wait()


class CallMeter:
    """The meter of one role call. Attempts follow one another, so at most one reservation is open."""

    def __init__(self, budget: RunBudget, key: CallKey) -> None:
        self._budget, self._key, self._open = budget, key, (0, NOTHING)
        self._reserved = NOTHING
        self._day: date | None = None
        """Day of the open reservation. `None` means today."""

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        """Reserve what the next attempt may use at most. Return the limit in its way; `None` means that it may be made.

        Waits while the budget has room for it, but not beside the calls that are under way in other branches.
        """
        beside = self._budget.reservations
        while reason := self._budget.find_exceeded(tokens, usd, beside.tokens, beside.usd):
            if not beside.count or self._budget.find_exceeded(tokens, usd):
                return reason
            await beside.next_settled()
        self._open = tokens, usd
        beside.open(tokens, usd)
        granted = False
        try:
            granted = usd == NOTHING or await finished(self._reserve(usd))
        finally:
            if not granted:
                self._close(Usage())
        return None if granted else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        """Add what the attempt used, which may be nothing. It is charged with the call's own step, so once."""
        self._close(usage)

    def _close(self, usage: Usage) -> None:
        released, self._reserved = self._reserved, NOTHING
        self._budget.usage.add(self._key, usage.tokens, usage.usd, released, self._day)
        self._budget.reservations.settle(*self._open)

    async def _reserve(self, usd: Decimal) -> bool:
        day = await self._budget.store.reserve(usd)
        if day is None:
            return False
        self._budget.check_open()  # over meanwhile, its epoch takes the reservation along
        self._reserved, self._day = usd, day
        return True

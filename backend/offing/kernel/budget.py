"""The budget of a run: when the run stops, and how much each attempt of a role call may use."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Protocol

from offing.cancellation import run_to_completion
from offing.core.model import Usage
from offing.core.run import Budget, RunUsage, StopReason, find_exhausted_limit
from offing.core.step import CallKey
from offing.kernel.run_store import SpendingStore
from offing.kernel.usage import ZERO_USD, UsageLedger


class RunControls(Protocol):
    """External reasons to stop a run while it is advanced: control requests and deadlines."""

    def forced_stop_reason(self) -> StopReason | None:
        """Return why the run must write its report now. `None` means that it may continue."""
        ...

    def on_turn_begin(self) -> None:
        """Handle the beginning of a turn that has not been counted yet."""
        ...


class RunBudget:
    """The budget of one claimed run. `check_open` raises when the calls of the graph have ended."""

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
    def run_usage(self) -> RunUsage:
        return self.usage.total

    @property
    def seconds_left(self) -> float | None:
        """Remaining working time in seconds. `None` means no limit."""
        limit = self.limits.max_seconds
        return None if limit is None else max(0.0, limit - self.run_usage.seconds)

    def stop_reason(self) -> StopReason | None:
        """Return why the run should stop collecting. A turn that has begun may end."""
        spent = self.run_usage
        return self.controls.forced_stop_reason() or find_exhausted_limit(
            replace(spent, turns=spent.turns - 1), self.limits
        )

    def begin_turn(self, number: int) -> None:
        """Count a turn, unless it was counted before a worker crash."""
        self.check_open()
        if self.usage.begin_turn(number):
            self.controls.on_turn_begin()

    def begin_call_turn(self, key: CallKey) -> StopReason | None:
        """Begin a turn that consists of one call.

        Return the reason if the budget does not allow the turn. `None` means that the turn has begun.
        """
        if reason := self.stop_reason() or find_exhausted_limit(self.run_usage, self.limits):
            return reason
        self.check_open()
        self.usage.begin_call_turn(key)
        self.controls.on_turn_begin()
        return None

    def create_meter(self, key: CallKey) -> "CallMeter":
        """Return the usage meter of one role call."""
        return CallMeter(self, key)

    def find_exceeded_limit(
        self, tokens: int, usd: Decimal, reserved_tokens: int = 0, reserved_usd: Decimal = ZERO_USD
    ) -> StopReason | None:
        """Return the limit that this additional usage would exceed. `None` means that no limit is exceeded."""
        self.check_open()
        spent, limits = self.run_usage, self.limits
        if limits.max_tokens is not None and spent.tokens + reserved_tokens + tokens > limits.max_tokens:
            return StopReason.TOKEN_LIMIT
        if limits.max_cost_usd is not None and spent.cost_usd + reserved_usd + usd > limits.max_cost_usd:
            return StopReason.SPEND_LIMIT
        if limits.max_seconds is not None and spent.seconds >= limits.max_seconds:
            return StopReason.TIME_LIMIT
        return None


class OpenReservations:
    """The maximum usage of the calls in progress in one claim."""

    def __init__(self) -> None:
        self.count, self.tokens, self.usd = 0, 0, ZERO_USD
        self._settled_event = asyncio.Event()

    def add(self, tokens: int, usd: Decimal) -> None:
        self.count, self.tokens, self.usd = self.count + 1, self.tokens + tokens, self.usd + usd

    def remove(self, tokens: int, usd: Decimal) -> None:
        self.count, self.tokens, self.usd = self.count - 1, self.tokens - tokens, self.usd - usd
        self._settled_event.set()
        self._settled_event = asyncio.Event()

    async def wait_until_settled(self) -> None:
        """Wait until one of the open reservations is settled."""
        await self._settled_event.wait()


class CallMeter:
    """The usage meter of one role call.

    Its attempts follow one another, so at most one reservation is open at a time.
    """

    def __init__(self, budget: RunBudget, key: CallKey) -> None:
        self._budget, self._key, self._open_maximum = budget, key, (0, ZERO_USD)
        self._reserved = ZERO_USD
        self._day: date | None = None
        """Day of the open reservation. `None` means today."""

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        """Reserve the maximum usage of the next attempt.

        Return the limit that forbids the attempt. `None` means that the attempt may be made. If the budget
        has room for the attempt, but not while other branches have calls in progress, wait until one of
        these is settled.
        """
        beside = self._budget.reservations
        while reason := self._budget.find_exceeded_limit(max_tokens, max_cost_usd, beside.tokens, beside.usd):
            if not beside.count or self._budget.find_exceeded_limit(max_tokens, max_cost_usd):
                return reason
            await beside.wait_until_settled()
        self._open_maximum = max_tokens, max_cost_usd
        beside.add(max_tokens, max_cost_usd)
        granted = False
        try:
            granted = max_cost_usd == ZERO_USD or await run_to_completion(self._reserve_usd(max_cost_usd))
        finally:
            if not granted:
                self._settle_reservation(Usage())
        return None if granted else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        """Settle the reservation with the usage of the attempt, which may be zero.

        The usage is charged once, with the step of the call.
        """
        self._settle_reservation(usage)

    def _settle_reservation(self, usage: Usage) -> None:
        released, self._reserved = self._reserved, ZERO_USD
        self._budget.usage.add_usage(self._key, usage.tokens, usage.cost_usd, released, self._day)
        self._budget.reservations.remove(*self._open_maximum)

    async def _reserve_usd(self, usd: Decimal) -> bool:
        day = await self._budget.store.reserve(usd)
        if day is None:
            return False
        self._budget.check_open()  # if the epoch has ended meanwhile, the reservation is released with it
        self._reserved, self._day = usd, day
        return True

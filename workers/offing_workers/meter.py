"""What a call may cost: the run's budget and the tenant's cap, asked before each attempt and booked after it."""

import asyncio
from datetime import date
from decimal import Decimal

from offing.core.model import Usage
from offing.core.run import Budget, StopReason
from offing.core.step import CallKey
from offing.finishing import finished
from offing.storage import spend
from offing.storage.pool import Database
from offing_workers.recorder import NOTHING, Recorder


class OpenReservations:
    """What the calls that a claim has under way may use of the run's budget at most."""

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
        """Wait until one of them is over."""
        await self._settled.wait()


class RunMeter:
    """The meter of one role call. Attempts follow one another, so at most one reservation is open."""

    def __init__(
        self, database: Database, recorder: Recorder, budget: Budget, key: CallKey, beside: OpenReservations
    ) -> None:
        """`beside`: the reservations of the claim, this call's among them."""
        self._database, self._recorder, self._budget, self._key = database, recorder, budget, key
        self._beside, self._open = beside, (0, NOTHING)
        self._reserved = NOTHING
        self._day: date | None = None
        """Of the open reservation. None: today."""

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        """Set aside what the next attempt may use at most. A reason: it must not be made.

        Waits while the budget has room for it, but not beside the calls that are under way in other branches.
        """
        while reason := self._without_room(tokens, usd, self._beside.tokens, self._beside.usd):
            if not self._beside.count or self._without_room(tokens, usd):
                return reason
            await self._beside.next_settled()
        self._open = tokens, usd
        self._beside.open(tokens, usd)
        granted = False
        try:
            granted = usd == NOTHING or await finished(self._set_aside(usd))
        finally:
            if not granted:
                self._close(Usage())
        return None if granted else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        """Book what the attempt used, nothing included. It is written with the call's own step, so once."""
        self._close(usage)

    def _close(self, usage: Usage) -> None:
        released, self._reserved = self._reserved, NOTHING
        self._recorder.book(self._key, usage.tokens, usage.usd, released, self._day)
        self._beside.settle(*self._open)

    def _without_room(
        self, tokens: int, usd: Decimal, beside_tokens: int = 0, beside_usd: Decimal = NOTHING
    ) -> StopReason | None:
        """Why the budget has no room for so much more. None: it has."""
        self._recorder.check()
        spent, budget = self._recorder.spent, self._budget
        if budget.tokens is not None and spent.tokens + beside_tokens + tokens > budget.tokens:
            return StopReason.TOKEN_LIMIT
        if budget.usd is not None and spent.usd + beside_usd + usd > budget.usd:
            return StopReason.SPEND_LIMIT
        if budget.seconds is not None and spent.seconds >= budget.seconds:
            return StopReason.TIME_LIMIT
        return None

    async def _set_aside(self, usd: Decimal) -> bool:
        fence = self._recorder.fence
        async with self._database.transaction(fence.tenant) as connection:
            day = await spend.reserve(connection, fence, usd)
        if day is None:
            return False
        self._recorder.check()  # over meanwhile, its epoch takes the reservation along
        self._reserved, self._day = usd, day
        return True

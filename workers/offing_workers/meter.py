"""What a call may cost: the run's budget and the tenant's cap, asked before each attempt and booked after it."""

import asyncio
import time
from datetime import date
from decimal import Decimal

import structlog

from offing.core.errors import Unavailable
from offing.core.model import Usage
from offing.core.run import Budget, StopReason
from offing.storage import spend
from offing.storage.pool import Database
from offing_workers.recorder import RETRY_PAUSE, Recorder

NOTHING = Decimal(0)

log = structlog.get_logger()


class RunMeter:
    """The meter of one role call. Attempts follow one another, so at most one reservation is open."""

    def __init__(self, database: Database, recorder: Recorder, budget: Budget) -> None:
        self._database, self._recorder, self._budget = database, recorder, budget
        self._reserved = NOTHING
        self._day: date | None = None
        """Of the open reservation. None: today."""

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        """Set aside what the next attempt may use at most. A reason: it must not be made."""
        spent, budget = self._recorder.spent, self._budget
        if budget.tokens is not None and spent.tokens + tokens > budget.tokens:
            return StopReason.TOKEN_LIMIT
        if budget.usd is not None and spent.usd + usd > budget.usd:
            return StopReason.SPEND_LIMIT
        if budget.seconds is not None and spent.seconds >= budget.seconds:
            return StopReason.TIME_LIMIT
        return None if usd == NOTHING or await self._set_aside(usd) else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        """Book what the attempt used, nothing included."""
        self._recorder.book(usage.tokens, usage.usd)
        reserved, self._reserved = self._reserved, NOTHING
        if reserved or usage.usd:
            await self._settle(reserved, usage.usd)

    async def _settle(self, reserved: Decimal, used: Decimal) -> None:
        """Tried for as long as a lease lasts; then the answer, which is paid, counts for more than the day's total."""
        fence, give_up = self._recorder.fence, time.monotonic() + self._recorder.term
        while True:
            try:
                async with self._database.transaction(fence.tenant) as connection:
                    return await spend.settle(connection, fence, reserved, used, self._day)
            except Unavailable:
                if time.monotonic() > give_up:
                    return log.error("not booked on the tenant's day", usd=str(used), still_set_aside=str(reserved))
                await asyncio.sleep(RETRY_PAUSE)

    async def _set_aside(self, usd: Decimal) -> bool:
        fence = self._recorder.fence
        async with self._database.transaction(fence.tenant) as connection:
            day = await spend.reserve(connection, fence, usd)
        if day is None:
            return False
        self._reserved, self._day = usd, day
        return True

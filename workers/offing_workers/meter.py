"""What a call may cost: the run's budget and the tenant's cap, asked before each attempt and booked after it."""

from datetime import date
from decimal import Decimal

from offing.core.model import Usage
from offing.core.run import Budget, StopReason
from offing.core.step import CallKey
from offing.storage import spend
from offing.storage.pool import Database
from offing_workers.recorder import NOTHING, Recorder


class RunMeter:
    """The meter of one role call. Attempts follow one another, so at most one reservation is open."""

    def __init__(self, database: Database, recorder: Recorder, budget: Budget, key: CallKey) -> None:
        self._database, self._recorder, self._budget, self._key = database, recorder, budget, key
        self._reserved = NOTHING
        self._day: date | None = None
        """Of the open reservation. None: today."""

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        """Set aside what the next attempt may use at most. A reason: it must not be made."""
        self._recorder.check()
        spent, budget = self._recorder.spent, self._budget
        if budget.tokens is not None and spent.tokens + tokens > budget.tokens:
            return StopReason.TOKEN_LIMIT
        if budget.usd is not None and spent.usd + usd > budget.usd:
            return StopReason.SPEND_LIMIT
        if budget.seconds is not None and spent.seconds >= budget.seconds:
            return StopReason.TIME_LIMIT
        return None if usd == NOTHING or await self._set_aside(usd) else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        """Book what the attempt used, nothing included. It is written with the call's own step, so once."""
        released, self._reserved = self._reserved, NOTHING
        self._recorder.book(self._key, usage.tokens, usage.usd, released, self._day)

    async def _set_aside(self, usd: Decimal) -> bool:
        fence = self._recorder.fence
        async with self._database.transaction(fence.tenant) as connection:
            day = await spend.reserve(connection, fence, usd)
        if day is None:
            return False
        self._recorder.check()  # over meanwhile, its epoch takes the reservation along
        self._reserved, self._day = usd, day
        return True

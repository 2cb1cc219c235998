"""Metering of the calls that score the rollouts of a batch: the batch's judge budget and the tenant's daily limit."""

from decimal import Decimal
from uuid import UUID

from offing.core.model import Usage
from offing.core.run import StopReason
from offing.services.tenant_meter import TenantMeter
from offing.storage import judge_budgets
from offing.storage.pool import Database


class JudgeMeter:
    """Usage meter for the judges of one rollout.

    The reservation of a call that never ends, because its worker crashed, stays charged to the batch.
    """

    def __init__(self, database: Database, tenant_id: UUID, batch_id: UUID) -> None:
        self._database, self._tenant, self._batch = database, tenant_id, batch_id
        self._tenant_meter = TenantMeter(database, tenant_id)
        self._reserved: list[Decimal] = []
        self.is_spent = False
        """Whether the batch's budget had no room for a call."""

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        if (denied := await self._tenant_meter.reserve(max_tokens, max_cost_usd)) is not None:
            return denied
        async with self._database.transaction(self._tenant) as connection:
            is_reserved = await judge_budgets.reserve_call(connection, self._batch, max_cost_usd)
        if not is_reserved:
            self.is_spent = True
            return StopReason.SPEND_LIMIT
        self._reserved.append(max_cost_usd)
        return None

    async def settle(self, usage: Usage) -> None:
        await self._tenant_meter.settle(usage)
        # Which reservation ends does not matter, because only their sum is stored.
        if correction := usage.cost_usd - self._reserved.pop():
            async with self._database.transaction(self._tenant) as connection:
                await judge_budgets.settle_call(connection, self._batch, correction)

"""Metering of engine calls that belong to no run, such as those of judges and distillation jobs."""

from decimal import Decimal
from uuid import UUID

from offing.core.model import Usage
from offing.core.run import StopReason
from offing.storage import daily_spend
from offing.storage.pool import Database


class TenantMeter:
    """Usage meter for engine calls outside of runs. Only the tenant's daily spending limit applies."""

    def __init__(self, database: Database, tenant_id: UUID) -> None:
        self._database, self._tenant = database, tenant_id

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        if not max_cost_usd:
            return None
        async with self._database.transaction(self._tenant) as connection:
            can_spend = await daily_spend.can_spend(connection, self._tenant, max_cost_usd)
        return None if can_spend else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        if usage.cost_usd:
            async with self._database.transaction(self._tenant) as connection:
                await daily_spend.charge(connection, self._tenant, usage.cost_usd)

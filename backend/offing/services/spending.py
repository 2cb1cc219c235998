"""What a tenant spent, beside its daily limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.storage import spending, tenants
from offing.storage.pool import Database
from offing.storage.spending import DaySpending, ModelSpending
from offing.storage.tenants import TenantRow


@dataclass(frozen=True, slots=True)
class Spending:
    """Spending of the last days of a tenant."""

    tenant: TenantRow
    days: Sequence[DaySpending]
    """Each day including today, oldest first. Days are those of Postgres' time zone, UTC unless it was changed."""
    models: Sequence[ModelSpending]


async def get_spending(database: Database, tenant_id: UUID, days: int) -> Spending:
    """Return what was spent in the last `days` days, at most `spending.MAX_DAYS`."""
    async with database.transaction(tenant_id) as connection:
        tenant = await tenants.get_tenant(connection, tenant_id)
        return Spending(
            tenant, await spending.list_days(connection, days), await spending.list_models(connection, days)
        )

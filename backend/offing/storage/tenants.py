"""Tenants and their settings."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from offing.storage.pool import Connection

GET_TENANT = """
    select name, training_opt_in, max_daily_spend_usd, default_preset,
           coalesce((select used_usd from daily_spend where tenant_id = tenant.id and day = current_date), 0)
      from tenant where id = %s
"""

GET_DEFAULT_PRESET = "select default_preset from tenant where id = %s"

CHECK_NO_DEFAULT_PRESET = "select 1 / (default_preset is null)::int from tenant where id = %s"

SET_TRAINING_OPT_IN = "update tenant set training_opt_in = %s where id = %s"

SET_MAX_DAILY_SPEND = "update tenant set max_daily_spend_usd = %s where id = %s"

SET_DEFAULT_PRESET = "update tenant set default_preset = %s where id = %s"


@dataclass(frozen=True, slots=True)
class TenantRow:
    name: str
    training_opt_in: bool
    max_daily_spend_usd: Decimal | None
    """Set the daily spending limit. `None` means no limit."""
    default_preset: str | None
    """Preset of new questions that name neither a preset nor an engine. `None` means none."""
    spent_today_usd: Decimal


async def get_tenant(connection: Connection, tenant_id: UUID) -> TenantRow:
    row = await (await connection.execute(GET_TENANT, (tenant_id,))).fetchone()
    assert row is not None, "the transaction's tenant exists"
    return TenantRow(*row)


async def find_default_preset(connection: Connection, tenant_id: UUID) -> str | None:
    """Return the preset of new questions. `None` means that there is none."""
    row = await (await connection.execute(GET_DEFAULT_PRESET, (tenant_id,))).fetchone()
    assert row is not None, "the transaction's tenant exists"
    return row[0]


async def send_default_preset_check(connection: Connection, tenant_id: UUID) -> None:
    """Let the transaction fail if there is a default preset (`Assumptions.check`)."""
    await connection.execute(CHECK_NO_DEFAULT_PRESET, (tenant_id,))


async def set_training_opt_in(connection: Connection, tenant_id: UUID, opt_in: bool) -> None:
    await connection.execute(SET_TRAINING_OPT_IN, (opt_in, tenant_id))


async def set_max_daily_spend(connection: Connection, tenant_id: UUID, max_daily_spend_usd: Decimal | None) -> None:
    """Set the daily spending limit. `None` means no limit."""
    await connection.execute(SET_MAX_DAILY_SPEND, (max_daily_spend_usd, tenant_id))


async def set_default_preset(connection: Connection, tenant_id: UUID, name: str | None) -> None:
    """Set the preset of new questions. `None` means none."""
    await connection.execute(SET_DEFAULT_PRESET, (name, tenant_id))

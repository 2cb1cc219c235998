"""Test a stored provider: what works with one of its models, and what it costs."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from offing import environment
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineFailure
from offing.models.provider_probe import ProbeResult, probe_provider
from offing.services.providers import decrypt_provider
from offing.services.tenant_meter import TenantMeter
from offing.storage import providers
from offing.storage.pool import Database
from offing.telemetry.redaction import bind_secrets, remember_secret

DEFAULT_MAX_COST_USD = Decimal("0.05")
"""Maximum cost of a test. Four calls of a usual model cost less than a cent."""
MAX_COST_USD = Decimal(1)
"""Largest cap that a test accepts."""


async def run_provider_test(
    database: Database,
    tenant_id: UUID,
    name: str,
    model: str,
    max_cost_usd: Decimal = DEFAULT_MAX_COST_USD,
    env: Mapping[str, str] = environment.VARIABLES,
) -> Mapping[str, Any]:
    """Try a model of a stored provider, store the result with the provider, and return it as it is stored.

    The calls are limited by `max_cost_usd`, by the tenant's daily spending limit, and to about 100 s. Raises NotFound,
    InvalidInput for a cap that is too large, and Conflict if the provider cannot be called at all.
    """
    if not 0 <= max_cost_usd <= MAX_COST_USD:
        raise InvalidInput("max_cost_usd", f"{max_cost_usd} is out of range", f"Use 0 to {MAX_COST_USD}.")
    async with database.transaction(tenant_id) as connection:
        row = await providers.get_provider(connection, name)
    with bind_secrets():
        provider = decrypt_provider(tenant_id, row, env)
        if isinstance(provider, EngineFailure):
            raise Conflict(provider.message, "Then test it again.")
        remember_secret(provider.api_key)
        result = await probe_provider(model, provider, env, TenantMeter(database, tenant_id), max_cost_usd)
    if isinstance(result, EngineFailure):
        raise Conflict(result.message, "Then test it again.")
    described = describe_result(result, datetime.now(UTC))
    async with database.transaction(tenant_id) as connection:
        await providers.set_last_test(connection, row, described)
    return described


def describe_result(result: ProbeResult, tested_at: datetime) -> dict[str, Any]:
    """Return the result of a test as it is stored."""
    return {
        "model": result.model,
        "tested_at": tested_at.isoformat(),
        "seconds": result.seconds,
        "cost_usd": float(result.usage.cost_usd),
        "priced": result.usage.priced,
        "tokens": result.usage.tokens,
        "capabilities": [asdict(one) for one in result.capabilities],
    }

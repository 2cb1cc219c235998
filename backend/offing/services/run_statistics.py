"""What runs of a tenant took and cost, for a person who is about to ask."""

from collections.abc import Sequence
from uuid import UUID

from offing.storage import run_statistics
from offing.storage.pool import Database
from offing.storage.run_statistics import RunStatistics


async def list_run_statistics(database: Database, tenant_id: UUID, graphs: Sequence[str]) -> list[RunStatistics]:
    """Return statistics of the tenant's ended runs of these graphs. A graph without such runs is left out."""
    async with database.transaction(tenant_id) as connection:
        return await run_statistics.list_run_statistics(connection, graphs)

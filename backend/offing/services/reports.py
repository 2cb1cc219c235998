"""The report of a run."""

from uuid import UUID

from offing.storage import reports
from offing.storage.pool import Database
from offing.storage.reports import VerifiedReport


async def get_report(database: Database, tenant_id: UUID, run_id: UUID, version: int | None = None) -> VerifiedReport:
    """Return a version of a run's report with freshly verified citations.

    If `version` is `None`, it is the latest. Raises NotFound.
    """
    async with database.transaction(tenant_id) as connection:
        return await reports.get_verified_report(connection, run_id, version)

"""The report of a run, with what is computed of it whenever it is shown."""

import asyncio
from dataclasses import dataclass
from uuid import UUID

from offing.core.claim_table import ClaimAnalysis, analyze_claims
from offing.storage import reports
from offing.storage.pool import Database
from offing.storage.reports import VerifiedReport


@dataclass(frozen=True, slots=True)
class AnalyzedReport:
    """A version of a report with its claims and conflicts, which are computed once for all that shows them."""

    stored: VerifiedReport
    analysis: ClaimAnalysis


async def get_report(database: Database, tenant_id: UUID, run_id: UUID, version: int | None = None) -> AnalyzedReport:
    """Return a version of a run's report with freshly verified citations.

    If `version` is `None`, it is the latest. Raises NotFound.
    """
    async with database.transaction(tenant_id) as connection:
        stored = await reports.get_verified_report(connection, run_id, version)
    return await analyze_report(stored)


async def analyze_report(stored: VerifiedReport) -> AnalyzedReport:
    """Return a report with its claims and conflicts. They are computed beside the event loop."""
    return AnalyzedReport(stored, await asyncio.to_thread(analyze_claims, stored.report))

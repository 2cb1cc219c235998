"""Ratings of reports and their sentences by people.

They are rewards with their origin and are never overwritten.
"""

from uuid import UUID

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.storage import reports, rewards, run_summaries
from offing.storage.pool import Database
from offing.storage.rewards import RewardRow


async def rate_report(
    database: Database,
    tenant_id: UUID,
    run_id: UUID,
    *,
    person: str,
    sentence_id: str | None,
    value: float | None,
    correction: str,
    version: int | None = None,
) -> RewardRow:
    """Record a rating of a version of a run's report or of one of its sentences.

    If `version` is `None`, it is the latest. `value` is -1 to 1; `None` means that there is only a correction. Raises
    NotFound without a report, and InvalidInput for an empty rating or an unknown sentence.
    """
    if value is None and not correction.strip():
        raise InvalidInput("value", "the rating is empty", "Send a value from -1 to 1, a correction, or both.")
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        read = await reports.get_verified_report(connection, run_id, version)
        if sentence_id is not None and sentence_id not in {s.id for s in read.report.sentences()}:
            raise InvalidInput(
                "sentence_id",
                f"version {read.version} of the report has no such sentence",
                "Use the id of a sentence in the report.",
            )
        return await rewards.insert_rating(
            connection, tenant_id, rating_id=new_id(), run_id=run_id, report_version=read.version,
            sentence_id=sentence_id, scorer=f"person:{person}",
            value=value, correction=correction.strip(),
        )  # fmt: skip


async def list_ratings_of_run(database: Database, tenant_id: UUID, run_id: UUID) -> list[RewardRow]:
    """List every version of every rating of a run, newest first. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        return await rewards.list_ratings_of_run(connection, run_id)

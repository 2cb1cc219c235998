"""What people say about reports and their sentences: rewards with their origin, none ever overwritten."""

from uuid import UUID

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.storage import reports_read, rewards, views
from offing.storage.pool import Database
from offing.storage.rewards import RewardRow


async def rate(
    database: Database,
    tenant: UUID,
    run: UUID,
    *,
    person: str,
    claim: str | None,
    value: float | None,
    correction: str,
) -> RewardRow:
    """Record an opinion on the latest report of a run, or on one of its sentences.

    `value` -1 to 1; None: only a correction. Raises NotFound without a report, InvalidInput for an empty opinion or an
    unknown sentence.
    """
    if value is None and not correction.strip():
        raise InvalidInput("value", "the rating is empty", "Send a value from -1 to 1, a correction, or both.")
    async with database.transaction(tenant) as connection:
        await views.status(connection, run)
        read = await reports_read.read(connection, run)
        if claim is not None and claim not in {s.id for s in read.report.sentences()}:
            raise InvalidInput(
                "claim",
                f"version {read.version} of the report has no such sentence",
                "Use a sentence id of the report.",
            )
        return await rewards.add(
            connection, tenant, id=new_id(), run=run, report=read.version, claim=claim, scorer=f"person:{person}",
            value=value, correction=correction.strip(),
        )  # fmt: skip


async def of_run(database: Database, tenant: UUID, run: UUID) -> list[RewardRow]:
    """Every version of every opinion, newest first. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await views.status(connection, run)
        return await rewards.of_run(connection, run)

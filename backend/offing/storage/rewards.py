"""What people and scorers said about reports. Rows are never changed: a new opinion is a new version."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

LOCK = "select 1 from report where run_id = %s and version = %s for update"
"""One opinion at a time on a report, so that versions count up."""

COLUMNS = "id, run_id as run, report, nullif(claim, '') as claim, scorer, version, value, correction, created_at"

ADD = f"""
    insert into reward (id, tenant_id, run_id, target, claim, report, scorer, version, value, correction)
    select %(id)s, %(tenant)s, %(run)s, %(target)s, %(claim)s, %(report)s, %(scorer)s, coalesce(max(version), 0) + 1,
           %(value)s, %(correction)s
      from reward where run_id = %(run)s and target = %(target)s and claim = %(claim)s and scorer = %(scorer)s
    returning {COLUMNS}
"""

LIST = f"select {COLUMNS} from reward where run_id = %s order by created_at desc, id desc"


@dataclass(frozen=True, slots=True)
class RewardRow:
    """A score with its origin."""

    id: UUID
    run: UUID
    report: int
    """Version of the report it is about."""
    claim: str | None
    """Sentence id. None: the whole report."""
    scorer: str
    version: int
    value: float | None
    """-1 to 1. None: only a correction."""
    correction: str
    created_at: datetime


async def add(
    connection: Connection,
    tenant: UUID,
    *,
    id: UUID,
    run: UUID,
    report: int,
    claim: str | None,
    scorer: str,
    value: float | None,
    correction: str,
) -> RewardRow:
    """Store an opinion as the next version of what this scorer says about this report or sentence."""
    values = {
        "id": id,
        "tenant": tenant,
        "run": run,
        "target": "report" if claim is None else "claim",
        "claim": claim or "",
        "report": report,
        "scorer": scorer,
        "value": value,
        "correction": correction,
    }
    await connection.execute(LOCK, (run, report))
    async with connection.cursor(row_factory=class_row(RewardRow)) as cursor:
        await cursor.execute(ADD, values)
        row = await cursor.fetchone()
    assert row is not None
    return row


async def of_run(connection: Connection, run: UUID) -> list[RewardRow]:
    """Every version, newest first."""
    async with connection.cursor(row_factory=class_row(RewardRow)) as cursor:
        await cursor.execute(LIST, (run,))
        return await cursor.fetchall()

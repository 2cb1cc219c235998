"""What people said about reports, and scorers about runs. Rows are never changed: a new opinion is a new version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

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

LIST = f"""
    select {COLUMNS} from reward where run_id = %s and target in ('report', 'claim') order by created_at desc, id desc
"""

ADD_SCORES = """
    insert into reward (id, tenant_id, run_id, target, report, scorer, version, scorer_version, value, failure, detail)
    select s.id, %(tenant)s, %(run)s, 'run', %(report)s, s.scorer,
           1 + (select count(*) from reward r where r.run_id = %(run)s and r.target = 'run' and r.scorer = s.scorer),
           s.scorer_version, s.value, s.failure, s.detail
      from jsonb_to_recordset(%(scores)s) as s(id uuid, scorer text, scorer_version text, value double precision,
                                               failure text, detail jsonb)
"""
"""The caller holds the run's group, so that versions count up."""

SCORES = """
    select run_id as run, scorer, scorer_version, version, value, failure, detail, created_at
      from reward where run_id = any(%s) and target = 'run' order by run_id, scorer, version
"""


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


@dataclass(frozen=True, slots=True)
class NewScore:
    """What a scorer found about a run."""

    id: UUID
    scorer: str
    scorer_version: str
    value: float | None
    """None: it failed, and `failure` says why."""
    failure: str = ""
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One try of one scorer at one run."""

    run: UUID
    scorer: str
    scorer_version: str
    version: int
    """From 1; a try after a failure is the next."""
    value: float | None
    """0 to 1. None: it failed."""
    failure: str
    detail: dict[str, Any]
    created_at: datetime


async def add_scores(
    connection: Connection, tenant: UUID, run: UUID, report: int | None, scores: Sequence[NewScore]
) -> None:
    """Store what scorers found. `report`: the version that they read; None: there was none."""
    rows = [
        {
            "id": s.id,
            "scorer": s.scorer,
            "scorer_version": s.scorer_version,
            "value": s.value,
            "failure": s.failure,
            "detail": dict(s.detail or {}),
        }
        for s in scores
    ]
    values = {"tenant": tenant, "run": run, "report": report, "scores": Jsonb(rows, dumps=orjson.dumps)}
    await connection.execute(ADD_SCORES, values)


async def scores(connection: Connection, runs: Sequence[UUID]) -> list[ScoreRow]:
    """Every try of every scorer, in order."""
    async with connection.cursor(row_factory=class_row(ScoreRow)) as cursor:
        await cursor.execute(SCORES, (list(runs),))
        return await cursor.fetchall()


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
    """Every version of what people said, newest first."""
    async with connection.cursor(row_factory=class_row(RewardRow)) as cursor:
        await cursor.execute(LIST, (run,))
        return await cursor.fetchall()

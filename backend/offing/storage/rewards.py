"""Ratings of reports by people and scores of runs by scorers.

Rows never change: a new rating is a new version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.storage.pool import Connection

LOCK_REPORT = "select 1 from report where run_id = %s and version = %s for update"
"""Serializes ratings of a report, so that versions get consecutive numbers."""

COLUMNS = """
    id, run_id, report_version, nullif(sentence_id, '') as sentence_id, scorer, version, value, correction, created_at
"""

INSERT_RATING = f"""
    insert into reward (id, tenant_id, run_id, target, sentence_id, report_version, scorer, version, value, correction)
    select %(id)s, %(tenant)s, %(run)s, %(target)s, %(claim)s, %(report)s, %(scorer)s, coalesce(max(version), 0) + 1,
           %(value)s, %(correction)s
      from reward where run_id = %(run)s and target = %(target)s and sentence_id = %(claim)s and scorer = %(scorer)s
    returning {COLUMNS}
"""

LIST_RATINGS = f"""
    select {COLUMNS} from reward where run_id = %s and target in ('report', 'sentence') order by created_at desc,
           id desc
"""

INSERT_SCORES = """
    insert into reward (id, tenant_id, run_id, target, report_version, scorer, version, scorer_version, value,
                        failure, detail)
    select s.id, %(tenant)s, %(run)s, 'run', %(report)s, s.scorer,
           1 + (select count(*) from reward r where r.run_id = %(run)s and r.target = 'run' and r.scorer = s.scorer),
           s.scorer_version, s.value, s.failure, s.detail
      from jsonb_to_recordset(%(scores)s) as s(id uuid, scorer text, scorer_version text, value double precision,
                                               failure text, detail jsonb)
"""
"""The caller has locked the run's group, so that versions get consecutive numbers."""

LIST_SCORES = """
    select run_id, scorer, scorer_version, version, value, failure, detail, created_at
      from reward where run_id = any(%s) and target = 'run' order by run_id, scorer, version
"""


@dataclass(frozen=True, slots=True)
class RewardRow:
    """A rating with its origin."""

    id: UUID
    run_id: UUID
    report_version: int
    """The rated version of the report."""
    sentence_id: str | None
    """`None` means the whole report."""
    scorer: str
    version: int
    value: float | None
    """From -1 to 1. `None` means that there is only a correction."""
    correction: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewScore:
    """The result of a scorer for a run."""

    id: UUID
    scorer: str
    scorer_version: str
    value: float | None
    """`None` means that the scorer failed; `failure` contains the reason."""
    failure: str = ""
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One attempt of a scorer to score a run."""

    run_id: UUID
    scorer: str
    scorer_version: str
    version: int
    """Starts at 1. An attempt after a failure has the next number."""
    value: float | None
    """From 0 to 1. `None` means that the scorer failed."""
    failure: str
    detail: dict[str, Any]
    created_at: datetime


async def insert_scores(
    connection: Connection, tenant_id: UUID, run_id: UUID, report_version: int | None, scores: Sequence[NewScore]
) -> None:
    """Store the results of scorers.

    `report_version` is the version that they read; `None` means that there was no report.
    """
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
    values = {"tenant": tenant_id, "run": run_id, "report": report_version, "scores": Jsonb(rows, dumps=orjson.dumps)}
    await connection.execute(INSERT_SCORES, values)


async def list_scores(connection: Connection, run_ids: Sequence[UUID]) -> list[ScoreRow]:
    """Return all attempts of all scorers, in order."""
    async with connection.cursor(row_factory=class_row(ScoreRow)) as cursor:
        await cursor.execute(LIST_SCORES, (list(run_ids),))
        return await cursor.fetchall()


async def insert_rating(
    connection: Connection,
    tenant_id: UUID,
    *,
    rating_id: UUID,
    run_id: UUID,
    report_version: int,
    sentence_id: str | None,
    scorer: str,
    value: float | None,
    correction: str,
) -> RewardRow:
    """Store a rating as the next version of this rater's rating of the report or sentence."""
    values = {
        "id": rating_id,
        "tenant": tenant_id,
        "run": run_id,
        "target": "report" if sentence_id is None else "sentence",
        "claim": sentence_id or "",
        "report": report_version,
        "scorer": scorer,
        "value": value,
        "correction": correction,
    }
    await connection.execute(LOCK_REPORT, (run_id, report_version))
    async with connection.cursor(row_factory=class_row(RewardRow)) as cursor:
        await cursor.execute(INSERT_RATING, values)
        row = await cursor.fetchone()
    assert row is not None
    return row


async def list_ratings_of_run(connection: Connection, run_id: UUID) -> list[RewardRow]:
    """Return all versions of people's ratings of a run, newest first."""
    async with connection.cursor(row_factory=class_row(RewardRow)) as cursor:
        await cursor.execute(LIST_RATINGS, (run_id,))
        return await cursor.fetchall()

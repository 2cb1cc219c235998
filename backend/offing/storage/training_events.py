"""Decisions about training jobs and policy versions, as an append-only audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.clock import new_id
from offing.storage.pool import Connection

INSERT_EVENT = """
    insert into training_event (id, tenant_id, job_id, policy_version_id, kind, detail) values (%s, %s, %s, %s, %s, %s)
"""

LIST_EVENTS = """
    select id, job_id, policy_version_id, kind, detail, at from training_event
     where (%(job)s::uuid is null or job_id = %(job)s) and (%(policy)s::uuid is null or policy_version_id = %(policy)s)
       and (%(after)s::uuid is null or id > %(after)s)
     order by id limit %(limit)s
"""

LIST_COMPARED = """
    select coalesce(e.detail ->> 'compared', e.id::text) from training_event e
      join policy_version v on v.id = e.policy_version_id
     where v.name = %(name)s and e.kind = 'gate' and e.detail ->> 'active_version' = %(active)s
     order by e.id
"""

CANARY_COMPARED = "canary_compared"
"""Kind of the event of a look at a canary."""

LIST_CANARY_LOOKS = """
    select e.id, e.job_id, e.policy_version_id, e.kind, e.detail, e.at from training_event e
      join policy_version v on v.id = e.policy_version_id
     where v.name = %(name)s and e.kind = %(kind)s and e.detail ->> 'active_version' = %(active)s
     order by e.id
"""


@dataclass(frozen=True, slots=True)
class TrainingEvent:
    """One decision."""

    id: UUID
    job_id: UUID | None
    policy_version_id: UUID | None
    """The policy version that the decision concerns."""
    kind: str
    """For example created, guard, not_finite, registered, gate, promoted, canary, canary_compared, rolled_back."""
    detail: dict[str, Any]
    at: datetime


async def insert_event(
    connection: Connection,
    tenant_id: UUID,
    kind: str,
    detail: Mapping[str, Any],
    *,
    job_id: UUID | None = None,
    policy_version_id: UUID | None = None,
) -> None:
    """Record a decision in the transaction that makes it."""
    body = Jsonb(dict(detail), dumps=orjson.dumps)
    await connection.execute(INSERT_EVENT, (new_id(), tenant_id, job_id, policy_version_id, kind, body))


async def list_events(
    connection: Connection,
    *,
    job_id: UUID | None = None,
    policy_version_id: UUID | None = None,
    after: UUID | None = None,
    limit: int = 200,
) -> list[TrainingEvent]:
    """Return events in order: those of a job, of a policy version, or all."""
    async with connection.cursor(row_factory=class_row(TrainingEvent)) as cursor:
        await cursor.execute(LIST_EVENTS, {"job": job_id, "policy": policy_version_id, "after": after, "limit": limit})
        return await cursor.fetchall()


async def list_compared(connection: Connection, name: str, active: str) -> list[str]:
    """Return what the promotion gate compared of a policy with its active version NAME@VERSION, oldest first."""
    rows = await (await connection.execute(LIST_COMPARED, {"name": name, "active": active})).fetchall()
    return [row[0] for row in rows]


async def list_canary_looks(connection: Connection, name: str, active: str) -> list[TrainingEvent]:
    """Return the looks at canaries of a policy with its active version NAME@VERSION, oldest first."""
    async with connection.cursor(row_factory=class_row(TrainingEvent)) as cursor:
        await cursor.execute(LIST_CANARY_LOOKS, {"name": name, "kind": CANARY_COMPARED, "active": active})
        return await cursor.fetchall()

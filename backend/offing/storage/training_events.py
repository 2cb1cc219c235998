"""What was decided about training jobs and policy versions, as an audit record. Rows are only added."""

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

ADD = """
    insert into train_event (id, tenant_id, job_id, policy_version_id, kind, detail) values (%s, %s, %s, %s, %s, %s)
"""

LIST = """
    select id, job_id as job, policy_version_id as policy, kind, detail, at from train_event
     where (%(job)s::uuid is null or job_id = %(job)s) and (%(policy)s::uuid is null or policy_version_id = %(policy)s)
       and (%(after)s::uuid is null or id > %(after)s)
     order by id limit %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One decision."""

    id: UUID
    job: UUID | None
    policy: UUID | None
    """The policy version that it is about."""
    kind: str
    """Such as created, guard, not_finite, registered, gate, promoted, canary, rolled_back."""
    detail: dict[str, Any]
    at: datetime


async def add(
    connection: Connection,
    tenant: UUID,
    kind: str,
    detail: Mapping[str, Any],
    *,
    job: UUID | None = None,
    policy: UUID | None = None,
) -> None:
    """Note a decision in the transaction that takes it."""
    body = Jsonb(dict(detail), dumps=orjson.dumps)
    await connection.execute(ADD, (new_id(), tenant, job, policy, kind, body))


async def listed(
    connection: Connection,
    *,
    job: UUID | None = None,
    policy: UUID | None = None,
    after: UUID | None = None,
    limit: int = 200,
) -> list[Event]:
    """Events in order, of a job, of a policy version, or all."""
    async with connection.cursor(row_factory=class_row(Event)) as cursor:
        await cursor.execute(LIST, {"job": job, "policy": policy, "after": after, "limit": limit})
        return await cursor.fetchall()

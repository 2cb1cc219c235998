"""Tool policies that a tenant keeps under a name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.tool_policy import ToolPolicy, parse_stored_policy
from offing.storage.pool import Connection

MAX_POLICIES = 100
"""Maximum number of a tenant."""

LIST_POLICIES = "select name, policy, updated_at from tool_policy order by name limit %s"

FIND_POLICY = "select name, policy, updated_at from tool_policy where name = %s"

COUNT_OTHERS = "select count(*) from tool_policy where name <> %s"

UPSERT_POLICY = """
    insert into tool_policy (tenant_id, name, policy) values (%s, %s, %s)
    on conflict (tenant_id, name) do update set policy = excluded.policy, updated_at = clock_timestamp()
    returning name, policy, updated_at
"""

DELETE_POLICY = "delete from tool_policy where name = %s"


@dataclass(frozen=True, slots=True)
class NamedToolPolicy:
    name: str
    policy: ToolPolicy | None
    """`None` means that this version of Offing cannot read it."""
    updated_at: datetime


async def list_policies(connection: Connection) -> Sequence[NamedToolPolicy]:
    """Return the tenant's tool policies by name."""
    return [_read(*row) for row in await (await connection.execute(LIST_POLICIES, (MAX_POLICIES,))).fetchall()]


async def get_policy(connection: Connection, name: str) -> NamedToolPolicy:
    """Return a tool policy. Raises NotFound."""
    row = await (await connection.execute(FIND_POLICY, (name,))).fetchone()
    if row is None:
        raise NotFound("tool policy", name)
    return _read(*row)


async def count_others(connection: Connection, name: str) -> int:
    """Return the number of the tenant's tool policies with another name."""
    row = await (await connection.execute(COUNT_OTHERS, (name,))).fetchone()
    return int(row[0]) if row else 0


async def upsert_policy(connection: Connection, tenant_id: UUID, name: str, policy: ToolPolicy) -> NamedToolPolicy:
    """Create or replace a tool policy."""
    row = await (await connection.execute(UPSERT_POLICY, (tenant_id, name, Jsonb(policy.to_json())))).fetchone()
    assert row is not None, "an upsert returns its row"
    return _read(*row)


async def delete_policy(connection: Connection, name: str) -> None:
    """Delete a tool policy. Raises NotFound."""
    if (await connection.execute(DELETE_POLICY, (name,))).rowcount == 0:
        raise NotFound("tool policy", name)


def _read(name: str, policy: Any, updated_at: datetime) -> NamedToolPolicy:
    return NamedToolPolicy(name, parse_stored_policy(policy), updated_at)

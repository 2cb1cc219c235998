"""Policy versions as rows.

Apart from their state they never change; they are numbered within their name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.storage.pool import Connection, Database

COLUMNS = """
    id, name, version, parent_id, kind, base_model, uri, sha256, tokenizer_sha256, template_sha256, state,
    lineage, evaluation, created_at, canary_fraction, canary_since
"""

LOCK_NAME = "select pg_advisory_xact_lock(hashtextextended('policy ' || %s || app.current_tenant_id()::text, 0))"
"""Registrations of one name are serialized, so that versions get consecutive numbers."""

FIND_IDENTICAL_VERSION = f"""
    select {COLUMNS} from policy_version where name = %s and sha256 = %s and kind = %s order by version desc limit 1
"""

INSERT_VERSION = f"""
    insert into policy_version (id, tenant_id, name, version, parent_id, kind, base_model, uri, sha256,
                                tokenizer_sha256, template_sha256, lineage)
    select %(id)s, %(tenant)s, %(name)s,
           coalesce(%(version)s, (select max(version) from policy_version where name = %(name)s) + 1, 1),
           %(parent)s, %(kind)s, %(base_model)s, %(uri)s, %(sha256)s, %(tokenizer_sha256)s, %(template_sha256)s,
           %(lineage)s
    returning {COLUMNS}
"""

GET_NEXT_NUMBER = "select coalesce(max(version), 0) + 1 from policy_version where name = %s"

GET_VERSION = f"select {COLUMNS} from policy_version where id = %s"

FIND_VERSION = f"select {COLUMNS} from policy_version where name = %s and version = %s for share"
"""Locks the version in share mode, so that its state does not change until the transaction ends."""

LIST_VERSIONS = f"""
    select {COLUMNS} from policy_version
     where (%(name)s::text is null or name = %(name)s) and (%(before)s::uuid is null or id < %(before)s)
     order by id desc limit %(limit)s
"""

LOCK_VERSION = f"select {COLUMNS} from policy_version where id = %s for update"

SET_STATE = f"""
    update policy_version
       set state = %(state)s, canary_fraction = case when %(state)s = 'canary' then coalesce(%(share)s, 0.1) end,
           canary_since = case when %(state)s = 'canary' then clock_timestamp() end
     where id = %(id)s returning {COLUMNS}
"""

RETIRE_ACTIVE = "update policy_version set state = 'retired' where name = %s and state = 'active' and id <> %s"

END_CANARY = """
    update policy_version set state = 'candidate', canary_fraction = null, canary_since = null
     where name = %s and state = 'canary' and id <> %s
"""

FIND_VERSION_IN_STATE = f"select {COLUMNS} from policy_version where name = %s and state = %s for share"

LIST_UNUSED_LABELS = """
    with pinned as (
      select engines from run where status not in ('done', 'failed', 'cancelled')
      union all
      select engines from rollout_group where state = 'open'),
    needed as (
      select choice.value->>'model' as label from pinned cross join lateral jsonb_each(pinned.engines) as choice
       where choice.value->>'engine' = 'policy')
    select name || '@' || version from policy_version
     where name = %(name)s and kind <> 'prompt_library'
       and (state in ('retired', 'blocked') or (state = 'candidate' and name || '@' || version = %(blocked)s))
       and not exists (select from needed where label = name || '@' || version)
     order by version
"""
"""An open group may still have to retry a run."""

IS_NEEDED = """
    select exists (
      select from (
        select engines from run where status not in ('done', 'failed', 'cancelled')
        union all
        select engines from rollout_group where state = 'open') as pinned
      cross join lateral jsonb_each(pinned.engines) as choice
      where choice.value->>'engine' = 'policy' and choice.value->>'model' = %s)
"""

LIST_CANARIES = "select tenant_id, name from app.list_canaries()"


@dataclass(frozen=True, slots=True)
class NewPolicyVersion:
    """The fields of a new policy version."""

    id: UUID
    name: str
    kind: str
    """`full`, `lora` or `prompt_library`."""
    uri: str
    """Folder on the machine of the engine."""
    sha256: str
    """Hash of all files."""
    tokenizer_sha256: str = ""
    """Empty if the folder has no tokenizer. An adapter uses the tokenizer of its base model."""
    template_sha256: str = ""
    base_model: str = ""
    parent_id: UUID | None = None
    lineage: Mapping[str, Any] | None = None
    version: int | None = None
    """`None` means the next number."""


@dataclass(frozen=True, slots=True)
class PolicyVersionRow:
    """A policy version as stored."""

    id: UUID
    name: str
    version: int
    parent_id: UUID | None
    kind: str
    base_model: str
    uri: str
    sha256: str
    tokenizer_sha256: str
    template_sha256: str
    state: str
    lineage: dict[str, Any]
    evaluation: dict[str, Any]
    created_at: datetime
    canary_fraction: float | None = None
    """Fraction of the new runs that get this version, among those that name the policy without a
    version. `None` means that it is not a canary.
    """
    canary_since: datetime | None = None

    @property
    def label(self) -> str:
        """The version as NAME@VERSION."""
        return f"{self.name}@{self.version}"

    @property
    def job_id(self) -> UUID | None:
        """The training job that made the version. `None` means that no job did."""
        job = self.lineage.get("job")
        return UUID(job) if job else None


async def insert_version(
    connection: Connection, tenant_id: UUID, new: NewPolicyVersion
) -> tuple[PolicyVersionRow, bool]:
    """Store the next version of a policy, and return it and whether it is new.

    If a version of the same kind has the same files, return that one.
    """
    await lock_name(connection, new.name)
    if earlier := await find_identical_version(connection, new.name, new.sha256, new.kind):
        return earlier, False
    values = {
        "id": new.id,
        "tenant": tenant_id,
        "name": new.name,
        "parent": new.parent_id,
        "kind": new.kind,
        "base_model": new.base_model,
        "uri": new.uri,
        "sha256": new.sha256,
        "tokenizer_sha256": new.tokenizer_sha256,
        "template_sha256": new.template_sha256,
        "lineage": Jsonb(dict(new.lineage or {}), dumps=orjson.dumps),
        "version": new.version,
    }
    row = await _fetch_version(connection, INSERT_VERSION, values)
    assert row is not None
    return row, True


async def lock_name(connection: Connection, name: str) -> None:
    """Block other registrations and state changes of a policy name until the transaction ends."""
    await connection.execute(LOCK_NAME, (name,))


async def find_identical_version(connection: Connection, name: str, sha256: str, kind: str) -> PolicyVersionRow | None:
    """Return the version of a policy with identical files. `None` means that there is none."""
    return await _fetch_version(connection, FIND_IDENTICAL_VERSION, (name, sha256, kind))


async def get_next_number(connection: Connection, name: str) -> int:
    """Return the next version number of a name that the transaction has locked."""
    row = await (await connection.execute(GET_NEXT_NUMBER, (name,))).fetchone()
    assert row is not None
    return row[0]


async def get_version(connection: Connection, version_id: UUID) -> PolicyVersionRow:
    """Return a policy version. Raises `NotFound` if it does not exist."""
    return _require_version(await _fetch_version(connection, GET_VERSION, (version_id,)), str(version_id))


async def find_version(connection: Connection, name: str, version: int) -> PolicyVersionRow | None:
    """Return a version and lock its state until the transaction ends.

    `None` means that there is none.
    """
    return await _fetch_version(connection, FIND_VERSION, (name, version))


async def list_versions(
    connection: Connection, name: str | None, before: UUID | None, limit: int
) -> list[PolicyVersionRow]:
    """Return versions after `before`, newest first.

    If `name` is `None`, return those of all policies.
    """
    async with connection.cursor(row_factory=class_row(PolicyVersionRow)) as cursor:
        await cursor.execute(LIST_VERSIONS, {"name": name, "before": before, "limit": limit})
        return await cursor.fetchall()


async def lock_version(connection: Connection, version_id: UUID) -> PolicyVersionRow:
    """Return a version and lock it against changes. Raises `NotFound` if it does not exist."""
    return _require_version(await _fetch_version(connection, LOCK_VERSION, (version_id,)), str(version_id))


async def set_state(
    connection: Connection, version: PolicyVersionRow, state: str, canary_fraction: float | None = None
) -> PolicyVersionRow:
    """Change the state of a version that the transaction has locked.

    A policy has at most one active version and one canary. `canary_share` is the fraction of a
    canary; `None` means one tenth.
    """
    if state in ("active", "canary"):
        await lock_name(connection, version.name)
        await connection.execute(RETIRE_ACTIVE if state == "active" else END_CANARY, (version.name, version.id))
    values = {"state": state, "share": canary_fraction, "id": version.id}
    return _require_version(await _fetch_version(connection, SET_STATE, values), str(version.id))


async def find_version_in_state(connection: Connection, name: str, state: str) -> PolicyVersionRow | None:
    """Return the active version of a policy or its canary.

    Lock its state until the transaction ends. `None` means that there is none.
    """
    return await _fetch_version(connection, FIND_VERSION_IN_STATE, (name, state))


async def list_unused_labels(connection: Connection, name: str, blocked_label: str = "") -> list[str]:
    """Return NAME@VERSION of a policy's unused versions.

    They are retired or blocked, and no run or group in progress is pinned to them.
    `blocked_label` is a candidate that is treated as blocked.
    """
    rows = await (await connection.execute(LIST_UNUSED_LABELS, {"name": name, "blocked": blocked_label})).fetchall()
    return [label for (label,) in rows]


async def is_needed(connection: Connection, label: str) -> bool:
    """Return whether a run or group in progress is pinned to the version NAME@VERSION."""
    row = await (await connection.execute(IS_NEEDED, (label,))).fetchone()
    assert row is not None
    return bool(row[0])


async def list_canaries(database: Database) -> list[tuple[UUID, str]]:
    """Return tenant and name of every policy that has a canary."""
    return [(tenant, name) for tenant, name in await database.call_function(LIST_CANARIES, ())]


async def _fetch_version(
    connection: Connection, query: str, values: Sequence[Any] | Mapping[str, Any]
) -> PolicyVersionRow | None:
    async with connection.cursor(row_factory=class_row(PolicyVersionRow)) as cursor:
        await cursor.execute(query.encode(), values)
        return await cursor.fetchone()


def _require_version(row: PolicyVersionRow | None, version_id: str) -> PolicyVersionRow:
    if row is None:
        raise NotFound("policy version", version_id)
    return row

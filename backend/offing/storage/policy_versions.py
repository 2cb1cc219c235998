"""Policy versions as rows: immutable but for their state, numbered upwards within a name."""

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
    id, name, version, parent_id as parent, kind, base_model, uri, sha256, tokenizer_sha256, template_sha256, state,
    lineage, evaluation, created_at, canary_share, canary_since
"""

ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtextextended('policy ' || %s || app.tenant()::text, 0))"
"""Registrations of one name follow one another, so that versions count up."""

SAME = f"""
    select {COLUMNS} from policy_version where name = %s and sha256 = %s and kind = %s order by version desc limit 1
"""

ADD = f"""
    insert into policy_version (id, tenant_id, name, version, parent_id, kind, base_model, uri, sha256,
                                tokenizer_sha256, template_sha256, lineage)
    select %(id)s, %(tenant)s, %(name)s,
           coalesce(%(version)s, (select max(version) from policy_version where name = %(name)s) + 1, 1),
           %(parent)s, %(kind)s, %(base_model)s, %(uri)s, %(sha256)s, %(tokenizer_sha256)s, %(template_sha256)s,
           %(lineage)s
    returning {COLUMNS}
"""

NEXT = "select coalesce(max(version), 0) + 1 from policy_version where name = %s"

BY_ID = f"select {COLUMNS} from policy_version where id = %s"

BY_NAME = f"select {COLUMNS} from policy_version where name = %s and version = %s for share"
"""Shared, so that its state stays as it is until the transaction ends."""

LIST = f"""
    select {COLUMNS} from policy_version
     where (%(name)s::text is null or name = %(name)s) and (%(before)s::uuid is null or id < %(before)s)
     order by id desc limit %(limit)s
"""

LOCK = f"select {COLUMNS} from policy_version where id = %s for update"

SET_STATE = f"""
    update policy_version
       set state = %(state)s, canary_share = case when %(state)s = 'canary' then coalesce(%(share)s, 0.1) end,
           canary_since = case when %(state)s = 'canary' then clock_timestamp() end
     where id = %(id)s returning {COLUMNS}
"""

RETIRE_ACTIVE = "update policy_version set state = 'retired' where name = %s and state = 'active' and id <> %s"

END_CANARY = """
    update policy_version set state = 'candidate', canary_share = null, canary_since = null
     where name = %s and state = 'canary' and id <> %s
"""

IN_STATE = f"select {COLUMNS} from policy_version where name = %s and state = %s for share"

SPARE = """
    with pinned as (
      select engines from run where status not in ('done', 'failed', 'cancelled', 'dead')
      union all
      select engines from rollout_group where state = 'open'),
    needed as (
      select choice.value->>'model' as label from pinned cross join lateral jsonb_each(pinned.engines) as choice
       where choice.value->>'engine' = 'policy')
    select name || '@' || version from policy_version
     where name = %(name)s and kind <> 'prompts'
       and (state in ('retired', 'bad') or (state = 'candidate' and name || '@' || version = %(refused)s))
       and not exists (select from needed where label = name || '@' || version)
     order by version
"""
"""A group that is open may still have to repeat a run."""

NEEDED = """
    select exists (
      select from (
        select engines from run where status not in ('done', 'failed', 'cancelled', 'dead')
        union all
        select engines from rollout_group where state = 'open') as pinned
      cross join lateral jsonb_each(pinned.engines) as choice
      where choice.value->>'engine' = 'policy' and choice.value->>'model' = %s)
"""

CANARIES = "select tenant, name from app.canaries()"


@dataclass(frozen=True, slots=True)
class NewVersion:
    """What a registration stores."""

    id: UUID
    name: str
    kind: str
    """full, lora or prompts."""
    uri: str
    """Folder on the engine's machine."""
    sha256: str
    """Over all of its files."""
    tokenizer_sha256: str = ""
    """Empty: the folder has no tokenizer; an adapter uses its base's."""
    template_sha256: str = ""
    base_model: str = ""
    parent: UUID | None = None
    lineage: Mapping[str, Any] | None = None
    version: int | None = None
    """None: the next."""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A policy version as stored."""

    id: UUID
    name: str
    version: int
    parent: UUID | None
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
    canary_share: float | None = None
    """Share of new runs that get it, of those that name the policy without a version. None: it is no canary."""
    canary_since: datetime | None = None

    @property
    def label(self) -> str:
        """NAME@VERSION."""
        return f"{self.name}@{self.version}"


async def add(connection: Connection, tenant: UUID, new: NewVersion) -> tuple[VersionRow, bool]:
    """Store it as the next version of its name, and whether it is new: the same files of the same kind keep theirs."""
    await one_at_a_time(connection, new.name)
    if earlier := await same(connection, new.name, new.sha256, new.kind):
        return earlier, False
    values = {
        "id": new.id,
        "tenant": tenant,
        "name": new.name,
        "parent": new.parent,
        "kind": new.kind,
        "base_model": new.base_model,
        "uri": new.uri,
        "sha256": new.sha256,
        "tokenizer_sha256": new.tokenizer_sha256,
        "template_sha256": new.template_sha256,
        "lineage": Jsonb(dict(new.lineage or {}), dumps=orjson.dumps),
        "version": new.version,
    }
    row = await _one(connection, ADD, values)
    assert row is not None
    return row, True


async def one_at_a_time(connection: Connection, name: str) -> None:
    """Hold back other registrations and changes of a name until the transaction ends."""
    await connection.execute(ONE_AT_A_TIME, (name,))


async def same(connection: Connection, name: str, sha256: str, kind: str) -> VersionRow | None:
    """The version of a name that has these very files. None: there is none."""
    return await _one(connection, SAME, (name, sha256, kind))


async def next_number(connection: Connection, name: str) -> int:
    """Of a name that the transaction holds."""
    row = await (await connection.execute(NEXT, (name,))).fetchone()
    assert row is not None
    return row[0]


async def by_id(connection: Connection, id: UUID) -> VersionRow:
    """Raises NotFound."""
    return _found(await _one(connection, BY_ID, (id,)), str(id))


async def by_name(connection: Connection, name: str, version: int) -> VersionRow | None:
    """Held as it is until the transaction ends. None: there is none."""
    return await _one(connection, BY_NAME, (name, version))


async def latest(connection: Connection, name: str | None, before: UUID | None, limit: int) -> list[VersionRow]:
    """Versions that follow `before`, newest first. `name` None: of any."""
    async with connection.cursor(row_factory=class_row(VersionRow)) as cursor:
        await cursor.execute(LIST, {"name": name, "before": before, "limit": limit})
        return await cursor.fetchall()


async def locked(connection: Connection, id: UUID) -> VersionRow:
    """Held against other changes. Raises NotFound."""
    return _found(await _one(connection, LOCK, (id,)), str(id))


async def set_state(connection: Connection, version: VersionRow, state: str, share: float | None = None) -> VersionRow:
    """Change the state of a version that the transaction has locked. A name has one active version and one canary.

    `share`: of a canary; None: a tenth.
    """
    if state in ("active", "canary"):
        await one_at_a_time(connection, version.name)
        await connection.execute(RETIRE_ACTIVE if state == "active" else END_CANARY, (version.name, version.id))
    values = {"state": state, "share": share, "id": version.id}
    return _found(await _one(connection, SET_STATE, values), str(version.id))


async def in_state(connection: Connection, name: str, state: str) -> VersionRow | None:
    """The active version of a name, or its canary; held as it is until the transaction ends. None: there is none."""
    return await _one(connection, IN_STATE, (name, state))


async def spare(connection: Connection, name: str, refused: str = "") -> list[str]:
    """NAME@VERSION of what new runs do not get, and what no run that goes on was promised: the retired and the bad.

    `refused`: a candidate to be counted among them.
    """
    rows = await (await connection.execute(SPARE, {"name": name, "refused": refused})).fetchall()
    return [label for (label,) in rows]


async def is_needed(connection: Connection, label: str) -> bool:
    """Whether a run or a group that goes on was promised the version NAME@VERSION."""
    row = await (await connection.execute(NEEDED, (label,))).fetchone()
    assert row is not None
    return bool(row[0])


async def canaries(database: Database) -> list[tuple[UUID, str]]:
    """Tenant and name of every policy that has a canary."""
    return [(tenant, name) for tenant, name in await database.platform(CANARIES, ())]


async def _one(connection: Connection, query: str, values: Sequence[Any] | Mapping[str, Any]) -> VersionRow | None:
    async with connection.cursor(row_factory=class_row(VersionRow)) as cursor:
        await cursor.execute(query.encode(), values)
        return await cursor.fetchone()


def _found(row: VersionRow | None, id: str) -> VersionRow:
    if row is None:
        raise NotFound("policy version", id)
    return row

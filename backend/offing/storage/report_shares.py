"""Share links of reports as rows. Tokens are hashed before they get here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.core.errors import NotFound
from offing.storage.pagination import PageKey
from offing.storage.pool import Connection, Database

INSERT_SHARE = """
    insert into report_share (id, tenant_id, run_id, report_version, token_sha256, label, shows_question, created_at,
                              expires_at)
    values (%(id)s, %(tenant)s, %(run)s, %(version)s, %(token_sha256)s, %(label)s, %(shows_question)s, %(now)s,
            %(expires_at)s)
"""

LIST_SHARES = """
    select s.id, s.run_id, s.report_version, s.label, s.shows_question, s.created_at, s.expires_at, s.revoked_at,
           s.last_opened_at, s.opened_count, coalesce(p.body ->> 'title', '') as report_title
      from report_share s
      left join report p on p.tenant_id = s.tenant_id and p.run_id = s.run_id and p.version = s.report_version
     where (%(run)s::uuid is null or s.run_id = %(run)s) and (%(id)s::uuid is null or s.id = %(id)s)
       and (%(before_at)s::timestamptz is null or (s.created_at, s.id) < (%(before_at)s, %(before_id)s::uuid))
     order by s.created_at desc, s.id desc limit %(limit)s
"""

COUNT_OPEN_SHARES = """
    select count(*) from report_share where run_id = %s and revoked_at is null and expires_at > clock_timestamp()
"""

LOCK_RUN = "select 1 from run where id = %s for share"
"""Locked before its links are counted."""

REVOKE_SHARE = "update report_share set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = %s returning id"

DELETE_ENDED_SHARES = """
    delete from report_share
     where id in (select id from report_share
                   where least(expires_at, revoked_at) < clock_timestamp() - interval '90 days' limit 1000)
"""
"""Links that ended long ago would make the list long."""

OPEN_SHARE = """
    select share_id, tenant_id, run_id, report_version, shows_question, expires_at from app.open_report_share(%s, %s)
"""


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A share link as its owner sees it."""

    id: UUID
    run_id: UUID
    report_version: int
    label: str
    """Empty means none."""
    shows_question: bool
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_opened_at: datetime | None
    """`None` means never."""
    opened_count: int
    report_title: str


@dataclass(frozen=True, slots=True)
class NewShare:
    """A share link to store."""

    id: UUID
    run_id: UUID
    report_version: int
    token_sha256: bytes
    label: str
    shows_question: bool
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class OpenedShare:
    """What a valid share link shows."""

    id: UUID
    tenant_id: UUID
    run_id: UUID
    report_version: int
    shows_question: bool
    expires_at: datetime


async def insert_share(connection: Connection, tenant_id: UUID, share: NewShare) -> None:
    """Store a share link, and delete the tenant's links that ended more than 90 days ago."""
    await connection.execute(DELETE_ENDED_SHARES)
    values = {
        "id": share.id,
        "tenant": tenant_id,
        "run": share.run_id,
        "version": share.report_version,
        "token_sha256": share.token_sha256,
        "label": share.label,
        "shows_question": share.shows_question,
        "now": share.created_at,
        "expires_at": share.expires_at,
    }
    await connection.execute(INSERT_SHARE, values)


async def count_open_shares(connection: Connection, run_id: UUID) -> int:
    """Return the number of links of a run that can be opened."""
    await connection.execute(LOCK_RUN, (run_id,))
    row = await (await connection.execute(COUNT_OPEN_SHARES, (run_id,))).fetchone()
    return row[0] if row else 0


async def list_shares(
    connection: Connection, *, run_id: UUID | None, before: PageKey | None, limit: int
) -> Sequence[ShareRow]:
    """Return links of a run, or of the tenant if `run_id` is `None`, newest first."""
    before_at, before_id = before or (None, None)
    values = {"run": run_id, "id": None, "before_at": before_at, "before_id": before_id, "limit": limit}
    return await _list_rows(connection, values)


async def get_share(connection: Connection, share_id: UUID) -> ShareRow:
    """Return a link of the tenant. Raises NotFound."""
    values = {"run": None, "id": share_id, "before_at": None, "before_id": None, "limit": 1}
    rows = await _list_rows(connection, values)
    if not rows:
        raise NotFound("share link", str(share_id))
    return rows[0]


async def revoke_share(connection: Connection, share_id: UUID) -> None:
    """Revoke a link. Revoking it again changes nothing. Raises NotFound."""
    if await (await connection.execute(REVOKE_SHARE, (share_id,))).fetchone() is None:
        raise NotFound("share link", str(share_id))


async def open_share(database: Database, token_sha256: bytes, *, is_opening: bool) -> OpenedShare | None:
    """Return what the link of a token shows, and count the opening if it is one.

    `None` means that the link is unknown, expired or revoked.
    """
    rows = await database.call_function(OPEN_SHARE, (token_sha256, is_opening))
    return OpenedShare(*rows[0]) if rows else None


async def _list_rows(connection: Connection, values: Mapping[str, object]) -> Sequence[ShareRow]:
    async with connection.cursor(row_factory=class_row(ShareRow)) as cursor:
        return await (await cursor.execute(LIST_SHARES, values)).fetchall()

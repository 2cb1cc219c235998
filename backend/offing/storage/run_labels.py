"""Titles, tags, pins and the archive: how people organize runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from offing.storage.pool import Connection

UPDATE_TITLE = "update run set title = %s where id = %s"

PIN = "update run set pinned_at = coalesce(pinned_at, clock_timestamp()) where id = %s"

UNPIN = "update run set pinned_at = null where id = %s"

ARCHIVE = "update run set archived_at = coalesce(archived_at, clock_timestamp()) where id = %s"

UNARCHIVE = "update run set archived_at = null where id = %s"

DELETE_TAGS = "delete from run_tag where run_id = %s"

INSERT_TAGS = """
    insert into run_tag (run_id, tag, tenant_id, position, run_created_at)
    select run.id, t.tag, run.tenant_id, t.position, run.created_at
      from run cross join unnest(%s::text[]) with ordinality as t(tag, position) where run.id = %s
"""

LIST_ALL_TAGS = """
    with recursive tags(tag, nth) as (
      (select tag, 1 from run_tag where tag > %(after)s order by tag limit 1)
      union all
      select (select next.tag from run_tag next where next.tag > tags.tag order by next.tag limit 1), nth + 1
        from tags where tags.tag is not null and nth < %(limit)s)
    select tag from tags where tag is not null order by nth
"""
"""Reads one row of the index per tag, however many runs have it."""

LIST_TAGS = "select tag from run_tag where run_id = %s order by position"


@dataclass(frozen=True, slots=True)
class RunLabels:
    """What a person has set on a run."""

    title: str = ""
    """Empty means that the run has none of its own."""
    tags: tuple[str, ...] = ()
    pinned_at: datetime | None = None
    """`None` means that it is not pinned."""
    archived_at: datetime | None = None
    """`None` means that it is not archived."""


NO_LABELS = RunLabels()


async def update_title(connection: Connection, run_id: UUID, title: str) -> None:
    await connection.execute(UPDATE_TITLE, (title, run_id))


async def set_pinned(connection: Connection, run_id: UUID, is_pinned: bool) -> None:
    """Pin or unpin a run. The time of an earlier pin stays."""
    await connection.execute(PIN if is_pinned else UNPIN, (run_id,))


async def set_archived(connection: Connection, run_id: UUID, is_archived: bool) -> None:
    """Archive a run, or return it to the list. The time at which it was archived first stays."""
    await connection.execute(ARCHIVE if is_archived else UNARCHIVE, (run_id,))


async def replace_tags(connection: Connection, run_id: UUID, tags: Sequence[str]) -> None:
    await connection.execute(DELETE_TAGS, (run_id,))
    await connection.execute(INSERT_TAGS, (list(tags), run_id))


async def list_tags(connection: Connection, run_id: UUID) -> tuple[str, ...]:
    """Return the tags of a run in the order in which a person gave them."""
    return tuple(tag for (tag,) in await (await connection.execute(LIST_TAGS, (run_id,))).fetchall())


async def list_all_tags(connection: Connection, after: str, limit: int) -> list[str]:
    """Return the tags that runs of the tenant have, in order, from the one after `after` on. Empty: from the first."""
    rows = await (await connection.execute(LIST_ALL_TAGS, {"after": after, "limit": limit})).fetchall()
    return [tag for (tag,) in rows]

"""Notifications of a tenant: which runs wait for a person, have ended or have failed."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from offing.storage import run_events
from offing.storage.pagination import parse_page_cursor, render_page_cursor
from offing.storage.pool import Database
from offing.storage.run_events import RunEventRow

MAX_COUNTED = 100
"""Maximum number of unread notifications that are counted."""


@dataclass(frozen=True, slots=True)
class NotificationList:
    """A page of notifications."""

    items: list[RunEventRow]
    next_cursor: str | None
    unread_count: int
    """At most `MAX_COUNTED`."""


async def list_notifications(database: Database, tenant_id: UUID, cursor: str | None, limit: int) -> NotificationList:
    """Return a page of notifications, newest first."""
    before = parse_page_cursor(cursor)
    async with database.transaction(tenant_id) as connection:
        rows = await run_events.list_events(connection, before, limit + 1)
        unread = await run_events.count_unread(connection, MAX_COUNTED)
    page = list(rows[:limit])
    following = render_page_cursor((page[-1].created_at, page[-1].id)) if len(rows) > limit else None
    return NotificationList(page, following, unread)


async def mark_read(database: Database, tenant_id: UUID, event_id: UUID | None, until: datetime | None = None) -> None:
    """Mark one notification as read, or all up to a time if `event_id` is `None`. Unknown ids change nothing."""
    async with database.transaction(tenant_id) as connection:
        await run_events.mark_read(connection, until or datetime.now(UTC), event_id)

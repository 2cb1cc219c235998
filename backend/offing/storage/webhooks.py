"""Webhooks with their encrypted secrets, and the deliveries and attempts that wait or were made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import class_row

from offing.core.errors import NotFound
from offing.core.webhook import EventKind
from offing.storage.pool import Connection, Database

_COLUMNS = "id, address, events, web_ui, key_id, secret_ciphertext, created_at"

LIST_WEBHOOKS = f"select {_COLUMNS} from webhook order by created_at, id"

FIND_WEBHOOK = f"select {_COLUMNS} from webhook where id = %s"

COUNT_WEBHOOKS = "select count(*) from webhook"

INSERT_WEBHOOK = """
    insert into webhook (id, tenant_id, address, events, web_ui, key_id, secret_ciphertext)
    values (%s, %s, %s, %s, %s, %s, %s)
"""

LOCK_TENANT = "select 1 from tenant for update"
"""Locked before the webhooks of the tenant are counted."""

DELETE_WEBHOOK = "delete from webhook where id = %s"

LIST_ATTEMPTS = """
    select a.event_id, e.kind, e.run_id, a.number, a.at, a.status, a.problem, a.ms, d.delivered_at, d.next_attempt_at
      from webhook_attempt a
      join webhook_delivery d on d.tenant_id = a.tenant_id and d.webhook_id = a.webhook_id and d.event_id = a.event_id
      join run_event e on e.tenant_id = a.tenant_id and e.id = a.event_id
     where a.webhook_id = %s order by a.at desc limit %s
"""

CLAIM_DELIVERIES = """
    select tenant_id, webhook_id, event_id, attempts from app.claim_webhook_deliveries(%s::interval, %s)
"""

INSERT_ATTEMPT = """
    insert into webhook_attempt (webhook_id, event_id, number, tenant_id, status, problem, ms)
    select d.webhook_id, d.event_id, %(number)s, d.tenant_id, %(status)s, %(problem)s, %(ms)s
      from webhook_delivery d where d.webhook_id = %(webhook)s and d.event_id = %(event)s
    on conflict do nothing
"""

END_ATTEMPT = """
    update webhook_delivery
       set delivered_at = case when %(delivered)s then clock_timestamp() end,
           next_attempt_at = case when not %(delivered)s then clock_timestamp() + %(delay)s::interval end
     where webhook_id = %(webhook)s and event_id = %(event)s and delivered_at is null
"""
"""Without a delay, the delivery is given up: a sum with null is null."""

SWEEP_EVENTS = "select app.sweep_run_events(%s::interval, %s)"


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A stored webhook."""

    id: UUID
    address: str
    events: Sequence[EventKind]
    web_ui: str
    """Address of the web UI for links. Empty means that links have no host."""
    key_id: str
    """The line of the key file that encrypts the secret."""
    secret_ciphertext: bytes = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An attempt to deliver an event."""

    event_id: UUID
    kind: EventKind
    run_id: UUID
    number: int
    at: datetime
    status: int | None
    """`None` means that there was no response."""
    problem: str
    """Empty means that it was delivered."""
    ms: int
    delivered_at: datetime | None
    """When any attempt of the delivery succeeded. `None` means none did."""
    next_attempt_at: datetime | None
    """`None` means that the delivery has ended."""


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that this process attempts now."""

    tenant_id: UUID
    webhook_id: UUID
    event_id: UUID
    attempts: int
    """Number of attempts, including this one."""


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended."""

    status: int | None
    problem: str
    ms: int
    retry_after: timedelta | None
    """Time until the next attempt. `None` means none: it was delivered or is given up."""


async def list_webhooks(connection: Connection) -> Sequence[WebhookRow]:
    """Return the tenant's webhooks, oldest first."""
    async with connection.cursor(row_factory=class_row(WebhookRow)) as cursor:
        return await (await cursor.execute(LIST_WEBHOOKS)).fetchall()


async def find_webhook(connection: Connection, webhook_id: UUID) -> WebhookRow | None:
    """Return the tenant's webhook. `None` means that there is none."""
    async with connection.cursor(row_factory=class_row(WebhookRow)) as cursor:
        return await (await cursor.execute(FIND_WEBHOOK, (webhook_id,))).fetchone()


async def get_webhook(connection: Connection, webhook_id: UUID) -> WebhookRow:
    """Return the tenant's webhook. Raises NotFound."""
    row = await find_webhook(connection, webhook_id)
    if row is None:
        raise NotFound("webhook", str(webhook_id))
    return row


async def count_webhooks(connection: Connection) -> int:
    """Return the number of the tenant's webhooks, and let no other transaction add one before this one ends."""
    await connection.execute(LOCK_TENANT)
    row = await (await connection.execute(COUNT_WEBHOOKS)).fetchone()
    return row[0] if row else 0


async def insert_webhook(connection: Connection, tenant_id: UUID, row: WebhookRow) -> None:
    values = (row.id, tenant_id, row.address, list(row.events), row.web_ui, row.key_id, row.secret_ciphertext)
    await connection.execute(INSERT_WEBHOOK, values)


async def delete_webhook(connection: Connection, webhook_id: UUID) -> None:
    """Delete a webhook with its deliveries. Raises NotFound."""
    if (await connection.execute(DELETE_WEBHOOK, (webhook_id,))).rowcount == 0:
        raise NotFound("webhook", str(webhook_id))


async def list_attempts(connection: Connection, webhook_id: UUID, limit: int) -> Sequence[AttemptRow]:
    """Return the latest attempts of a webhook, newest first."""
    async with connection.cursor(row_factory=class_row(AttemptRow)) as cursor:
        return await (await cursor.execute(LIST_ATTEMPTS, (webhook_id, limit))).fetchall()


async def claim_deliveries(database: Database, lease: timedelta, limit: int) -> list[ClaimedDelivery]:
    """Claim deliveries that are due. If this process stops, others claim them again after the lease."""
    return [ClaimedDelivery(*row) for row in await database.call_function(CLAIM_DELIVERIES, (lease, limit))]


async def end_attempt(connection: Connection, claimed: ClaimedDelivery, result: AttemptResult) -> None:
    """Record an attempt, and when the next one is due."""
    values = {
        "webhook": claimed.webhook_id,
        "event": claimed.event_id,
        "number": claimed.attempts,
        "status": result.status,
        "problem": result.problem,
        "ms": result.ms,
        "delivered": not result.problem,
        "delay": result.retry_after,
    }
    await connection.execute(INSERT_ATTEMPT, values)
    await connection.execute(END_ATTEMPT, values)


async def delete_old_events(database: Database, min_age_days: float, limit: int) -> int:
    """Delete notifications of this age with their deliveries, at most `limit`. Return their number."""
    return (await database.call_function(SWEEP_EVENTS, (f"{min_age_days} days", limit)))[0][0]

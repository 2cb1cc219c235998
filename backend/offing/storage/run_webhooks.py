"""What waits to be told of the end of single runs, as LangGraph's clients ask for."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from offing.storage.pool import Connection, Database
from offing.storage.webhooks import AttemptResult

CLAIM = "select tenant_id, run_id, event_id, address, attempts from app.claim_run_webhooks(%s::interval, %s)"

END_ATTEMPT = """
    update run_webhook
       set delivered_at = case when %(delivered)s then clock_timestamp() end,
           next_attempt_at = case when not %(delivered)s then clock_timestamp() + %(delay)s::interval end,
           status = %(status)s, problem = %(problem)s
     where run_id = %(run)s and delivered_at is null
"""
"""Without a delay, the delivery is given up: a sum with null is null."""

FIND_TIMES = "select started_at, ended_at from run where id = %s"

FIND_LAST_CHECKPOINT = """
    select c.checkpoint_id from checkpoint c
     where c.thread_id = %s and c.run_id = %s and c.ns = '' order by c.nth desc limit 1
"""


@dataclass(frozen=True, slots=True)
class ClaimedRunWebhook:
    """A delivery that this process attempts now."""

    tenant_id: UUID
    run_id: UUID
    event_id: UUID
    address: str
    attempts: int
    """Number of attempts, including this one."""


async def claim_run_webhooks(database: Database, lease: timedelta, limit: int) -> list[ClaimedRunWebhook]:
    """Claim deliveries that are due. If this process stops, others claim them again after the lease."""
    return [ClaimedRunWebhook(*row) for row in await database.call_function(CLAIM, (lease, limit))]


async def end_attempt(connection: Connection, run_id: UUID, result: AttemptResult) -> None:
    """Record an attempt, and when the next one is due."""
    values = {
        "run": run_id,
        "status": result.status,
        "problem": result.problem,
        "delivered": not result.problem,
        "delay": result.retry_after,
    }
    await connection.execute(END_ATTEMPT, values)


async def find_times(connection: Connection, run_id: UUID) -> tuple[datetime | None, datetime | None]:
    """Return when a run began and ended. `None` means that it did not."""
    row = await (await connection.execute(FIND_TIMES, (run_id,))).fetchone()
    return (row[0], row[1]) if row else (None, None)


async def find_last_checkpoint(connection: Connection, thread_id: UUID, run_id: UUID) -> str | None:
    """Return the last checkpoint that a run wrote. `None` means that it wrote none."""
    row = await (await connection.execute(FIND_LAST_CHECKPOINT, (thread_id, run_id))).fetchone()
    return row[0] if row else None

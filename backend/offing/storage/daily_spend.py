"""Daily spend of a tenant.

Money is reserved before a call and charged after it, within the daily spending limit. A
reservation belongs to one epoch of one claim. The database releases it when the epoch or the
run's status changes. The next claim releases the reservations of a crashed worker, in a separate
transaction.
"""

from datetime import date
from decimal import Decimal
from uuid import UUID

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken
from offing.storage.fencing_sql import LOCK_OWNED_RUN, fence_parameters
from offing.storage.pool import Connection

RESERVE = """
    with taken as (
      insert into daily_spend as s (tenant_id, day, reserved_usd) values (%(tenant)s, current_date, %(usd)s)
      on conflict (tenant_id, day) do update set reserved_usd = s.reserved_usd + excluded.reserved_usd
       where s.used_usd + s.reserved_usd + excluded.reserved_usd
             <= coalesce((select max_daily_spend_usd from tenant where id = %(tenant)s), 'Infinity')
      returning day)
    insert into reservation as r (run_id, fence, day, tenant_id, reserved_usd)
    select %(run)s, %(fence)s, day, %(tenant)s, %(usd)s from taken
    on conflict (run_id, fence, day) do update set reserved_usd = r.reserved_usd + excluded.reserved_usd
    returning day
"""
"""No row means that the daily spending limit would be exceeded. EXCEEDS_DAILY_LIMIT checks the
first reservation of a day.
"""

EXCEEDS_DAILY_LIMIT = "select coalesce(max_daily_spend_usd < %s, false) from tenant where id = %s"

SETTLE_RESERVATION = """
    with ours as (
      select r.fence, r.day, least(r.reserved_usd, %(reserved)s) as usd
        from reservation r join run on run.id = r.run_id and run.fence = r.fence
       where r.run_id = %(run)s and r.day = coalesce(%(day)s, current_date)
         and run.fence = %(fence)s and run.epoch = %(epoch)s for update of r),
    freed as (
      update reservation r set reserved_usd = r.reserved_usd - ours.usd from ours
       where r.run_id = %(run)s and r.fence = ours.fence and r.day = ours.day
      returning ours.usd)
    insert into daily_spend as s (tenant_id, day, used_usd) values (%(tenant)s, coalesce(%(day)s, current_date),
                                  %(used)s)
    on conflict (tenant_id, day) do update
      set used_usd = s.used_usd + excluded.used_usd, reserved_usd = greatest(0,
      s.reserved_usd - coalesce((select usd from freed), 0))
"""
"""Usage is always charged, even after the claim has ended. At most the amount that this epoch still
has reserved is released: triggers release the reservations of a claim or an epoch when it ends.
"""

RELEASE_LOST_RESERVATIONS = "delete from reservation where run_id = %(run)s and fence < %(fence)s"
"""A trigger gives deleted reservations back to the day."""

CAN_SPEND = """
    select coalesce(
      (select coalesce(sum(s.used_usd + s.reserved_usd), 0) + %(usd)s <= t.max_daily_spend_usd
         from daily_spend s where s.tenant_id = t.id and s.day = current_date), true)
      from tenant t where t.id = %(tenant)s
"""

CHARGE = """
    insert into daily_spend as s (tenant_id, day, used_usd) values (%(tenant)s, current_date, %(usd)s)
    on conflict (tenant_id, day) do update set used_usd = s.used_usd + excluded.used_usd
"""


async def can_spend(connection: Connection, tenant_id: UUID, cost_usd: Decimal) -> bool:
    """Return whether the daily spending limit allows a call outside a run. Nothing is reserved."""
    row = await (await connection.execute(CAN_SPEND, {"tenant": tenant_id, "usd": cost_usd})).fetchone()
    return row == (True,)


async def charge(connection: Connection, tenant_id: UUID, cost_usd: Decimal) -> None:
    """Charge the usage of a call outside a run."""
    await connection.execute(CHARGE, {"tenant": tenant_id, "usd": cost_usd})


async def reserve(connection: Connection, fence: FencingToken, cost_usd: Decimal) -> date | None:
    """Reserve money for a call and return the day of the reservation.

    `None` means that the daily spending limit would be exceeded.
    """
    over = await (await connection.execute(EXCEEDS_DAILY_LIMIT, (cost_usd, fence.tenant_id))).fetchone()
    if over == (True,):
        return None
    # Lock the run first, as appends do: otherwise branches of one run could deadlock.
    if await (await connection.execute(LOCK_OWNED_RUN, fence_parameters(fence))).fetchone() is None:
        raise LeaseLostError(str(fence.run_id), fence.number)
    parameters = {**fence_parameters(fence), "tenant": fence.tenant_id, "usd": cost_usd}
    row = await (await connection.execute(RESERVE, parameters)).fetchone()
    return None if row is None else row[0]


async def settle_reservation(
    connection: Connection, fence: FencingToken, reserved_usd: Decimal, used_usd: Decimal, day: date | None
) -> None:
    """Release a reservation and charge the usage on the day of the reservation.

    If `day` is `None`, use today.
    """
    parameters = {
        **fence_parameters(fence),
        "tenant": fence.tenant_id,
        "reserved": reserved_usd,
        "used": used_usd,
        "day": day,
    }
    await connection.execute(SETTLE_RESERVATION, parameters)


async def release_lost_reservations(connection: Connection, fence: FencingToken) -> None:
    """Release the reservations of earlier claims of the run, whose workers have crashed.

    Calling it again has no effect. It waits for other writers of the tenant's day, which a claim
    must never do; so call it in a separate transaction.
    """
    await connection.execute(RELEASE_LOST_RESERVATIONS, fence_parameters(fence))

"""Money of a tenant and day: set aside before a call, booked after it. The only home of the tenant's cap.

What is set aside belongs to one epoch of one claim. The database gives it back when the epoch or the run's status is
another; what a lost claim has left, the next one gives back, apart from being claimed.
"""

from datetime import date
from decimal import Decimal
from uuid import UUID

from offing.core.errors import Fenced
from offing.core.run import Fence
from offing.storage.fencing import SHARED, ours
from offing.storage.pool import Connection

RESERVE = """
    with taken as (
      insert into spend as s (tenant_id, day, reserved) values (%(tenant)s, current_date, %(usd)s)
      on conflict (tenant_id, day) do update set reserved = s.reserved + excluded.reserved
       where s.used + s.reserved + excluded.reserved
             <= coalesce((select daily_spend_usd from tenant where id = %(tenant)s), 'Infinity')
      returning day)
    insert into reservation as r (run_id, fence, day, tenant_id, usd)
    select %(run)s, %(fence)s, day, %(tenant)s, %(usd)s from taken
    on conflict (run_id, fence, day) do update set usd = r.usd + excluded.usd
    returning day
"""
"""No row: the tenant's cap leaves no room. A first reservation of the day is checked by OVER_CAP."""

OVER_CAP = "select coalesce(daily_spend_usd < %s, false) from tenant where id = %s"

SETTLE = """
    with ours as (
      select r.fence, r.day, least(r.usd, %(reserved)s) as usd
        from reservation r join run on run.id = r.run_id and run.fence = r.fence
       where r.run_id = %(run)s and r.day = coalesce(%(day)s, current_date)
         and run.fence = %(fence)s and run.epoch = %(epoch)s for update of r),
    freed as (
      update reservation r set usd = r.usd - ours.usd from ours
       where r.run_id = %(run)s and r.fence = ours.fence and r.day = ours.day
      returning ours.usd)
    insert into spend as s (tenant_id, day, used) values (%(tenant)s, coalesce(%(day)s, current_date), %(used)s)
    on conflict (tenant_id, day) do update
      set used = s.used + excluded.used, reserved = greatest(0, s.reserved - coalesce((select usd from freed), 0))
"""
"""Money that was used is booked, whoever used it. No more is given back than this epoch still has set aside: what a
claim or an epoch leaves is given back when it is over (`migrations/0025_epochs.sql`)."""

GIVE_BACK_LOST = "delete from reservation where run_id = %(run)s and fence < %(fence)s"
"""The day has back what is deleted (`migrations/0025_epochs.sql`)."""

ROOM = """
    select coalesce(
      (select coalesce(sum(s.used + s.reserved), 0) + %(usd)s <= t.daily_spend_usd
         from spend s where s.tenant_id = t.id and s.day = current_date), true)
      from tenant t where t.id = %(tenant)s
"""

BOOK = """
    insert into spend as s (tenant_id, day, used) values (%(tenant)s, current_date, %(usd)s)
    on conflict (tenant_id, day) do update set used = s.used + excluded.used
"""


async def room_for(connection: Connection, tenant: UUID, usd: Decimal) -> bool:
    """Whether the tenant's cap leaves room for a call outside any run. Nothing is set aside."""
    row = await (await connection.execute(ROOM, {"tenant": tenant, "usd": usd})).fetchone()
    return row == (True,)


async def book(connection: Connection, tenant: UUID, usd: Decimal) -> None:
    """Book what a call outside any run has used."""
    await connection.execute(BOOK, {"tenant": tenant, "usd": usd})


async def reserve(connection: Connection, fence: Fence, usd: Decimal) -> date | None:
    """Set money aside; the day on which. None: the tenant's cap for the day leaves no room for it."""
    over = await (await connection.execute(OVER_CAP, (usd, fence.tenant))).fetchone()
    if over == (True,):
        return None
    # The run first, as appends do it: the other way round, branches of one run would wait for each other for ever.
    if await (await connection.execute(SHARED, ours(fence))).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)
    parameters = {**ours(fence), "tenant": fence.tenant, "usd": usd}
    row = await (await connection.execute(RESERVE, parameters)).fetchone()
    return None if row is None else row[0]


async def settle(connection: Connection, fence: Fence, reserved: Decimal, used: Decimal, day: date | None) -> None:
    """Give back what was set aside and book what was used, on the day of the reservation. None: today."""
    parameters = {
        **ours(fence),
        "tenant": fence.tenant,
        "reserved": reserved,
        "used": used,
        "day": day,
    }
    await connection.execute(SETTLE, parameters)


async def give_back_lost(connection: Connection, fence: Fence) -> None:
    """Give back what earlier claims of the run, which were lost, had set aside. Once, whoever does it and how often.

    Waits for whoever writes the tenant's day, which no claim does: so it is in a transaction of its own.
    """
    await connection.execute(GIVE_BACK_LOST, ours(fence))

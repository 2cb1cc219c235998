"""Money of a tenant and day: set aside before a call, booked after it. The only home of the tenant's cap."""

from datetime import date
from decimal import Decimal
from uuid import UUID

from offing.core.errors import Fenced
from offing.core.run import Fence
from offing.storage.pool import Connection

RESERVE = """
    insert into spend as s (tenant_id, day, reserved) values (%(tenant)s, current_date, %(usd)s)
    on conflict (tenant_id, day) do update set reserved = s.reserved + excluded.reserved
     where s.used + s.reserved + excluded.reserved
           <= coalesce((select daily_spend_usd from tenant where id = %(tenant)s), 'Infinity')
    returning day
"""
"""No row: the tenant's cap leaves no room. A first reservation of the day is checked by OVER_CAP."""

OVER_CAP = "select coalesce(daily_spend_usd < %s, false) from tenant where id = %s"

HOLD = """
    update run set reserved_usd = reserved_usd + %s
     where id = %s and fence = %s and status = 'running' returning 1
"""

SETTLE = """
    with ours as (
      update run set reserved_usd = greatest(0, reserved_usd - %(reserved)s)
       where id = %(run)s and fence = %(fence)s returning 1)
    insert into spend as s (tenant_id, day, used) values (%(tenant)s, coalesce(%(day)s, current_date), %(used)s)
    on conflict (tenant_id, day) do update
      set used = s.used + excluded.used,
          reserved = greatest(0, s.reserved - case when exists (select from ours) then %(reserved)s else 0 end)
"""
"""Money that was used is booked, whoever used it. What a lost claim had set aside, the next one has released."""

RELEASE_LEFTOVER = """
    with left_over as (
      update run r set reserved_usd = 0
        from (select id, reserved_usd from run where id = %s and fence = %s and reserved_usd > 0 for update) as old
       where r.id = old.id returning old.reserved_usd)
    update spend set reserved = greatest(0, reserved - (select reserved_usd from left_over))
     where tenant_id = %s and day = current_date and exists (select from left_over)
"""
"""What had been set aside for calls whose outcome nobody knows."""


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
    if await (await connection.execute(HOLD, (usd, fence.run, fence.number))).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)
    row = await (await connection.execute(RESERVE, {"tenant": fence.tenant, "usd": usd})).fetchone()
    if row is None:
        await connection.execute(HOLD, (-usd, fence.run, fence.number))
        return None
    return row[0]


async def settle(connection: Connection, fence: Fence, reserved: Decimal, used: Decimal, day: date | None) -> None:
    """Give back what was set aside and book what was used, on the day of the reservation. None: today."""
    parameters = {
        "run": fence.run,
        "fence": fence.number,
        "tenant": fence.tenant,
        "reserved": reserved,
        "used": used,
        "day": day,
    }
    await connection.execute(SETTLE, parameters)


async def release_leftover(connection: Connection, fence: Fence) -> None:
    """At the start of a claim: free what calls still hold that will never be heard of again."""
    await connection.execute(RELEASE_LEFTOVER, (fence.run, fence.number, fence.tenant))

"""The budget of a rollout batch for its judges. A reservation and a limit are compared in one statement."""

from decimal import Decimal
from uuid import UUID

from offing.storage.pool import Connection

RESERVE = """
    update rollout_batch set judge_calls = judge_calls + 1, judge_cost_usd = judge_cost_usd + %(cost)s
     where id = %(batch)s and stop_reason = '' and (judge_max_calls is null or judge_calls < judge_max_calls)
       and (judge_max_cost_usd is null or judge_cost_usd + %(cost)s <= judge_max_cost_usd)
    returning id
"""

SETTLE = "update rollout_batch set judge_cost_usd = greatest(0, judge_cost_usd + %s) where id = %s"

STOP = """
    update rollout_batch set stop_reason = 'judge_budget', cancelled_at = coalesce(cancelled_at, clock_timestamp())
     where id = %s
"""

SUM_USAGE = """
    select coalesce(sum(judge_calls), 0)::int, coalesce(sum(judge_cost_usd), 0) from rollout_batch
     where starts_with(idempotency_key, %(prefix)s) and idempotency_key is distinct from %(except)s
"""


async def reserve_call(connection: Connection, batch_id: UUID, max_cost_usd: Decimal) -> bool:
    """Reserve one call of a judge. Returns whether the batch's budget had room for it."""
    values = {"batch": batch_id, "cost": max_cost_usd}
    return await (await connection.execute(RESERVE, values)).fetchone() is not None


async def settle_call(connection: Connection, batch_id: UUID, correction_usd: Decimal) -> None:
    """Correct the cost of a call: the real one minus the reserved one."""
    await connection.execute(SETTLE, (correction_usd, batch_id))


async def stop_batch(connection: Connection, batch_id: UUID) -> None:
    """Stop a batch because its budget is spent. It gets no more groups, retries and calls of judges."""
    await connection.execute(STOP, (batch_id,))


async def sum_usage(connection: Connection, key_prefix: str, except_key: str | None = None) -> tuple[int, Decimal]:
    """Return calls and cost of the judges of all batches whose idempotency key begins so, except one batch.

    An `except_key` of `None` leaves out none.
    """
    row = await (await connection.execute(SUM_USAGE, {"prefix": key_prefix, "except": except_key})).fetchone()
    return (0, Decimal()) if row is None else (int(row[0]), Decimal(row[1]))

"""What a tenant spent: by day, and by model where role calls record it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from psycopg.rows import class_row

from offing.storage.pool import Connection

MAX_DAYS = 90
MAX_MODELS_PER_DAY = 50

LIST_DAYS = """
    select d.day::date as day, coalesce(s.used_usd, 0) as used_usd, coalesce(s.reserved_usd, 0) as reserved_usd
      from generate_series(current_date - (%s::integer - 1), current_date, interval '1 day') as d(day)
      left join daily_spend s on s.day = d.day::date
     order by 1
"""

LIST_MODELS = """
    select engine, model, call_count, prompt_tokens, completion_tokens, cost_usd, is_priced, day from (
      select s.at::date as day, c.engine, c.model, count(*) as call_count,
             sum(c.prompt_tokens)::bigint as prompt_tokens, sum(c.completion_tokens)::bigint as completion_tokens,
             sum(c.cost_usd) as cost_usd, bool_and(c.priced) as is_priced,
             row_number() over (partition by s.at::date order by sum(c.cost_usd) desc, count(*) desc) as nth
        from run r join step s on s.run_id = r.id join role_call c on c.run_id = s.run_id and c.seq = s.seq
       where (r.ended_at is null or r.ended_at >= current_date - (%(days)s::integer - 1))
         and s.at >= current_date - (%(days)s::integer - 1)
         and (r.forked_at_seq is null or s.seq > r.forked_at_seq)
       group by 1, 2, 3) as spent
     where nth <= %(models)s
     order by day, cost_usd desc, engine, model
"""
"""Calls that a fork copied are counted once, with the run in which they were made."""


@dataclass(frozen=True, slots=True)
class DaySpending:
    """Spending of one day."""

    day: date
    used_usd: Decimal
    reserved_usd: Decimal
    """Reserved for calls in progress."""


@dataclass(frozen=True, slots=True)
class ModelSpending:
    """Recorded role calls of one model on one day."""

    engine: str
    model: str
    """Empty if the engine has no models."""
    call_count: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal
    is_priced: bool
    """Whether the price of every call is known. Otherwise the cost is too low."""
    day: date


async def list_days(connection: Connection, days: int) -> Sequence[DaySpending]:
    """Return each of the last `days` days including today, oldest first."""
    async with connection.cursor(row_factory=class_row(DaySpending)) as cursor:
        return await (await cursor.execute(LIST_DAYS, (days,))).fetchall()


async def list_models(connection: Connection, days: int) -> Sequence[ModelSpending]:
    """Return the models of each of the last `days` days, at most `MAX_MODELS_PER_DAY` a day."""
    async with connection.cursor(row_factory=class_row(ModelSpending)) as cursor:
        parameters = {"days": days, "models": MAX_MODELS_PER_DAY}
        return await (await cursor.execute(LIST_MODELS, parameters)).fetchall()

"""What the rollouts of several batches have cost, with their judges."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from psycopg.rows import class_row

from offing.storage.pool import Connection

SUM_COSTS = """
    with batches as (select id, judge_calls, judge_cost_usd from rollout_batch
                      where exists (select from unnest(%s::text[]) as p where starts_with(idempotency_key, p))),
    ran as (select count(*) as rollouts, coalesce(sum(r.tokens), 0) as tokens, coalesce(sum(r.cost_usd), 0) as cost_usd
              from rollout o join rollout_group g on g.id = o.group_id join run r on r.id = o.run_id
             where g.batch_id in (select id from batches))
    select ran.rollouts::int, ran.tokens::bigint, ran.cost_usd,
           coalesce(sum(judge_calls), 0)::int as judge_calls, coalesce(sum(judge_cost_usd), 0) as judge_cost_usd
      from ran left join batches on true group by ran.rollouts, ran.tokens, ran.cost_usd
"""


@dataclass(frozen=True, slots=True)
class RolloutCosts:
    """Sums over batches. A retry counts as a separate rollout."""

    rollouts: int
    tokens: int
    """Prompt and completion tokens of engines that report them. Rules and the extractive engine use none."""
    cost_usd: Decimal
    judge_calls: int
    judge_cost_usd: Decimal


async def sum_costs(connection: Connection, key_prefixes: Sequence[str]) -> RolloutCosts:
    """Return the costs of the batches whose idempotency key begins with one of the prefixes."""
    async with connection.cursor(row_factory=class_row(RolloutCosts)) as cursor:
        await cursor.execute(SUM_COSTS, (list(key_prefixes),))
        row = await cursor.fetchone()
    assert row is not None
    return row

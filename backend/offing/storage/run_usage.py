"""What a run has used: by role and model, over its turns, and by node of its graph."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection
from offing.storage.step_search import NODE_OF_STEP

LIST_ROLE_USAGE = """
    select c.role, c.engine, c.model, count(*) as calls, count(*) filter (where not c.is_accepted) as rejected,
           sum(c.prompt_tokens)::bigint as prompt_tokens, sum(c.cached_prompt_tokens)::bigint as cached_prompt_tokens,
           sum(c.completion_tokens)::bigint as completion_tokens, sum(c.reasoning_tokens)::bigint as reasoning_tokens,
           sum(c.cost_usd) as cost_usd, bool_and(c.priced or c.prompt_tokens + c.completion_tokens = 0) as is_priced,
           coalesce(sum(s.ms), 0)::bigint as ms
      from role_call c join step s on s.run_id = c.run_id and s.seq = c.seq
     where c.run_id = %s
     group by c.role, c.engine, c.model order by sum(c.cost_usd) desc, sum(c.completion_tokens) desc, c.role, c.model
     limit %s
"""

LIST_TURN_USAGE = """
    select turn, sum(tokens)::bigint as tokens, sum(cost_usd) as cost_usd
      from (select max(s.turn) over (order by c.seq) as turn, c.prompt_tokens + c.completion_tokens as tokens,
                   c.cost_usd
              from role_call c join step s on s.run_id = c.run_id and s.seq = c.seq where c.run_id = %s) as calls
     group by turn order by turn
"""
"""A call outside of the loop counts with the turn before it: the analysis with turn 0, the report with the last."""

LIST_NODE_USAGE = f"""
    select node, count(distinct superstep) as visits, count(*) as steps, coalesce(sum(ms), 0)::bigint as ms,
           sum(step_tokens)::bigint as tokens, coalesce(sum(cost_usd), 0) as cost_usd, max(seq) as last_seq,
           coalesce(array_agg(distinct role) filter (where role is not null), '{{}}') as roles
      from (select coalesce({NODE_OF_STEP}, '') as node, s.superstep, s.seq, s.ms, s.tokens as step_tokens, c.cost_usd,
                   c.role
              from step s left join role_call c on c.run_id = s.run_id and c.seq = s.seq
             where s.run_id = %s and s.superstep is not null) as calls
     group by node order by min(seq) limit %s
"""


@dataclass(frozen=True, slots=True)
class RoleUsage:
    """Usage of one role with one model. Calls whose answer was rejected are included."""

    role: str
    engine: str
    model: str
    calls: int
    rejected: int
    prompt_tokens: int
    cached_prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost_usd: Decimal
    is_priced: bool
    """Whether the price of the model is known. `False` means that the cost is too low."""
    ms: int
    """Duration of its calls in milliseconds."""


@dataclass(frozen=True, slots=True)
class TurnUsage:
    turn: int
    tokens: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What a node of the graph has recorded. An empty name stands for steps whose node is unknown."""

    node: str
    visits: int
    """Number of supersteps in which it recorded a call."""
    steps: int
    ms: int
    """Duration of its calls in milliseconds."""
    tokens: int
    cost_usd: Decimal
    last_seq: int
    roles: list[str]
    """Roles that it has called."""


async def list_role_usage(connection: Connection, run_id: UUID, limit: int) -> list[RoleUsage]:
    """Return the usage by role and model, the most expensive first."""
    async with connection.cursor(row_factory=class_row(RoleUsage)) as cursor:
        return await (await cursor.execute(LIST_ROLE_USAGE, (run_id, limit))).fetchall()


async def list_turn_usage(connection: Connection, run_id: UUID) -> list[TurnUsage]:
    """Return the usage of each turn that has any, in order."""
    async with connection.cursor(row_factory=class_row(TurnUsage)) as cursor:
        return await (await cursor.execute(LIST_TURN_USAGE, (run_id,))).fetchall()


async def list_node_usage(connection: Connection, run_id: UUID, limit: int) -> list[NodeUsage]:
    """Return the usage by node, in the order in which they first recorded a call."""
    async with connection.cursor(row_factory=class_row(NodeUsage)) as cursor:
        return await (await cursor.execute(LIST_NODE_USAGE, (run_id, limit))).fetchall()

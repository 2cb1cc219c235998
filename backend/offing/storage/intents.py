"""Intents: side effects that are about to happen.

An intent is written before the tool is called, so that a crash during the call is noticed.
"""

from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken
from offing.core.step import CallKey
from offing.core.tool import SideEffect
from offing.storage.fencing_sql import OWNS_RUN, fence_parameters
from offing.storage.pool import Connection

FIND_INTENT = "select 1 from intent where run_id = %s and superstep = %s and path = %s and ordinal = %s and digest = %s"

LIST_INTENTS_SINCE = (
    "select superstep, path, ordinal, digest, tool, args from intent where run_id = %s and superstep > %s"
)

INSERT_INTENT = f"""
    insert into intent (run_id, superstep, path, ordinal, digest, tenant_id, fence, tool, args, side_effect)
    select id, %(superstep)s, %(path)s, %(ordinal)s, %(digest)s, tenant_id, fence, %(tool)s, %(args)s, %(effect)s
      from (select id, tenant_id, fence from run where {OWNS_RUN} for share) as held
    returning 1
"""


async def list_intents_since(
    connection: Connection, run_id: UUID, superstep: int
) -> list[tuple[CallKey, str, dict[str, Any]]]:
    """Return the intents declared after a checkpoint.

    The checkpoint is that of `superstep`. Each intent is returned as its call key, its tool and
    its arguments.
    """
    rows = await (await connection.execute(LIST_INTENTS_SINCE, (run_id, superstep))).fetchall()
    return [(CallKey(at, path, nth, digest), tool, args) for at, path, nth, digest, tool, args in rows]


async def insert_intent(
    connection: Connection, fence: FencingToken, key: CallKey, tool: str, args: dict[str, Any], side_effect: SideEffect
) -> bool:
    """Write an intent.

    Return false if an earlier claim has already written it, so that the side effect may have
    happened.
    """
    intent_key = (fence.run_id, key.superstep, key.path, key.ordinal, key.digest)
    if await (await connection.execute(FIND_INTENT, intent_key)).fetchone() is not None:
        return False
    parameters = {
        **fence_parameters(fence),
        "superstep": key.superstep,
        "path": key.path,
        "ordinal": key.ordinal,
        "digest": key.digest,
        "tool": tool,
        "args": Jsonb(args, dumps=orjson.dumps),
        "effect": side_effect,
    }
    if await (await connection.execute(INSERT_INTENT, parameters)).fetchone() is None:
        raise LeaseLostError(str(fence.run_id), fence.number)
    return True

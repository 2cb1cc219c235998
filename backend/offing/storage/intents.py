"""Effects that were about to happen, written before a tool with an effect is called: a loss in mid-call is seen."""

from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.errors import Fenced
from offing.core.run import Fence
from offing.core.step import CallKey
from offing.core.tool import Effect
from offing.storage.fencing import OURS, ours
from offing.storage.pool import Connection

FOUND = "select 1 from intent where run_id = %s and superstep = %s and path = %s and ordinal = %s and digest = %s"

SINCE = "select superstep, path, ordinal, digest, tool, args from intent where run_id = %s and superstep > %s"

OPEN = f"""
    insert into intent (run_id, superstep, path, ordinal, digest, tenant_id, fence, tool, args, effect)
    select id, %(superstep)s, %(path)s, %(ordinal)s, %(digest)s, tenant_id, fence, %(tool)s, %(args)s, %(effect)s
      from (select id, tenant_id, fence from run where {OURS} for share) as held
    returning 1
"""


async def since(connection: Connection, run: UUID, superstep: int) -> list[tuple[CallKey, str, dict[str, Any]]]:
    """Return what was declared after the checkpoint of `superstep`: the call key, the tool and its arguments."""
    rows = await (await connection.execute(SINCE, (run, superstep))).fetchall()
    return [(CallKey(at, path, nth, digest), tool, args) for at, path, nth, digest, tool, args in rows]


async def declare(
    connection: Connection, fence: Fence, key: CallKey, tool: str, args: dict[str, Any], effect: Effect
) -> bool:
    """Write the intent. False: an earlier claim had already written it, so the effect may have happened."""
    place = (fence.run, key.superstep, key.path, key.ordinal, key.digest)
    if await (await connection.execute(FOUND, place)).fetchone() is not None:
        return False
    parameters = {
        **ours(fence),
        "superstep": key.superstep,
        "path": key.path,
        "ordinal": key.ordinal,
        "digest": key.digest,
        "tool": tool,
        "args": Jsonb(args, dumps=orjson.dumps),
        "effect": effect,
    }
    if await (await connection.execute(OPEN, parameters)).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)
    return True

"""Updates of the tool policy of a running run."""

from uuid import UUID

from psycopg.types.json import Jsonb

from offing.core.tool_policy import ToolPolicy, hash_tool_policy
from offing.storage.pool import Connection

UPDATE_TOOL_POLICY = "update run set tool_policy = %s, tool_policy_sha256 = %s where id = %s"


async def update_tool_policy(connection: Connection, run_id: UUID, tool_policy: ToolPolicy) -> None:
    """Replace the tool policy by a restriction of it.

    The caller has claimed the run and proved the restriction.
    """
    await connection.execute(UPDATE_TOOL_POLICY, (Jsonb(tool_policy.to_json()), hash_tool_policy(tool_policy), run_id))

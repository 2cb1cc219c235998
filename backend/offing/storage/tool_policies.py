"""The tool policy of a run that is under way: the only home of its change. Knows no rule."""

from uuid import UUID

from psycopg.types.json import Jsonb

from offing.core.policy import Policy, policy_hash
from offing.storage.pool import Connection

SET_POLICY = "update run set policy = %s, policy_sha256 = %s where id = %s"


async def narrow(connection: Connection, run: UUID, policy: Policy) -> None:
    """Put a narrower policy in force. Whoever calls holds the run and has proved that it is narrower."""
    await connection.execute(SET_POLICY, (Jsonb(policy.stored()), policy_hash(policy), run))

"""Selection of role calls whose logprobs are recomputed, and the quarantine of those that differ."""

from collections.abc import Sequence
from uuid import UUID

from offing.storage.pool import Connection

SAMPLE_ROLE_CALLS = """
    select run_id, seq from role_call
     where trainable = 'rl' and quarantine = '' and (%(run)s::uuid is null or run_id = %(run)s)
       and (%(policy)s::text is null or policy = %(policy)s)
     order by hashtextextended(run_id::text || seq::text, %(seed)s) limit %(most)s
"""

QUARANTINE_ROLE_CALL = "update role_call set quarantine = %s where run_id = %s and seq = %s and quarantine = ''"


async def sample_role_calls(
    connection: Connection, limit: int, seed: int, *, run_id: UUID | None = None, policy: str | None = None
) -> dict[UUID, list[int]]:
    """Return at most `limit` random role calls that may be trained with ratios: seqs by run.

    They are chosen by `seed`. `None` means any run or policy.
    """
    values = {"run": run_id, "policy": policy, "seed": seed, "most": limit}
    drawn: dict[UUID, list[int]] = {}
    for of, seq in await (await connection.execute(SAMPLE_ROLE_CALLS, values)).fetchall():
        drawn.setdefault(of, []).append(seq)
    return drawn


async def quarantine_role_calls(connection: Connection, run_id: UUID, reasons: Sequence[tuple[int, str]]) -> None:
    """Quarantine role calls, each with its reason.

    A role call that is already quarantined keeps its reason.
    """
    for seq, reason in reasons:
        await connection.execute(QUARANTINE_ROLE_CALL, (reason, run_id, seq))

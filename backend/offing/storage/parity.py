"""Which turns to compute again, and the mark on those whose record is in doubt."""

from collections.abc import Sequence
from uuid import UUID

from offing.storage.pool import Connection

SAMPLE = """
    select run_id, seq from turn
     where trainable = 'rl' and quarantine = '' and (%(run)s::uuid is null or run_id = %(run)s)
       and (%(policy)s::text is null or policy = %(policy)s)
     order by hashtextextended(run_id::text || seq::text, %(seed)s) limit %(most)s
"""

QUARANTINE = "update turn set quarantine = %s where run_id = %s and seq = %s and quarantine = ''"


async def sample(
    connection: Connection, most: int, seed: int, *, run: UUID | None = None, policy: str | None = None
) -> dict[UUID, list[int]]:
    """At most `most` turns that may be trained by ratios, drawn by `seed`: seqs by run. None: of any run or policy."""
    values = {"run": run, "policy": policy, "seed": seed, "most": most}
    drawn: dict[UUID, list[int]] = {}
    for of, seq in await (await connection.execute(SAMPLE, values)).fetchall():
        drawn.setdefault(of, []).append(seq)
    return drawn


async def quarantine(connection: Connection, run: UUID, doubts: Sequence[tuple[int, str]]) -> None:
    """Mark turns with why they are in doubt. A mark that stands already stays."""
    for seq, reason in doubts:
        await connection.execute(QUARANTINE, (reason, run, seq))

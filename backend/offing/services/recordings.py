"""A stored run as a recording: all that its graph saw, for a test that replays it. Knows no test kit."""

from uuid import UUID

from offing.core.errors import Conflict
from offing.core.step import Step
from offing.storage import runs, steps, trajectories
from offing.storage.pool import Database
from offing.storage.runs import RunRow


async def recorded(
    database: Database, tenant: UUID, run: UUID
) -> tuple[RunRow, tuple[Step, ...], tuple[tuple[str, str], ...]]:
    """The run, its steps, and the earlier questions of its thread. Raises NotFound, and Conflict while it goes on."""
    async with database.transaction(tenant) as connection:
        row = await runs.by_id(connection, run)
        if not row.terminal:
            raise Conflict("The run has not ended.", "Wait for it, or cancel it first.")
        log = await steps.after(connection, run, 0, 1_000_000)
        return row, tuple(log), await trajectories.earlier_answers(connection, run)

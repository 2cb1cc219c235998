"""Read a stored run as a recording: everything that its graph saw, for a test that replays it."""

from uuid import UUID

from offing.core.errors import Conflict
from offing.core.step import Step
from offing.storage import runs, steps, trajectories
from offing.storage.pool import Database
from offing.storage.runs import RunRow


async def get_recording(
    database: Database, tenant_id: UUID, run_id: UUID
) -> tuple[RunRow, tuple[Step, ...], tuple[tuple[str, str], ...]]:
    """Return the run, its steps, and the earlier questions of its thread.

    Raises NotFound, and Conflict while the run is active.
    """
    async with database.transaction(tenant_id) as connection:
        row = await runs.get_run(connection, run_id)
        if not row.is_terminal:
            raise Conflict("The run has not ended.", "Wait for it, or cancel it first.")
        log = await steps.list_steps_after(connection, run_id, 0, 1_000_000)
        return row, tuple(log), await trajectories.list_earlier_answers(connection, run_id)

"""Release of a waiting run: whether it can continue, and how it is released otherwise.

The transaction that meets the wait condition also queues the run. It locks the row of the run first
(`runs.lock_run`, `runs.requeue_waiting_run`) and checks afterwards, in a separate statement. The
release does the same, so that one of the two sees the other.
"""

from uuid import UUID

from offing.core.run import CancelMode, RunStatus
from offing.kernel.wait_conditions import PendingWaits
from offing.storage import input_requests, runs
from offing.storage.claims import Release
from offing.storage.pool import Connection


async def decide_release(
    connection: Connection, run_id: UUID, waits: PendingWaits, *, finish_requested: bool
) -> Release:
    """Return how to release a waiting run.

    Call it in the transaction that releases the run and locks its row.

    `finish_requested` means that the slice knew of a request to finish early. A later request must not
    wait with the run.
    """
    control_request = await runs.get_control_request(connection, run_id)
    if control_request.cancel_mode is CancelMode.DISCARD or (
        control_request.cancel_mode is CancelMode.FINISH and not finish_requested
    ):
        return Release(RunStatus.QUEUED)
    if control_request.pause_requested:
        return Release(RunStatus.PAUSED, waiting_for="a person to resume it")
    if await _can_continue(connection, run_id, waits):
        return Release(RunStatus.QUEUED)
    return Release(
        RunStatus.WAITING,
        waiting_for=waits.description,
        wait_seconds=await _compute_wait_seconds(connection, run_id, waits),
    )


async def _can_continue(connection: Connection, run_id: UUID, waits: PendingWaits) -> bool:
    """Return whether a branch can continue already."""
    raised = [interrupt.id for interrupt in waits.interrupts]
    if waits.needs_human_input and await input_requests.has_response(connection, run_id, waits.request_numbers, raised):
        return True
    for started in waits.run_id_groups:
        if await runs.have_ended(connection, started):
            return True
    return False


async def _compute_wait_seconds(connection: Connection, run_id: UUID, waits: PendingWaits) -> float | None:
    """Return the seconds until the run must check again: until a default is due, or until its deadline.

    `None` means that no time is set.
    """
    if not waits.needs_human_input:
        return None
    wait_seconds = [
        await input_requests.find_seconds_to_default(connection, run_id),
        await runs.find_seconds_to_deadline(connection, run_id),
    ]
    known_seconds = [seconds for seconds in wait_seconds if seconds is not None]
    return max(0.0, min(known_seconds)) if known_seconds else None

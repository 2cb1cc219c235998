"""When a waiting run can continue, and how it is released until then.

Whoever makes the thing be there queues the run in the same transaction. It locks the run's row first (`runs.locked`,
`runs.queue_waiting`) and looks afterwards, in a statement of its own, because the release does so too: one of the two
sees the other.
"""

from uuid import UUID

from offing.core.run import CancelMode, RunStatus
from offing.kernel.wait_conditions import Awaited
from offing.storage import questions, runs
from offing.storage.pool import Connection
from offing.storage.runs import Release


async def release(connection: Connection, run: UUID, wanted: Awaited, *, told_to_write: bool) -> Release:
    """How to hand back a run that waits, decided in the transaction that does it and holds the run's row.

    `told_to_write`: this slice knew that it should write. A wish that came since must not wait with the run.
    """
    wish = await runs.wish(connection, run)
    if wish.cancel is CancelMode.DISCARD or (wish.cancel is CancelMode.WRITE and not told_to_write):
        return Release(RunStatus.QUEUED)
    if wish.pause:
        return Release(RunStatus.PAUSED, waiting_for="a person to resume it")
    if await _is_there(connection, run, wanted):
        return Release(RunStatus.QUEUED)
    return Release(RunStatus.WAITING, waiting_for=wanted.words, wait_seconds=await _patience(connection, run, wanted))


async def _is_there(connection: Connection, run: UUID, wanted: Awaited) -> bool:
    """Whether one branch can go on already."""
    raised = [interrupt.id for interrupt in wanted.interrupts]
    if wanted.of_people and await questions.some_answered(connection, run, wanted.questions, raised):
        return True
    for started in wanted.runs:
        if await runs.all_ended(connection, started):
            return True
    return False


async def _patience(connection: Connection, run: UUID, wanted: Awaited) -> float | None:
    """Seconds after which the run looks again by itself: a default falls due, or the run's deadline passes."""
    if not wanted.of_people:
        return None
    left = [await questions.until_due(connection, run), await runs.until_deadline(connection, run)]
    return max(0.0, min(known)) if (known := [seconds for seconds in left if seconds is not None]) else None

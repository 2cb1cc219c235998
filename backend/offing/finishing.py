"""Work that must be done to its end although whoever waits for it is cancelled. Knows no room."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` even when the caller is cancelled meanwhile; the cancellation then goes on, its cause an error."""
    task = asyncio.ensure_future(work)
    if (cancelled := await over(task)) is None:
        return task.result()
    raise cancelled from None if task.cancelled() else task.exception()


async def over(task: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait until `task` is over, however often the caller is cancelled meanwhile. The first cancellation; None: none.

    A graph's runner cancels a branch twice: beside the branch that failed, and when it leaves.
    """
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    return cancelled

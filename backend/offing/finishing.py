"""Work that must be done to its end although whoever waits for it is cancelled. Knows no room."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` however often the caller is cancelled meanwhile; the first cancellation then goes on, its cause an
    error.

    A graph's runner cancels a branch twice: beside the branch that failed, and when it leaves.
    """
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is None:
        return task.result()
    raise cancelled from None if task.cancelled() else task.exception()

"""Work that must be done to its end although whoever waits for it is cancelled. Knows no room."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` even when the caller is cancelled meanwhile; the cancellation then goes on, its cause an error."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        if task.cancelled():
            raise
        await asyncio.wait([task])
        raise cancelled from None if task.cancelled() else task.exception()

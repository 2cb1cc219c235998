"""Awaiting work that must be completed even if its caller is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_to_completion(awaitable: Coroutine[Any, Any, T]) -> T:
    """Await `awaitable` to its end, however often the caller is cancelled meanwhile.

    Afterwards the first cancellation is raised. An error of `awaitable` becomes its cause. A LangGraph
    runner cancels a branch twice: when another branch has failed, and when the runner exits.
    """
    task, cancelled = asyncio.ensure_future(awaitable), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is None:
        return task.result()
    raise cancelled from None if task.cancelled() else task.exception()

"""Awaiting work that must be completed even if its caller is cancelled, and ending work that goes on until then."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

REPEAT_SECONDS = 0.1
"""Time after which a task that still runs is cancelled again."""


async def cancel_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until all have ended. Their results and errors are dropped.

    Up to Python 3.11, `asyncio.wait_for`, with which redis-py writes, drops a cancellation that arrives as the write
    ends (python/cpython#86296). A task that goes on until it is cancelled would then never end.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=REPEAT_SECONDS)


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

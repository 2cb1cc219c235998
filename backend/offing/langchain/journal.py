"""A function of the graph's own whose result is read back after a loss: the only home of that wrapping."""

import asyncio
import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

from offing.sdk.running import journal, waited

Work = TypeVar("Work", bound=Callable[..., Any])


def journalled(work: Work) -> Work:
    """Record what the function returned, plain data, and return that when its node runs again after a loss.

    Below `@tool`, or on anything that a node calls. The same arguments in the same node are the same call. Lost between
    its effect and the record, it is done again: an effect that must not happen twice belongs into a tool of ours.
    """
    if inspect.iscoroutinefunction(work):

        @wraps(work)
        async def recorded(*args: Any, **named: Any) -> Any:
            return await journal().once(work.__name__, {"args": args, "named": named}, partial(work, *args, **named))

        return cast(Work, recorded)

    @wraps(work)
    def recorded_and_waited(*args: Any, **named: Any) -> Any:
        async def done() -> Any:
            return await asyncio.to_thread(work, *args, **named)

        return waited(journal().once(work.__name__, {"args": args, "named": named}, done))

    return cast(Work, recorded_and_waited)

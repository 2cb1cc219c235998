"""Durable calls: functions of a graph whose results are recorded and returned after a crash."""

import asyncio
import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

from offing.sdk.current_run import get_journal, run_blocking

Function = TypeVar("Function", bound=Callable[..., Any])


def durable_call(function: Function) -> Function:
    """Record the result of a function, and return it when the node runs again after a crash.

    The result must be plain data. Use it below `@tool`, or on any function that a node calls. Calls
    with the same arguments in the same node are the same call. If the worker crashes after the side
    effect but before the record, the function runs again. A side effect that must not happen twice
    therefore belongs in a custom tool.
    """
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def recorded(*args: Any, **named: Any) -> Any:
            return await get_journal().run_once(
                function.__name__, {"args": args, "named": named}, partial(function, *args, **named)
            )

        return cast(Function, recorded)

    @wraps(function)
    def recorded_and_waited(*args: Any, **named: Any) -> Any:
        async def execute() -> Any:
            return await asyncio.to_thread(function, *args, **named)

        return run_blocking(get_journal().run_once(function.__name__, {"args": args, "named": named}, execute))

    return cast(Function, recorded_and_waited)

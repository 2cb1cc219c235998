"""Lookup of the current run, for code that receives no context.

A worker sets the context while it executes a graph. Code written for other frameworks finds it
here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from offing.core.errors import OffingError
from offing.core.run import StopReason
from offing.sdk.context import RunContext

Result = TypeVar("Result")


class NoCurrentRunError(OffingError):
    """A function that requires a run was called outside one."""

    code = "outside_run"


class EventLoopBlockedError(OffingError):
    """A blocking call was made on the event loop, which would wait forever."""

    code = "blocked_loop"


@runtime_checkable
class Journal(Protocol):
    """A run context that records the results of a graph's own functions."""

    async def run_once(self, name: str, arguments: Any, function: Callable[[], Awaitable[Any]]) -> Any:
        """Run a function once under this name and these arguments, and return its result.

        The result must be plain data. After a crash the recorded result is returned.
        """
        ...


@dataclass(slots=True)
class _CurrentRun:
    context: RunContext
    loop: asyncio.AbstractEventLoop
    pending_futures: set[Future[Any]] = field(default_factory=set[Future[Any]])
    has_ended: bool = False
    """Whether the run is no longer executed in this process."""
    stop_reason: StopReason | None = None
    """Reason why calls are finally rejected. `None` means that they are not."""


_current_run: ContextVar[_CurrentRun | None] = ContextVar("offing_run", default=None)


@contextmanager
def use_run(context: RunContext) -> Generator[Callable[[], StopReason | None]]:
    """Make `context` the current run for the code within.

    Work that threads still wait for at the end is cancelled. Yields a function that returns why code
    within was stopped, even if that code has caught the exception. `None` means that it was not
    stopped.
    """
    carried = _CurrentRun(context, asyncio.get_running_loop())
    token = _current_run.set(carried)
    try:
        yield lambda: carried.stop_reason
    finally:
        _current_run.reset(token)
        carried.has_ended = True
        for future in tuple(carried.pending_futures):
            future.cancel()


def get_current_run() -> RunContext:
    """Return the context of the run that executes this code. Raises NoCurrentRunError."""
    return _get_current().context


def record_stop(stop_reason: StopReason) -> None:
    """Record that the run must stop, because of a limit or a person's request. The first reason counts."""
    carried = _get_current()
    carried.stop_reason = carried.stop_reason or stop_reason


def is_on_run_loop() -> bool:
    """Return whether this code runs on the run's event loop, where blocking is not allowed.

    Raises NoCurrentRunError.
    """
    return is_on_loop(_get_current().loop)


def get_journal() -> Journal:
    """Return the journal of the run that executes this code. Raises NoCurrentRunError if it has none."""
    run = get_current_run()
    if not isinstance(run, Journal):
        raise NoCurrentRunError("No run is active, so the result of a durable call cannot be recorded.")
    return run


def run_blocking(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on the run's event loop and return its result, for code in another thread.

    Raises NoCurrentRunError outside a run, and EventLoopBlockedError on the event loop itself.
    """
    try:
        carried = _get_current()
        if is_on_loop(carried.loop):
            raise EventLoopBlockedError(
                "A blocking call was made in an async function. Use its async form, such as ainvoke."
            )
    except OffingError:
        coroutine.close()
        raise
    future = asyncio.run_coroutine_threadsafe(coroutine, carried.loop)
    carried.pending_futures.add(future)
    if carried.has_ended:  # the run ended just before
        future.cancel()
    try:
        return future.result()
    except CancelledError:
        raise NoCurrentRunError("This worker lost its claim on the run while a thread waited for an answer.") from None
    finally:
        carried.pending_futures.discard(future)


def _get_current() -> _CurrentRun:
    carried = _current_run.get()
    if carried is None:
        raise NoCurrentRunError("This works only inside a run. Register the graph, and start a run of it.")
    return carried


def is_on_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether the caller runs on this event loop and would block it by waiting."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False

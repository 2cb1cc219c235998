"""The run that the code being executed belongs to, for code that is handed no context: the only home of that lookup.

A worker carries a run's context while it executes the run's graph; code written for other frameworks finds it here.
Knows no framework and no storage.
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


class OutsideRun(OffingError):
    """Something that only works inside a run was used outside one."""

    code = "outside_run"


class BlockedLoop(OffingError):
    """A call that waits was made from the event loop itself, which would wait for ever."""

    code = "blocked_loop"


@runtime_checkable
class Journal(Protocol):
    """A context that keeps what a function of the graph's own returned."""

    async def once(self, name: str, given: Any, work: Callable[[], Awaitable[Any]]) -> Any:
        """What `work` returned under this name and these arguments, plain data; read back after a loss."""
        ...


@dataclass(slots=True)
class _Carried:
    context: RunContext
    loop: asyncio.AbstractEventLoop
    waited_for: set[Future[Any]] = field(default_factory=set[Future[Any]])
    over: bool = False
    """The run is not executed here any more."""
    stopped: StopReason | None = None
    """Why a call was refused for good. None: none was."""


_carried: ContextVar[_Carried | None] = ContextVar("offing_run", default=None)


@contextmanager
def carrying(context: RunContext) -> Generator[Callable[[], StopReason | None]]:
    """Make `context` the one that code within finds. What threads still wait for at the end is cancelled.

    Gives what tells why code within was stopped, also where it has caught what told it so. None: it was not.
    """
    carried = _Carried(context, asyncio.get_running_loop())
    token = _carried.set(carried)
    try:
        yield lambda: carried.stopped
    finally:
        _carried.reset(token)
        carried.over = True
        for future in tuple(carried.waited_for):
            future.cancel()


def running() -> RunContext:
    """The context of the run that executes this code. Raises OutsideRun."""
    return _found().context


def stopped(reason: StopReason) -> None:
    """Note that the run goes no further: a limit was reached, or a person asked to stop. The first reason stands."""
    carried = _found()
    carried.stopped = carried.stopped or reason


def on_its_loop() -> bool:
    """Whether this code runs on the run's event loop itself, where nobody may wait. Raises OutsideRun."""
    return on_loop(_found().loop)


def journal() -> Journal:
    """The journal of the run that executes this code. Raises OutsideRun where nothing is kept."""
    found = running()
    if not isinstance(found, Journal):
        raise OutsideRun("Nothing is kept here, so that a function cannot be journalled.")
    return found


def waited(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work` on the run's event loop, for code in a thread of its own.

    Raises OutsideRun outside a run, and BlockedLoop on the event loop itself.
    """
    try:
        carried = _found()
        if on_loop(carried.loop):
            raise BlockedLoop("A call that waits was made in an async function: use its async form, such as ainvoke.")
    except OffingError:
        work.close()
        raise
    future = asyncio.run_coroutine_threadsafe(work, carried.loop)
    carried.waited_for.add(future)
    if carried.over:  # in the moment before
        future.cancel()
    try:
        return future.result()
    except CancelledError:
        raise OutsideRun("The run was taken from this worker while a thread waited for an answer.") from None
    finally:
        carried.waited_for.discard(future)


def _found() -> _Carried:
    carried = _carried.get()
    if carried is None:
        raise OutsideRun("This works only inside a run: register the graph, and start a run that names it.")
    return carried


def on_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the caller runs on this event loop, and would block it by waiting."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False

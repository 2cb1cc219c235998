"""Call slots: each call to a provider with a limit of concurrent calls holds one while it is sent.

Slots are counted for the whole installation where the process has installed slots that other processes share, and for
the event loop alone otherwise.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary

from offing.models.call_limits import CallLimit


class CallSlots(Protocol):
    """The slots of all limits."""

    def hold(self, limit: CallLimit) -> AbstractAsyncContextManager[bool]:
        """Wait for a slot, and hold it during the block, whose value tells whether the call had to wait.

        Calls get slots in the order in which they came. A call that is cancelled while it waits takes none.
        """
        ...


@dataclass(slots=True)
class _Scope:
    """The calls of one limit."""

    held: int = 0
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque[tuple[int, asyncio.Future[None]]])
    """Limit and signal of each waiting call, in order."""


class LocalCallSlots:
    """Call slots of one event loop."""

    def __init__(self) -> None:
        self._scopes: dict[str, _Scope] = {}

    @asynccontextmanager
    async def hold(self, limit: CallLimit) -> AsyncGenerator[bool]:
        """See `CallSlots`."""
        has_waited = await self._acquire(limit)
        try:
            yield has_waited
        finally:
            self._release(limit.scope)

    async def _acquire(self, limit: CallLimit) -> bool:
        scope = self._scopes.setdefault(limit.scope, _Scope())
        if not scope.waiting and scope.held < limit.max_calls:
            scope.held += 1
            return False
        entry = (limit.max_calls, asyncio.get_running_loop().create_future())
        scope.waiting.append(entry)
        try:
            await entry[1]
        except asyncio.CancelledError:
            if entry in scope.waiting:
                scope.waiting.remove(entry)
                self._admit(limit.scope)
            else:  # it got its slot in the same moment
                self._release(limit.scope)
            raise
        return True

    def _release(self, name: str) -> None:
        self._scopes[name].held -= 1
        self._admit(name)

    def _admit(self, name: str) -> None:
        """Give free slots to the calls that wait longest."""
        scope = self._scopes[name]
        while scope.waiting and scope.held < scope.waiting[0][0]:
            _, signal = scope.waiting.popleft()
            if not signal.done():
                scope.held += 1
                signal.set_result(None)
        if not scope.held and not scope.waiting:
            del self._scopes[name]


_BY_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, CallSlots] = WeakKeyDictionary()


def install_call_slots(slots: CallSlots) -> None:
    """Let the engines of the running event loop use these slots."""
    _BY_LOOP[asyncio.get_running_loop()] = slots


def get_call_slots() -> CallSlots:
    """Return the slots of the running event loop."""
    return _BY_LOOP.setdefault(asyncio.get_running_loop(), LocalCallSlots())


@dataclass(frozen=True, slots=True)
class SlotGate:
    """The limits of one endpoint, as one role call sees them."""

    limits: Sequence[CallLimit]
    slots: CallSlots
    clock: Callable[[], float]

    async def enter(self, stack: AsyncExitStack, remaining_seconds: float) -> tuple[bool, float]:
        """Enter a slot of each limit into the stack.

        Return whether this succeeded in the remaining seconds, and the seconds waited: 0 if a slot was free. All calls
        take the slots of two limits in the same order, so they cannot wait for each other.
        """
        began, has_waited = self.clock(), False
        try:
            async with asyncio.timeout(remaining_seconds if remaining_seconds < float("inf") else None):
                for limit in self.limits:
                    has_waited |= await stack.enter_async_context(self.slots.hold(limit))
        except TimeoutError:
            return False, self.clock() - began
        return True, self.clock() - began if has_waited else 0.0

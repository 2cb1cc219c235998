"""Hints given by requests: they are given, but no answer waits for them for long, whatever state Redis is in."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol
from uuid import UUID

from offing.core.step import Step
from offing.services import rollouts, runs

MOST_WAIT = 0.25
"""Seconds of a request. A hint that takes longer goes on by itself."""

MOST_AT_ONCE = 8
"""Unfinished hints. More are dropped: the sweeper and the heartbeat find the runs without them."""


class Hints(runs.Hints, rollouts.Hints, Protocol):
    """All that requests give."""


class HurriedHints:
    """The hints of `slow`, each waited for at most `MOST_WAIT`."""

    def __init__(self, slow: Hints) -> None:
        self._slow = slow
        self._unfinished: set[asyncio.Task[None]] = set()

    async def wake(self, run: UUID) -> None:
        await self._give(self._slow.wake(run))

    async def wake_all(self, runs: Sequence[UUID]) -> None:
        await self._give(self._slow.wake_all(runs))

    async def nudge(self, run: UUID) -> None:
        await self._give(self._slow.nudge(run))

    async def steps(self, tenant: UUID, run: UUID, new: Sequence[Step]) -> None:
        await self._give(self._slow.steps(tenant, run, list(new)))

    async def close(self) -> None:
        """Let go of hints that are still under way."""
        for hint in self._unfinished:
            hint.cancel()
        await asyncio.gather(*self._unfinished, return_exceptions=True)

    async def _give(self, hint: Coroutine[Any, Any, None]) -> None:
        if len(self._unfinished) >= MOST_AT_ONCE:
            hint.close()
            return
        task = asyncio.create_task(hint)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        done, _ = await asyncio.wait({task}, timeout=MOST_WAIT)
        for finished in done:
            finished.result()

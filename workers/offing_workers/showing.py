"""What a worker shows to those who watch, sent beside the work instead of in its way.

Knows the bus by two methods. Steps of one run stay in order; what a run does is shown only when it lasts.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from offing.core.step import Step

LASTS = 0.25
"""Seconds before a call is worth telling of."""

MOST = 256
"""Steps of one run that wait to be sent; watchers find older ones in Postgres."""

Watched = tuple[UUID, UUID]
"""Tenant and run."""


class Viewers(Protocol):
    """Whoever watches runs live. Never raises."""

    async def steps(self, tenant: UUID, run: UUID, steps: Sequence[Step], /) -> None: ...

    async def doing(self, tenant: UUID, run: UUID, text: str | None, since: datetime | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class RunSink:
    """Those who watch one run."""

    viewers: Viewers
    tenant: UUID
    run: UUID

    async def steps(self, steps: Sequence[Step], /) -> None:
        await self.viewers.steps(self.tenant, self.run, steps)

    async def action(self, text: str | None, /) -> None:
        await self.viewers.doing(self.tenant, self.run, text)


class Showing:
    """One process's outlet to the bus. Its methods return at once."""

    def __init__(self, bus: Viewers) -> None:
        self._bus = bus
        self._steps: dict[Watched, list[Step]] = {}
        self._doing: dict[Watched, tuple[str | None, datetime | None]] = {}
        self._timers: dict[Watched, asyncio.TimerHandle] = {}
        self._shown: set[Watched] = set()
        self._something = asyncio.Event()
        self._sender = asyncio.create_task(self._send())

    async def steps(self, tenant: UUID, run: UUID, new: Sequence[Step]) -> None:
        waiting = self._steps.setdefault((tenant, run), [])
        waiting.extend(new)
        del waiting[:-MOST]
        self._quiet((tenant, run))
        self._say((tenant, run), None, None)
        self._something.set()

    async def doing(self, tenant: UUID, run: UUID, text: str | None, since: datetime | None = None) -> None:
        watched = (tenant, run)
        self._quiet(watched)
        if text is None:
            self._say(watched, None, since)
        else:
            begun = since or datetime.now(UTC)
            timer = asyncio.get_running_loop().call_later(LASTS, self._say, watched, text, begun)
            self._timers[watched] = timer

    async def close(self) -> None:
        """Send what waits, and stop."""
        self._sender.cancel()
        await asyncio.gather(self._sender, return_exceptions=True)
        await self._send_all()

    def _quiet(self, watched: Watched) -> None:
        """The call that was going to be told of is over."""
        if timer := self._timers.pop(watched, None):
            timer.cancel()

    def _say(self, watched: Watched, text: str | None, since: datetime | None) -> None:
        self._timers.pop(watched, None)
        if text is None and watched not in self._shown:
            return
        self._shown.add(watched) if text else self._shown.discard(watched)
        self._doing[watched] = (text, since)
        self._something.set()

    async def _send(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            await self._send_all()

    async def _send_all(self) -> None:
        steps, self._steps = self._steps, {}
        doing, self._doing = self._doing, {}
        for (tenant, run), new in steps.items():
            await self._bus.steps(tenant, run, new)
        for (tenant, run), (text, since) in doing.items():
            await self._bus.doing(tenant, run, text, since)

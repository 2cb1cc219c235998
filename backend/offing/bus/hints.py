"""All hints of one process behind one door: waking workers, nudging them, and showing steps to whoever watches."""

from collections.abc import Sequence
from typing import Self
from uuid import UUID

from offing.bus.control import Control
from offing.bus.live import LiveBus
from offing.bus.wake import CeleryWake
from offing.core.step import Step


class BusHints:
    """Best effort throughout: nothing here raises for an absent Redis."""

    def __init__(self, redis_url: str, live: LiveBus | None = None) -> None:
        self._wake, self._control = CeleryWake(redis_url), Control(redis_url)
        self.live = live or LiveBus(redis_url)

    async def wake(self, run: UUID) -> None:
        await self._wake([run])

    async def wake_all(self, runs: Sequence[UUID]) -> None:
        await self._wake(runs)

    async def nudge(self, run: UUID) -> None:
        await self._control.nudge(run)

    async def steps(self, tenant: UUID, run: UUID, new: Sequence[Step]) -> None:
        await self.live.steps(tenant, run, new)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._control.close()
        await self.live.close()

"""Notifications about runs: dispatches, control notifications and new steps, through Redis."""

from collections.abc import Sequence
from typing import Protocol, Self
from uuid import UUID

from offing.bus.control import ControlChannel
from offing.bus.dispatch import CeleryDispatcher
from offing.bus.live import LiveBus
from offing.core.step import Step


class RunDispatcher(Protocol):
    """Dispatches a run, best effort."""

    async def dispatch_run(self, run_id: UUID) -> None:
        """Notify workers that the run can be claimed."""
        ...


class RunNotifier(RunDispatcher, Protocol):
    """Sends best-effort notifications about runs."""

    async def dispatch_runs(self, run_ids: Sequence[UUID]) -> None:
        """Notify workers that these runs can be claimed."""
        ...

    async def notify_control(self, run_id: UUID) -> None:
        """Notify the worker of the run that it has a control request."""
        ...

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None:
        """Publish new steps to subscribers."""
        ...


class BusNotifier:
    """Sends notifications through Redis, best effort: no method raises if Redis is unavailable."""

    def __init__(self, redis_url: str, live: LiveBus | None = None) -> None:
        self._wake, self._control = CeleryDispatcher(redis_url), ControlChannel(redis_url)
        self.live = live or LiveBus(redis_url)

    async def dispatch_run(self, run_id: UUID) -> None:
        await self._wake([run_id])

    async def dispatch_runs(self, run_ids: Sequence[UUID]) -> None:
        await self._wake(run_ids)

    async def notify_control(self, run_id: UUID) -> None:
        await self._control.notify_control(run_id)

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step]) -> None:
        await self.live.publish_steps(tenant_id, run_id, steps)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._wake.close()
        await self._control.close()
        await self.live.close()

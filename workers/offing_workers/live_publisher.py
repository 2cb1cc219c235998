"""The live publisher of a worker: sends steps and current actions to the bus in the background.

Steps of one run stay in order. An action is published only if it takes some time.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from offing.core.step import Step

MIN_ACTION_SECONDS = 0.25
"""Minimum duration of an action before it is published, in seconds."""

MAX_QUEUED_STEPS = 256
"""Maximum number of unsent steps per run. Subscribers read older ones from Postgres."""

RunKey = tuple[UUID, UUID]
"""Tenant id and run id."""


class LiveEventPublisher(Protocol):
    """Publishes live events of runs. It never raises."""

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None: ...

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class RunLiveSink:
    """The live sink of one run."""

    publisher: LiveEventPublisher
    tenant_id: UUID
    run_id: UUID

    async def publish_steps(self, steps: Sequence[Step], /) -> None:
        await self.publisher.publish_steps(self.tenant_id, self.run_id, steps)

    async def publish_action(self, text: str | None, /) -> None:
        await self.publisher.publish_action(self.tenant_id, self.run_id, text)


class LivePublisher:
    """Publishes the live events of one process. Its methods return immediately."""

    def __init__(self, bus: LiveEventPublisher) -> None:
        self._bus = bus
        self._steps: dict[RunKey, list[Step]] = {}
        self._actions: dict[RunKey, tuple[str | None, datetime | None]] = {}
        self._timers: dict[RunKey, asyncio.TimerHandle] = {}
        self._shown_runs: set[RunKey] = set()
        self._has_events = asyncio.Event()
        self._sender = asyncio.create_task(self._send_until_cancelled())

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, new: Sequence[Step]) -> None:
        waiting = self._steps.setdefault((tenant_id, run_id), [])
        waiting.extend(new)
        del waiting[:-MAX_QUEUED_STEPS]
        self._cancel_timer((tenant_id, run_id))
        self._set_action((tenant_id, run_id), None, None)
        self._has_events.set()

    async def publish_action(
        self, tenant_id: UUID, run_id: UUID, text: str | None, started_at: datetime | None = None
    ) -> None:
        watched = (tenant_id, run_id)
        self._cancel_timer(watched)
        if text is None:
            self._set_action(watched, None, started_at)
        else:
            begun = started_at or datetime.now(UTC)
            timer = asyncio.get_running_loop().call_later(MIN_ACTION_SECONDS, self._set_action, watched, text, begun)
            self._timers[watched] = timer

    async def close(self) -> None:
        """Send pending events, and stop."""
        self._sender.cancel()
        await asyncio.gather(self._sender, return_exceptions=True)
        await self._send_pending()

    def _cancel_timer(self, run_key: RunKey) -> None:
        """Cancel the pending publication of an action that has ended."""
        if timer := self._timers.pop(run_key, None):
            timer.cancel()

    def _set_action(self, run_key: RunKey, text: str | None, started_at: datetime | None) -> None:
        self._timers.pop(run_key, None)
        if text is None and run_key not in self._shown_runs:
            return
        self._shown_runs.add(run_key) if text else self._shown_runs.discard(run_key)
        self._actions[run_key] = (text, started_at)
        self._has_events.set()

    async def _send_until_cancelled(self) -> None:
        while True:
            await self._has_events.wait()
            self._has_events.clear()
            await self._send_pending()

    async def _send_pending(self) -> None:
        steps, self._steps = self._steps, {}
        doing, self._actions = self._actions, {}
        for (tenant, run), new in steps.items():
            await self._bus.publish_steps(tenant, run, new)
        for (tenant, run), (text, since) in doing.items():
            await self._bus.publish_action(tenant, run, text, since)

"""Send notifications for requests without making a response wait long for them, even if Redis does not answer."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any
from uuid import UUID

from offing.bus.notifier import RunNotifier
from offing.core.step import Step

MAX_WAIT_SECONDS = 0.25
"""Seconds that a request waits for a notification. One that takes longer continues in the background."""

MAX_PENDING_NOTIFICATIONS = 8
"""Maximum number of unfinished notifications. Further ones are dropped; the sweeper and the heartbeat find the
runs without them.
"""


class BoundedNotifier:
    """Sends notifications through `notifier` and waits for each at most `MAX_WAIT_SECONDS`."""

    def __init__(self, notifier: RunNotifier) -> None:
        self._notifier = notifier
        self._pending: set[asyncio.Task[None]] = set()

    async def dispatch_run(self, run_id: UUID) -> None:
        await self._send(self._notifier.dispatch_run(run_id))

    async def dispatch_runs(self, run_ids: Sequence[UUID]) -> None:
        await self._send(self._notifier.dispatch_runs(run_ids))

    async def notify_control(self, run_id: UUID) -> None:
        await self._send(self._notifier.notify_control(run_id))

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step]) -> None:
        await self._send(self._notifier.publish_steps(tenant_id, run_id, list(steps)))

    async def close(self) -> None:
        """Cancel the notifications that are still in progress."""
        for pending in self._pending:
            pending.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)

    async def _send(self, notification: Coroutine[Any, Any, None]) -> None:
        if len(self._pending) >= MAX_PENDING_NOTIFICATIONS:
            notification.close()
            return
        task = asyncio.create_task(notification)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        done, _ = await asyncio.wait({task}, timeout=MAX_WAIT_SECONDS)
        for finished in done:
            finished.result()

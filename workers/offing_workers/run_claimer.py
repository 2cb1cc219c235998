"""Claims queued runs for a worker process while it has a free slot for their class.

Postgres decides which run is next. A notification only says that there may be one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from offing.storage.claims import Claim, NextClaim
from offing.storage.connection_queue import low_priority

MAX_RUNS_PER_CLAIM = 8
"""Maximum number of runs per claim statement, so that several workers share a small batch."""


@dataclass(slots=True)
class RunSlots:
    """The slots of a process: how many runs it may advance at once, and how many it advances.

    Rollouts never use the reserved slots.
    """

    total: int
    reserved: int
    used: int = 0
    used_by_rollouts: int = 0
    """Slots used by rollouts, included in `used`."""

    @property
    def free(self) -> int:
        return self.total - self.used

    @property
    def free_for_rollouts(self) -> int:
        return max(0, min(self.free, self.total - self.reserved - self.used_by_rollouts))

    def acquire(self, is_rollout: bool) -> None:
        self.used, self.used_by_rollouts = self.used + 1, self.used_by_rollouts + is_rollout

    def release(self, is_rollout: bool) -> None:
        self.used, self.used_by_rollouts = self.used - 1, self.used_by_rollouts - is_rollout


def build_slots(total: int, reserved: int | None) -> RunSlots:
    """Return the slots of a process. Rollouts can always use at least one slot.

    If `reserved` is `None`, an eighth of the slots is reserved for interactive runs, and at least one.
    """
    return RunSlots(total, min(total - 1, max(1, total // 8) if reserved is None else reserved))


class RunClaimFunction(Protocol):
    async def __call__(self, max_runs: int, max_rollouts: int, swept_run_ids: Sequence[UUID]) -> list[NextClaim]: ...


class RunClaimer:
    """Claims runs and advances each of them in a slot. Used on the worker's event loop only."""

    def __init__(
        self,
        slots: RunSlots,
        claim_next: RunClaimFunction,
        advance: Callable[[Claim], Coroutine[Any, Any, None]],
        broadcast: Callable[[], Awaitable[None]],
    ) -> None:
        """`broadcast` notifies all workers if a notified worker has no slot for the queued runs."""
        self.slots = slots
        self._claim_next, self._advance, self._broadcast = claim_next, advance, broadcast
        self._requested, self._was_notified, self._swept_run_ids = asyncio.Event(), False, list[UUID]()
        self._check_when_free, self._stopped = False, False
        self._claim_lock, self._tasks = asyncio.Lock(), set[asyncio.Task[None]]()

    def check_queue(self, swept_run_ids: Sequence[UUID] = (), *, was_notified: bool = False) -> None:
        """Check the queue, because runs may be claimable.

        `swept_run_ids` are runs that are not queued but can be claimed. `was_notified` means that only this
        process was notified, so it notifies the others if it has no free slot.
        """
        self._swept_run_ids.extend(swept_run_ids)
        self._was_notified = self._was_notified or was_notified
        self._requested.set()

    def check_queue_when_slot_frees(self) -> None:
        """Check the queue at the next free slot, because a run of this process is about to be queued.

        Its notification may be lost.
        """
        self._check_when_free = True

    async def claim_until_cancelled(self) -> None:
        """Claim runs whenever a check is requested. Raises Unavailable.

        If it is called again, it repeats the interrupted check.
        """
        while True:
            await self._requested.wait()
            self._requested.clear()
            try:
                await self._fill_slots()
            except BaseException:
                self._requested.set()
                raise

    def stop_claiming(self) -> None:
        self._stopped = True

    async def close(self) -> None:
        """Stop claiming, and wait until all slots are free."""
        self.stop_claiming()
        async with self._claim_lock:  # runs that are being claimed get their slots
            pass
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _fill_slots(self) -> None:
        notified, self._was_notified = self._was_notified, False
        also, self._swept_run_ids = list(dict.fromkeys(self._swept_run_ids)), list[UUID]()
        try:
            await self._claim_all(also)
            full = self._stopped or not self.slots.free_for_rollouts
            self._check_when_free = self._check_when_free or full
            if notified and full:
                await self._broadcast()
        except BaseException:
            self._swept_run_ids, self._was_notified = [*also, *self._swept_run_ids], notified or self._was_notified
            raise

    async def _claim_all(self, swept_run_ids: list[UUID]) -> None:
        """Claim runs while there are free slots and runs for them. Remove claimed runs from `swept_run_ids`."""
        async with self._claim_lock:
            while self.slots.free and not self._stopped:
                free_slots = min(self.slots.free, MAX_RUNS_PER_CLAIM)
                free_rollout_slots = min(free_slots, self.slots.free_for_rollouts)
                claims = await self._claim_next(free_slots, free_rollout_slots, swept_run_ids)
                for run in claims:
                    self._start_run(run)
                claimed = {run.claim.fence.run_id for run in claims}
                swept_run_ids[:] = [run for run in swept_run_ids if run not in claimed]
                no_more_rollouts = sum(run.is_rollout for run in claims) < free_rollout_slots
                # A slot that was released meanwhile requested no check, because no shortage was known yet.
                if len(claims) < free_slots and (no_more_rollouts or not self.slots.free_for_rollouts):
                    break

    def _start_run(self, run: NextClaim) -> None:
        self.slots.acquire(run.is_rollout)
        task = asyncio.create_task(self._advance(run.claim), context=_build_context(run.is_rollout))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._release_slot(run.is_rollout))

    def _release_slot(self, is_rollout: bool) -> None:
        self.slots.release(is_rollout)
        if self._check_when_free:
            self._check_when_free = False
            self.check_queue()


def _build_context(is_rollout: bool) -> Context:
    """Build the context of a run. Database work of rollouts lets that of interactive runs go first."""
    context = copy_context()
    context.run(low_priority.set, is_rollout)
    return context

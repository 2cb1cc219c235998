"""Which runs a worker process takes, and when: the next queued ones, as long as a slot for their class is free.

The only home of a process's slots. Postgres decides which run is next; a notification only says that there may be one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from offing.storage.connection_queue import low_priority
from offing.storage.runs import Claim, NextRun

RUNS_AT_A_TIME = 8
"""Claimed by one statement at most, so that several workers share a small batch."""


@dataclass(slots=True)
class Slots:
    """How many runs a process may advance at once, and how many it does. Rollouts never take the reserved ones."""

    total: int
    reserved: int
    taken: int = 0
    rollouts: int = 0
    """Of those taken."""

    @property
    def free(self) -> int:
        return self.total - self.taken

    @property
    def free_for_rollouts(self) -> int:
        return max(0, min(self.free, self.total - self.reserved - self.rollouts))

    def take(self, rollout: bool) -> None:
        self.taken, self.rollouts = self.taken + 1, self.rollouts + rollout

    def give_back(self, rollout: bool) -> None:
        self.taken, self.rollouts = self.taken - 1, self.rollouts - rollout


def slots(total: int, reserved: int | None) -> Slots:
    """`reserved` None: an eighth of the slots, and at least one. One slot is left to rollouts in any case."""
    return Slots(total, min(total - 1, max(1, total // 8) if reserved is None else reserved))


class ClaimNext(Protocol):
    async def __call__(self, room: int, rollout_room: int, also: Sequence[UUID]) -> list[NextRun]: ...


class Dispatcher:
    """Claims runs and has each of them advanced in a slot. Used on the worker's event loop only."""

    def __init__(
        self,
        slots: Slots,
        claim_next: ClaimNext,
        advance: Callable[[Claim], Coroutine[Any, Any, None]],
        broadcast: Callable[[], Awaitable[None]],
    ) -> None:
        """`broadcast` notifies all workers, where a notified one has no slot for what may be queued."""
        self.slots = slots
        self._claim_next, self._advance, self._broadcast = claim_next, advance, broadcast
        self._requested, self._notified, self._also = asyncio.Event(), False, list[UUID]()
        self._check_when_free, self._stopped = False, False
        self._claiming, self._tasks = asyncio.Lock(), set[asyncio.Task[None]]()

    def check_queue(self, also: Sequence[UUID] = (), *, notified: bool = False) -> None:
        """Runs may be claimable. `also`: runs that are not queued, and can be claimed nevertheless.

        `notified`: this process alone was told, so it tells the others what it has no slot for.
        """
        self._also.extend(also)
        self._notified = self._notified or notified
        self._requested.set()

    def check_queue_when_slot_frees(self) -> None:
        """A run of this process is about to be queued: find it although its notification may be lost."""
        self._check_when_free = True

    async def watch(self) -> None:
        """Claim whenever that was requested. Raises Unavailable; called again, it repeats what that cut short."""
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
        """Claim nothing more, and wait until all slots are free."""
        self.stop_claiming()
        async with self._claiming:  # what is being claimed gets its slot
            pass
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _fill_slots(self) -> None:
        notified, self._notified = self._notified, False
        also, self._also = list(dict.fromkeys(self._also)), list[UUID]()
        try:
            await self._claim_all(also)
            full = self._stopped or not self.slots.free_for_rollouts
            self._check_when_free = self._check_when_free or full
            if notified and full:
                await self._broadcast()
        except BaseException:
            self._also, self._notified = [*also, *self._also], notified or self._notified
            raise

    async def _claim_all(self, also: list[UUID]) -> None:
        """Claim as long as there are slots and runs for them. What is claimed is taken out of `also`."""
        async with self._claiming:
            while self.slots.free and not self._stopped:
                room = min(self.slots.free, RUNS_AT_A_TIME)
                rollout_room = min(room, self.slots.free_for_rollouts)
                found = await self._claim_next(room, rollout_room, also)
                for run in found:
                    self._begin(run)
                claimed = {run.claim.fence.run for run in found}
                also[:] = [run for run in also if run not in claimed]
                no_more_rollouts = sum(run.rollout for run in found) < rollout_room
                # A slot that was given back meanwhile asked for no check, since nobody knew yet that there was no room.
                if len(found) < room and (no_more_rollouts or not self.slots.free_for_rollouts):
                    break

    def _begin(self, run: NextRun) -> None:
        self.slots.take(run.rollout)
        task = asyncio.create_task(self._advance(run.claim), context=_context(run.rollout))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._ended(run.rollout))

    def _ended(self, rollout: bool) -> None:
        self.slots.give_back(rollout)
        if self._check_when_free:
            self._check_when_free = False
            self.check_queue()


def _context(rollout: bool) -> Context:
    """A rollout's database work lets that of interactive runs go first."""
    context = copy_context()
    context.run(low_priority.set, rollout)
    return context

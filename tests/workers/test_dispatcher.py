"""Slots of one process: which runs may take them, and when the process checks the queue."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest

from offing.core.errors import Unavailable
from offing.core.run import FencingToken
from offing.storage.claims import Claim, NextClaim
from offing.storage.connection_queue import low_priority
from offing_workers.run_claimer import MAX_RUNS_PER_CLAIM, RunClaimer, build_slots


@dataclass
class Queue:
    """What Postgres would say, and the work that is done in the slots."""

    interactive: int = 0
    rollouts: int = 0
    away: int = 0
    """How many claims fail."""
    queries: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    also: list[UUID] = field(default_factory=list[UUID])
    abandoned: list[UUID] = field(default_factory=list[UUID])
    """Runs that are claimable while they are not queued."""
    low: list[bool] = field(default_factory=list[bool])
    broadcasts: int = 0
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    """Claims wait for it."""
    go_on: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def __post_init__(self) -> None:
        self.answering.set()

    async def claim_next(self, max_runs: int, max_rollouts: int, swept_run_ids: Sequence[UUID]) -> list[NextClaim]:
        await self.answering.wait()
        if self.away:
            self.away -= 1
            raise Unavailable("on purpose")
        self.queries.append((max_runs, max_rollouts))
        self.also += swept_run_ids
        abandoned = [run for run in swept_run_ids if run in self.abandoned][:max_runs]
        self.abandoned = [run for run in self.abandoned if run not in abandoned]
        first = min(max_runs - len(abandoned), self.interactive)
        then = min(max_runs - len(abandoned) - first, max_rollouts, self.rollouts)
        self.interactive, self.rollouts = self.interactive - first, self.rollouts - then
        claimed = [NextClaim(Claim(FencingToken(uuid4(), run, 2, uuid4()), True, 0), False) for run in abandoned]
        claim = Claim(FencingToken(uuid4(), uuid4(), 1, uuid4()), False, 0)
        return claimed + [NextClaim(claim, False)] * first + [NextClaim(claim, True)] * then

    async def advance(self, _: Claim) -> None:
        self.low.append(low_priority.get())
        await self.go_on.acquire()

    async def broadcast(self) -> None:
        self.broadcasts += 1


@asynccontextmanager
async def dispatching(queue: Queue, total: int = 8, reserved: int = 2) -> AsyncGenerator[RunClaimer]:
    dispatcher = RunClaimer(build_slots(total, reserved), queue.claim_next, queue.advance, queue.broadcast)
    watching = asyncio.create_task(dispatcher.claim_until_cancelled())
    yield dispatcher
    watching.cancel()
    for _ in range(100):
        queue.go_on.release()
    await dispatcher.close()


async def settle() -> None:
    """Let everything happen that can."""
    for _ in range(200):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("total", "expected", "reserved"),
    [(200, None, 25), (20, None, 2), (2, None, 1), (1, None, 0), (4, 9, 3), (4, 0, 0)],
)
def test_an_eighth_of_the_slots_is_reserved_and_one_is_left_to_rollouts(
    total: int, expected: int | None, reserved: int
) -> None:
    assert build_slots(total, expected).reserved == reserved


async def test_rollouts_never_take_the_reserved_slots() -> None:
    queue = Queue(rollouts=50)
    async with dispatching(queue) as dispatcher:
        dispatcher.check_queue()
        await settle()
        assert (dispatcher.slots.used_by_rollouts, dispatcher.slots.used) == (6, 6)
        queue.interactive = 9
        dispatcher.check_queue()
        await settle()
        assert (dispatcher.slots.used_by_rollouts, dispatcher.slots.used, queue.interactive) == (6, 8, 7)


async def test_interactive_runs_may_take_every_slot() -> None:
    queue = Queue(interactive=9, rollouts=9)
    async with dispatching(queue) as dispatcher:
        dispatcher.check_queue()
        await settle()
        assert (dispatcher.slots.used_by_rollouts, dispatcher.slots.used) == (0, 8)


async def test_a_slot_that_becomes_free_is_filled_without_a_notification() -> None:
    queue = Queue(rollouts=8)
    async with dispatching(queue) as dispatcher:
        dispatcher.check_queue()
        await settle()
        queue.interactive = 1
        queue.go_on.release()
        await settle()
        assert (queue.interactive, queue.rollouts) == (0, 1)


async def test_a_slot_that_becomes_free_during_a_claim_is_filled_without_a_notification() -> None:
    queue = Queue(rollouts=2)
    async with dispatching(queue, total=4, reserved=1) as dispatcher:
        dispatcher.check_queue()
        await settle()
        queue.rollouts = 3
        queue.answering.clear()
        dispatcher.check_queue()
        await settle()
        queue.go_on.release()
        await settle()
        queue.answering.set()
        await settle()
        assert (dispatcher.slots.used_by_rollouts, queue.rollouts) == (3, 1)


async def test_nothing_is_asked_for_after_a_slice_when_the_queue_was_empty() -> None:
    queue = Queue(interactive=1)
    async with dispatching(queue) as dispatcher:
        dispatcher.check_queue(was_notified=True)
        await settle()
        queue.go_on.release()
        await settle()
        assert (len(queue.queries), queue.broadcasts) == (1, 0)
        dispatcher.check_queue_when_slot_frees()
        dispatcher.check_queue()
        await settle()
        assert len(queue.queries) == 2


async def test_a_notified_process_without_a_slot_for_a_class_notifies_all() -> None:
    queue = Queue(rollouts=6)
    async with dispatching(queue) as dispatcher:
        dispatcher.check_queue()
        await settle()
        assert queue.broadcasts == 0
        dispatcher.check_queue(was_notified=True)
        await settle()
        assert queue.broadcasts == 1
        dispatcher.check_queue()  # what all were told is not told again
        await settle()
        assert queue.broadcasts == 1


async def test_a_claim_that_found_no_database_is_repeated() -> None:
    queue = Queue(interactive=1, away=1)
    dispatcher = RunClaimer(build_slots(4, 1), queue.claim_next, queue.advance, queue.broadcast)
    dispatcher.check_queue()
    with pytest.raises(Unavailable):
        await dispatcher.claim_until_cancelled()
    again = asyncio.create_task(dispatcher.claim_until_cancelled())
    await settle()
    assert dispatcher.slots.used == 1
    again.cancel()
    queue.go_on.release()
    await dispatcher.close()


async def test_what_was_swept_and_notified_is_not_forgotten_with_a_claim_that_found_no_database() -> None:
    abandoned = [uuid4() for _ in range(3)]
    queue = Queue(abandoned=list(abandoned), away=1)
    dispatcher = RunClaimer(build_slots(3, 1), queue.claim_next, queue.advance, queue.broadcast)
    dispatcher.check_queue(abandoned, was_notified=True)
    with pytest.raises(Unavailable):
        await dispatcher.claim_until_cancelled()
    again = asyncio.create_task(dispatcher.claim_until_cancelled())
    await settle()
    assert (dispatcher.slots.used, queue.also, queue.broadcasts) == (3, abandoned, 1)
    again.cancel()
    for _ in abandoned:
        queue.go_on.release()
    await dispatcher.close()


async def test_what_is_being_claimed_when_a_process_closes_is_waited_for_and_nothing_more_is_claimed() -> None:
    queue = Queue(interactive=20)
    async with dispatching(queue, total=30) as dispatcher:
        queue.answering.clear()
        dispatcher.check_queue()
        await settle()
        closing = asyncio.create_task(dispatcher.close())
        await settle()
        queue.answering.set()
        await settle()
        assert dispatcher.slots.used == MAX_RUNS_PER_CLAIM
        assert not closing.done()
        for _ in range(MAX_RUNS_PER_CLAIM):
            queue.go_on.release()
        await asyncio.wait_for(closing, 20)
        assert (dispatcher.slots.used, queue.interactive) == (0, 12)


async def test_only_the_database_work_of_rollouts_has_low_priority() -> None:
    queue = Queue(interactive=1, rollouts=1)
    async with dispatching(queue) as dispatcher:
        dispatcher.check_queue()
        await settle()
    assert queue.low == [False, True]
    assert not low_priority.get()


async def test_runs_that_are_not_queued_are_asked_for_once() -> None:
    queue, abandoned = Queue(), uuid4()
    async with dispatching(queue) as dispatcher:
        dispatcher.check_queue([abandoned])
        await settle()
        dispatcher.check_queue()
        await settle()
    assert (queue.also, len(queue.queries)) == ([abandoned], 2)


async def test_runs_of_crashed_workers_are_all_claimed_in_the_passes_of_one_check_before_queued_ones() -> None:
    abandoned = [uuid4() for _ in range(20)]
    queue = Queue(interactive=30, abandoned=list(abandoned))
    async with dispatching(queue, total=40) as dispatcher:
        dispatcher.check_queue([*abandoned, abandoned[0]])
        await settle()
        assert (queue.abandoned, queue.interactive, dispatcher.slots.used) == ([], 10, 40)
        assert queue.also == abandoned + abandoned[8:] + abandoned[16:]

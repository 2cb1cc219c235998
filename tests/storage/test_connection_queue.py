"""Who gets the next connection: work that somebody waits for before work that can wait, which is never stopped."""

import asyncio

from offing.storage.connection_queue import LOW_PRIORITY_INTERVAL, ConnectionQueue


async def waiting(queue: ConnectionQueue, low: bool, served: list[str], name: str) -> None:
    await queue.acquire(low)
    served.append(name)
    await asyncio.sleep(0)
    queue.release(low)


async def test_work_that_somebody_waits_for_overtakes_work_that_can_wait() -> None:
    queue, served = ConnectionQueue(1), list[str]()
    await queue.acquire(False)
    async with asyncio.TaskGroup() as group:
        for n in range(6):
            group.create_task(waiting(queue, True, served, f"low {n}"))
        await asyncio.sleep(0)
        for n in range(2):
            group.create_task(waiting(queue, False, served, f"normal {n}"))
        await asyncio.sleep(0)
        queue.release(False)
    assert served == ["normal 0", "normal 1", *(f"low {n}" for n in range(6))]


async def test_work_that_can_wait_is_slowed_and_not_stopped() -> None:
    queue, served = ConnectionQueue(1), list[str]()
    await queue.acquire(False)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(waiting(queue, True, served, "low"))
        for n in range(3 * LOW_PRIORITY_INTERVAL):
            group.create_task(waiting(queue, False, served, f"normal {n}"))
        await asyncio.sleep(0)
        queue.release(False)
    assert served[: 2 * LOW_PRIORITY_INTERVAL].count("low") == 2


async def test_work_that_can_wait_never_takes_the_last_quarter() -> None:
    queue = ConnectionQueue(8)
    async with asyncio.TaskGroup() as group:
        low = [group.create_task(queue.acquire(True)) for _ in range(8)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [task.done() for task in low] == [True] * 6 + [False] * 2
        async with asyncio.timeout(20):
            await queue.acquire(False)
            await queue.acquire(False)
        for _ in range(2):
            queue.release(True)


async def test_who_is_cancelled_takes_no_connection_along() -> None:
    for low in (False, True):
        queue = ConnectionQueue(1)
        await queue.acquire(low)
        in_line, admitted = (asyncio.create_task(queue.acquire(low)) for _ in range(2))
        await asyncio.sleep(0)
        in_line.cancel()
        await asyncio.gather(in_line, return_exceptions=True)
        queue.release(low)
        admitted.cancel()  # in the moment in which it is its turn
        await asyncio.gather(admitted, return_exceptions=True)
        async with asyncio.timeout(20):
            await queue.acquire(low)

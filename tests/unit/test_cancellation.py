"""Work that is finished although its caller is cancelled, and cancelled again."""

import asyncio

import pytest

from offing.cancellation import run_to_completion


async def cancelled_twice(task: asyncio.Task[object]) -> None:
    """As a graph's runner cancels a branch: beside the one that failed, and as it leaves."""
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)


async def test_a_caller_that_is_cancelled_twice_still_waits_for_the_end() -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        done.append("all of it")

    waiting = asyncio.create_task(run_to_completion(work()))
    await begun.wait()
    await cancelled_twice(waiting)
    assert not waiting.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done == ["all of it"]


async def test_an_error_of_the_work_is_the_cause_of_the_cancellation() -> None:
    go_on = asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        raise ZeroDivisionError

    waiting = asyncio.create_task(run_to_completion(work()))
    await asyncio.sleep(0)
    await cancelled_twice(waiting)
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await waiting
    assert isinstance(cancelled.value.__cause__, ZeroDivisionError)

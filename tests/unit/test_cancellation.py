"""Work that is finished although its caller is cancelled, and cancelled again."""

import asyncio

import pytest

from offing.cancellation import cancel_tasks, run_to_completion


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


async def test_a_task_that_drops_a_cancellation_is_cancelled_again() -> None:
    dropped = list[str]()

    async def go_on() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if dropped:
                    raise
                dropped.append("as a write ends at the same moment")

    task = asyncio.create_task(go_on())
    await asyncio.sleep(0)
    await cancel_tasks([task])
    assert (task.cancelled(), len(dropped)) == (True, 1)


async def test_errors_of_cancelled_tasks_are_dropped_and_no_tasks_are_none() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    failed = asyncio.create_task(fail())
    await asyncio.wait([failed])
    await cancel_tasks([failed])
    await cancel_tasks([])
    assert isinstance(failed.exception(), ZeroDivisionError)

"""Work that is done to its end although whoever waits for it is cancelled, and cancelled again."""

import asyncio
from decimal import Decimal

import pytest

from offing.core.model import Usage
from offing.core.run import StopReason
from offing.finishing import finished
from offing.models.metering import reserved


async def cancelled_twice(task: asyncio.Task[object]) -> None:
    """As a graph's runner cancels a branch: beside the one that failed, and as it leaves."""
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)


async def test_whoever_is_cancelled_twice_still_waits_for_the_end() -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        done.append("all of it")

    waiting = asyncio.create_task(finished(work()))
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

    waiting = asyncio.create_task(finished(work()))
    await asyncio.sleep(0)
    await cancelled_twice(waiting)
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await waiting
    assert isinstance(cancelled.value.__cause__, ZeroDivisionError)


class SlowMeter:
    """Takes its time to set something aside."""

    def __init__(self) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.settled: list[Usage] = []

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        self.asked.set()
        await self.go_on.wait()
        return None

    async def settle(self, usage: Usage) -> None:
        self.settled.append(usage)


async def test_what_was_set_aside_for_a_call_that_was_cancelled_twice_is_given_back() -> None:
    meter = SlowMeter()

    async def call() -> None:
        async with reserved(meter, 1, Decimal(1)):
            raise AssertionError("the call was made")

    calling = asyncio.create_task(call())
    await meter.asked.wait()
    await cancelled_twice(calling)
    meter.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert meter.settled == [Usage()]

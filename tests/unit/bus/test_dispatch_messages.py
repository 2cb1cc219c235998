"""Runs that are dispatched while a message is being sent share the next one."""

import asyncio

import pytest

from offing.bus import dispatch
from offing.bus.dispatch import CeleryDispatcher
from offing.clock import new_id


async def test_dispatches_during_a_message_share_the_next_message(monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_end, counts = asyncio.Event(), asyncio.Event(), list[int]()

    async def publish(_: CeleryDispatcher, message_count: int) -> None:
        counts.append(message_count)
        began.set()
        await may_end.wait()

    monkeypatch.setattr(CeleryDispatcher, "_publish", publish)
    dispatcher = CeleryDispatcher("redis://127.0.0.1:1/0")
    first = asyncio.create_task(dispatcher([new_id()]))
    await began.wait()
    others = [asyncio.create_task(dispatcher([new_id()])) for _ in range(dispatch.MAX_RUNS_PER_MESSAGE + 1)]
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(first, *others)
    assert counts == [1, 2], "nine runs need two messages"
    await dispatcher([new_id()])
    assert counts == [1, 2, 1]

"""Whether anything that a sandbox started is still there."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

from tests.processes import alive


async def wait_until_ended(seen: Iterable[psutil.Process]) -> None:
    """The kernel ends what is left of a namespace on its own time, which is short."""
    give_up = time.monotonic() + 30
    while left := [process for process in seen if alive(process)]:
        assert time.monotonic() < give_up, left
        await asyncio.sleep(0.02)


def living(pids: Iterable[int]) -> list[psutil.Process]:
    """Those that have not ended meanwhile."""
    results: list[psutil.Process] = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            results.append(psutil.Process(pid))
    return [process for process in results if alive(process)]

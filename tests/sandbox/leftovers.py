"""Whether anything that a sandbox started is still there."""

import asyncio
import time
from collections.abc import Iterable

import psutil


async def all_gone(seen: Iterable[psutil.Process]) -> None:
    """The kernel ends what is left of a namespace on its own time, which is short."""
    give_up = time.monotonic() + 30
    while left := [process for process in seen if alive(process)]:
        assert time.monotonic() < give_up, left
        await asyncio.sleep(0.02)


def alive(process: psutil.Process) -> bool:
    """One that ended and that nobody has asked about yet is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

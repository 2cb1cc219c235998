"""The trainer as a process: it claims queued jobs, one after the other, until it is told to stop."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from offing.core.errors import Fenced, Unavailable
from offing.process_name import own_name
from offing.services import promotion
from offing.storage import policy_versions, training_jobs
from offing.storage.pool import Database
from offing.storage.training_jobs import JobRow
from offing_trainer.job.running import Room, run_job

T = TypeVar("T")

log = logging.getLogger("offing.trainer")

POLL_SECONDS = 2.0

CANARY_SECONDS = 5.0
"""Between looks at how canaries do."""


async def run_one(room: Room, job: UUID | None) -> JobRow | None:
    """Claim a job, and advance it to its end, a pause or a failure. `job` None: the oldest that waits. None: there is
    none."""
    held = await training_jobs.claim(room.database, job, own_name(), room.term)
    return None if held is None else await run_job(room, held)


async def serve(room_of: Callable[[Database], Room], url: str, ready: Path | None) -> None:
    """Runs queued jobs until SIGTERM or SIGINT; a job under way then goes on from its last step in the next process."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Database(url, most=4) as database:
        room = room_of(database)
        if ready is not None:
            await asyncio.to_thread(_say_ready, ready)
        watching = asyncio.create_task(_watch_canaries(database))
        while not stop.is_set():
            worked = await _until(stop, _attempt(room))
            if not worked and not stop.is_set():
                await _until(stop, asyncio.sleep(POLL_SECONDS))
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch_canaries(database: Database) -> None:
    """Takes back those that do worse than the version they are to follow."""
    while True:
        await asyncio.sleep(CANARY_SECONDS)
        try:
            for tenant, name in await policy_versions.canaries(database):
                if (done := await promotion.watch_canary(database, tenant, name)) is not None:
                    log.warning("%s", done)
        except Unavailable as error:
            log.warning("%s", error)


async def _attempt(room: Room) -> bool:
    """Whether there was a job. What went wrong with it stands in the job."""
    try:
        return await run_one(room, None) is not None
    except Fenced as error:
        log.warning("%s", error)
    except Unavailable as error:
        log.warning("%s", error)
        return False
    except Exception:
        log.exception("a job ended by surprise")
    return True


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives, unless `stop` comes first; then it is cancelled. None: it was."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    working.cancel()
    await asyncio.gather(working, stopping, return_exceptions=True)
    return None if working.cancelled() else working.result()


def _say_ready(file: Path) -> None:
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(str(os.getpid()))
    draft.replace(file)

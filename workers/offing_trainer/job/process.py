"""The trainer process. It runs queued jobs one after another until it is stopped."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from offing.core.errors import LeaseLostError, Unavailable
from offing.process_name import get_process_name
from offing.services import canaries
from offing.storage import policy_versions, training_jobs
from offing.storage.pool import Database
from offing.storage.training_jobs import TrainingJobRow
from offing_trainer.job.job_runner import JobContext, run_job

T = TypeVar("T")

log = logging.getLogger("offing.trainer")

POLL_SECONDS = 2.0

CANARY_POLL_SECONDS = 5.0
"""Interval between checks of canaries."""


async def run_one_job(context: JobContext, job_id: UUID | None) -> TrainingJobRow | None:
    """Claim a job and run it until it ends, pauses or fails.

    A `job_id` of `None` claims the oldest queued job. Returns `None` if no job could be claimed.
    """
    fencing_token = await training_jobs.claim_job(context.database, job_id, get_process_name(), context.lease_seconds)
    return None if fencing_token is None else await run_job(context, fencing_token)


async def run_trainer(build_context: Callable[[Database], JobContext], url: str, ready_file: Path | None) -> None:
    """Run queued jobs until SIGTERM or SIGINT.

    A running job then continues from its last step in the next process.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Database(url, max_connections=4) as database:
        context = build_context(database)
        if ready_file is not None:
            await asyncio.to_thread(_write_ready_file, ready_file)
        watching = asyncio.create_task(_watch_canaries(database))
        while not stop.is_set():
            worked = await _run_until_stopped(stop, _try_run_job(context))
            if not worked and not stop.is_set():
                await _run_until_stopped(stop, asyncio.sleep(POLL_SECONDS))
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch_canaries(database: Database) -> None:
    """Compare canaries with the active version, and withdraw those that are worse."""
    while True:
        await asyncio.sleep(CANARY_POLL_SECONDS)
        try:
            for tenant, name in await policy_versions.list_canaries(database):
                for decision in await canaries.check_canary(database, tenant, name):
                    log.warning("%s", decision)
        except Unavailable as error:
            log.warning("%s", error)


async def _try_run_job(context: JobContext) -> bool:
    """Run the next job. Returns whether there was one. Errors are recorded in the job."""
    try:
        return await run_one_job(context, None) is not None
    except LeaseLostError as error:
        log.warning("%s", error)
    except Unavailable as error:
        log.warning("%s", error)
        return False
    except Exception:
        log.exception("a job ended with an unexpected error")
    return True


async def _run_until_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `work`, or `None` if `stop` was set first, which cancels it."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    working.cancel()
    await asyncio.gather(working, stopping, return_exceptions=True)
    return None if working.cancelled() else working.result()


def _write_ready_file(file: Path) -> None:
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(str(os.getpid()))
    draft.replace(file)

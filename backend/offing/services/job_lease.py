"""A training job's lease, renewed while a process works on it: the trainer's, or a worker's that learns.

The only home of what becomes of a process that lost its job.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from offing.core.errors import Fenced, Unavailable
from offing.storage import training_jobs
from offing.storage.pool import Database
from offing.storage.training_jobs import Hold

log = logging.getLogger("offing.job")


@asynccontextmanager
async def kept(database: Database, held: Hold, term: float) -> AsyncGenerator[None]:
    """Keeps the lease while the block runs; when the job is lost, the block is cancelled and Fenced raised.

    The block may release the job before it ends.

    `term`: seconds that the lease lasts without a sign of life.
    """
    inside = asyncio.current_task()
    assert inside is not None
    lost: list[Fenced] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(term / 4)
            try:
                async with database.transaction(held.tenant) as connection:
                    await training_jobs.hold(connection, held, term)
            except Unavailable:
                log.warning("the database does not answer; job %s goes on meanwhile", held.job)
            except Fenced as error:
                if not await _released(database, held):
                    lost.append(error)
                    inside.cancel()
                return

    beating = asyncio.create_task(beat())
    try:
        yield
    except asyncio.CancelledError:
        if lost:
            raise lost[0] from None
        raise
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _released(database: Database, held: Hold) -> bool:
    """Without an answer it counts as lost."""
    try:
        async with database.transaction(held.tenant) as connection:
            return await training_jobs.is_released(connection, held)
    except Unavailable:
        return False

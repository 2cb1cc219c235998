"""Keep the lease of a training job while the trainer or a worker works on it."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from offing.core.errors import LeaseLostError, Unavailable
from offing.storage import training_jobs
from offing.storage.pool import Database
from offing.storage.training_jobs import JobFencingToken

log = logging.getLogger("offing.job")


@asynccontextmanager
async def hold_lease(database: Database, job_token: JobFencingToken, lease_seconds: float) -> AsyncGenerator[None]:
    """Renew the lease while the block runs.

    If another process claims the job, the block is cancelled and LeaseLostError is raised.

    The block may release the job before it ends.

    `lease_seconds` is how long the lease lasts without a heartbeat.
    """
    inside = asyncio.current_task()
    assert inside is not None
    errors: list[LeaseLostError] = []

    async def renew() -> None:
        while True:
            await asyncio.sleep(lease_seconds / 4)
            try:
                async with database.transaction(job_token.tenant_id) as connection:
                    await training_jobs.renew_lease(connection, job_token, lease_seconds)
            except Unavailable:
                log.warning("the database does not respond; job %s continues", job_token.job_id)
            except LeaseLostError as error:
                if not await _is_released(database, job_token):
                    errors.append(error)
                    inside.cancel()
                return

    beating = asyncio.create_task(renew())
    try:
        yield
    except asyncio.CancelledError:
        if errors:
            raise errors[0] from None
        raise
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _is_released(database: Database, job_token: JobFencingToken) -> bool:
    """Return whether the job was released. If the database does not answer, the result is `False`."""
    try:
        async with database.transaction(job_token.tenant_id) as connection:
            return await training_jobs.is_released(connection, job_token)
    except Unavailable:
        return False

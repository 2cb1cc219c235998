"""Computes missing vectors of the document library in a worker process, one tenant after another."""

import asyncio
from collections.abc import Callable

import structlog

from offing.core.errors import LeaseLostError
from offing.core.model import FailureKind
from offing.models.embedding import Embedder
from offing.models.role_call import AttemptFailure
from offing.services.vector_filling import fill_next_tenant
from offing.storage.pool import Database

POLL_SECONDS = 2.0
"""Seconds between checks for texts without vectors. A check takes time proportional to the number of tenants."""

MIN_PAUSE_SECONDS = 2.0
MAX_PAUSE_SECONDS = 300.0
"""Pauses after failures of the embedding model. Each is twice as long as the one before."""

log = structlog.get_logger("offing.worker")


class VectorFiller:
    """Computes missing vectors until it is cancelled. A failure is logged once, and so is its end."""

    def __init__(self, database: Database, embedder: Embedder, is_draining: Callable[[], bool]) -> None:
        self._database, self._embedder, self._is_draining = database, embedder, is_draining
        self._failure_count = 0

    async def run(self, poll_seconds: float = POLL_SECONDS) -> None:
        pause = poll_seconds
        while True:
            await asyncio.sleep(pause)
            pause = poll_seconds
            while not self._is_draining():
                try:
                    result = await fill_next_tenant(
                        self._database,
                        self._embedder,
                        failure_count=self._failure_count,
                        is_stopping=self._is_draining,
                    )
                except LeaseLostError as error:
                    log.info("another process computes the vectors now", reason=str(error))
                    break
                if result is None:
                    break
                if result.text_count:
                    log.info("computed vectors of documents", documents=result.text_count)
                if result.failure is None or result.failure.kind is FailureKind.BUDGET_EXHAUSTED:
                    self._note_success()
                else:
                    pause = self._note_failure(result.failure)
                    break
                if not result.text_count:
                    break

    def _note_success(self) -> None:
        if self._failure_count:
            log.info("the embedding model answers again")
        self._failure_count = 0

    def _note_failure(self, failure: AttemptFailure) -> float:
        """Return the seconds until the next attempt."""
        if not self._failure_count:
            log.warning("vectors of documents cannot be computed now", kind=failure.kind, reason=failure.message)
        pause = min(MIN_PAUSE_SECONDS * 2 ** min(self._failure_count, 10), MAX_PAUSE_SECONDS)
        self._failure_count += 1
        return max(pause, failure.retry_after or 0)

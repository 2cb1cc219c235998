"""The sweep that removes what is kept for a time, as the settings say. Any number of workers may do it at once."""

import structlog

from offing.settings import Settings
from offing.storage import retention
from offing.storage.pool import Database

BATCH = 50
"""Runs, and login links, of one sweep of a worker: what takes longer waits for the next."""

log = structlog.get_logger("offing.worker")


async def remove_expired(database: Database, settings: Settings) -> bool:
    """Remove one batch of each kind. Whether there may be more."""
    pruned = await retention.prune_checkpoints(database, settings.keep_checkpoints_days, BATCH)
    files = 0
    if settings.keep_run_files_days is not None:
        files = await retention.drop_run_files(database, settings.keep_run_files_days, BATCH)
    logins = await retention.drop_logins(database, BATCH)
    if files:
        log.info("old files of runs removed", runs=files)
    return max(pruned, files, logins) >= BATCH

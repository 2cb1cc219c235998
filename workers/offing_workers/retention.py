"""Periodic removal of expired data, as configured. Several workers may do so at once."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from offing.services.graph_folders import (
    BrokenGraphProject,
    GraphProject,
    delete_copied_version,
    list_copied_versions,
    list_projects,
)
from offing.services.langgraph_threads import expire_threads
from offing.settings import Settings
from offing.storage import retention, webhooks
from offing.storage.pool import Database

MAX_ROWS_PER_SWEEP = 50
"""Maximum number of runs, login links and store items per sweep. The next sweep continues."""

KEEP_EVENTS_DAYS = 90.0
"""Age at which notifications are removed with their deliveries to webhooks, in days."""

MIN_UNUSED_GRAPH_SECONDS = 24 * 3600.0
"""Minimum age of an unused graph version before it is removed, in seconds.

Its author may be about to start a run with it.
"""

log = structlog.get_logger("offing.worker")


async def remove_expired(database: Database, settings: Settings) -> bool:
    """Remove one batch of each kind. Return whether there may be more."""
    pruned = await retention.prune_checkpoints(database, settings.keep_checkpoints_days, MAX_ROWS_PER_SWEEP)
    files = 0
    if settings.keep_run_files_days is not None:
        files = await retention.delete_run_files(database, settings.keep_run_files_days, MAX_ROWS_PER_SWEEP)
    logins = await retention.delete_expired_logins(database, MAX_ROWS_PER_SWEEP)
    items = await retention.delete_expired_items(database, MAX_ROWS_PER_SWEEP)
    events = await webhooks.delete_old_events(database, KEEP_EVENTS_DAYS, MAX_ROWS_PER_SWEEP)
    threads = await expire_threads(database, datetime.now(UTC), MAX_ROWS_PER_SWEEP)
    await remove_unused_graphs(database, settings)
    if files:
        log.info("deleted old files of runs", runs=files)
    return max(pruned, files, logins, items, events, threads) >= MAX_ROWS_PER_SWEEP


async def remove_unused_graphs(
    database: Database, settings: Settings, now_seconds: Callable[[], float] = time.time
) -> tuple[str, ...]:
    """Remove copied graph versions that are not offered and that no run uses, and return them.

    If a graph folder cannot be read, its versions are unknown, and nothing is removed.
    """
    old = await asyncio.to_thread(list_copied_versions, settings.home, now_seconds() - MIN_UNUSED_GRAPH_SECONDS)
    used = await retention.list_graph_versions_in_use(database, old) if old else frozenset[str]()
    if not set(old) - used:  # hash folders only if something may be removed
        return ()
    projects = await asyncio.to_thread(list_projects, settings.graph_paths)
    if broken := [one for one in projects if isinstance(one, BrokenGraphProject)]:
        log.warning("kept unused graph versions, because a graph folder cannot be read", reason=str(broken[0].error))
        return ()
    on_offer = {one.version for one in projects if isinstance(one, GraphProject)}
    unused = tuple(version for version in old if version not in used | on_offer)
    for version in unused:
        await asyncio.to_thread(delete_copied_version, version, settings.home)
    if unused:
        log.info("deleted unused graph versions", versions=len(unused))
    return unused

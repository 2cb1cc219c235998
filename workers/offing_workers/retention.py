"""The sweep that removes what is kept for a time, as the settings say. Any number of workers may do it at once."""

import asyncio
import time
from collections.abc import Callable

import structlog

from offing.services.graph_folders import BrokenProject, Project, drop_version, projects, versions_kept
from offing.settings import Settings
from offing.storage import retention
from offing.storage.pool import Database

BATCH = 50
"""Runs, login links, and items of the store, of one sweep of a worker: what takes longer waits for the next."""

UNUSED_GRAPH_SECONDS = 24 * 3600.0
"""How long a kept version of a graph that no run names stays: its author may be about to ask a question with it."""

log = structlog.get_logger("offing.worker")


async def remove_expired(database: Database, settings: Settings) -> bool:
    """Remove one batch of each kind. Whether there may be more."""
    pruned = await retention.prune_checkpoints(database, settings.keep_checkpoints_days, BATCH)
    files = 0
    if settings.keep_run_files_days is not None:
        files = await retention.drop_run_files(database, settings.keep_run_files_days, BATCH)
    logins = await retention.drop_logins(database, BATCH)
    items = await retention.drop_items(database, BATCH)
    await remove_unused_graphs(database, settings)
    if files:
        log.info("old files of runs removed", runs=files)
    return max(pruned, files, logins, items) >= BATCH


async def remove_unused_graphs(
    database: Database, settings: Settings, seconds: Callable[[], float] = time.time
) -> tuple[str, ...]:
    """Remove kept versions of graphs in folders that are not on offer and that no run names. Which they were.

    While a folder cannot be read, what it offers is not known, and nothing is removed.
    """
    old = await asyncio.to_thread(versions_kept, settings.home, seconds() - UNUSED_GRAPH_SECONDS)
    used = await retention.graph_versions_in_use(database, old) if old else frozenset[str]()
    if not set(old) - used:  # folders are hashed only where something may go
        return ()
    found = await asyncio.to_thread(projects, settings.graph_paths)
    if broken := [one for one in found if isinstance(one, BrokenProject)]:
        log.warning("unused versions of graphs stay", reason=str(broken[0].error))
        return ()
    on_offer = {one.version for one in found if isinstance(one, Project)}
    unused = tuple(version for version in old if version not in used | on_offer)
    for version in unused:
        await asyncio.to_thread(drop_version, version, settings.home)
    if unused:
        log.info("unused versions of graphs removed", versions=len(unused))
    return unused

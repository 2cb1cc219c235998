"""Crons of LangGraph's clients: runs that begin by a schedule.

A cron and the run that it begins change in one transaction, under a lock of the cron's row, so each time begins one
run, however many workers look for due crons. A time that passed while no worker was there begins one run afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog

from offing.clock import new_id
from offing.core.cron_schedule import find_next_time
from offing.core.errors import InvalidInput, OffingError, Unavailable
from offing.core.langgraph_run import Multitask, RunArguments
from offing.services.graphs import get_graph
from offing.services.langgraph_assistants import add_assistant, get_assistant
from offing.services.langgraph_runs import (
    NewLangGraphRun,
    RunPlatform,
    StoredLangGraphRun,
    announce_run,
    check_arguments,
    make_room,
    store_langgraph_run,
)
from offing.storage import crons, langgraph_threads
from offing.storage.crons import CronFilter, CronRow
from offing.storage.pool import Connection, Database

MAX_DUE = 100
"""Maximum number of crons that one sweep of a process begins."""

MAX_CRONS = 10_000
"""Maximum number of crons of a tenant."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class NewCron:
    """A request for a cron."""

    assistant_id: UUID
    thread_id: UUID | None
    """`None` means a new thread for each run."""
    schedule: str
    arguments: RunArguments
    """Without those of the assistant."""
    owner: str
    timezone: str | None = None
    end_time: datetime | None = None
    enabled: bool = True
    deletes_thread: bool = False
    multitask: Multitask = Multitask.ENQUEUE
    webhook: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


async def create_cron(platform: RunPlatform, tenant_id: UUID, new: NewCron, now: datetime) -> CronRow:
    """Store a cron. Raises NotFound for an unknown thread, and InvalidInput for fields that no run could have."""
    next_run_at = find_next_time(new.schedule, new.timezone, now, new.end_time)
    await _check_run(platform, tenant_id, new.assistant_id, new.arguments)
    row = CronRow(
        id=new_id(),
        assistant_id=new.assistant_id,
        thread_id=new.thread_id,
        schedule=new.schedule,
        timezone=new.timezone,
        end_time=new.end_time,
        enabled=new.enabled,
        next_run_at=next_run_at,
        deletes_thread=new.deletes_thread,
        multitask=new.multitask,
        arguments=new.arguments,
        webhook=new.webhook,
        metadata=new.metadata,
        owner=new.owner,
        created_at=now,
        updated_at=now,
    )
    async with platform.database.transaction(tenant_id) as connection:
        if new.thread_id is not None:
            await langgraph_threads.get_thread(connection, new.thread_id)
        if await crons.count_crons(connection, CronFilter()) >= MAX_CRONS:
            raise InvalidInput("schedule", f"there are {MAX_CRONS} crons, which is the maximum", "Delete one first.")
        await crons.insert_cron(connection, tenant_id, row)
        return await crons.get_cron(connection, row.id)


async def update_cron(
    platform: RunPlatform, tenant_id: UUID, cron_id: UUID, changes: Mapping[str, Any], now: datetime
) -> CronRow:
    """Change fields of a cron, by the names of `CronRow`. Its next time is computed anew. Raises as `create_cron`."""
    current = await get_cron(platform.database, tenant_id, cron_id)
    if "arguments" in changes:
        await _check_run(platform, tenant_id, current.assistant_id, replace(current.arguments, **changes["arguments"]))
    async with platform.database.transaction(tenant_id) as connection:
        current = await crons.get_cron(connection, cron_id, locks=True)
        arguments = replace(current.arguments, **changes.get("arguments", {}))
        changed = replace(current, **{**changes, "arguments": arguments})
        if changed.thread_id is not None and changed.deletes_thread:
            raise InvalidInput("on_run_completed", "only a cron without a thread has it", "Leave it out.")
        if {"schedule", "timezone", "end_time", "enabled"} & changes.keys():
            at = find_next_time(changed.schedule, changed.timezone, now, changed.end_time)
            changed = replace(changed, next_run_at=at)
        await crons.update_cron(connection, changed)
        return await crons.get_cron(connection, cron_id)


async def get_cron(database: Database, tenant_id: UUID, cron_id: UUID) -> CronRow:
    """Return a cron. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await crons.get_cron(connection, cron_id)


async def list_crons(
    database: Database, tenant_id: UUID, chosen: CronFilter, order: str, *, descending: bool, limit: int, offset: int
) -> tuple[list[CronRow], int]:
    """Return a page of crons, and the number of all that match."""
    async with database.transaction(tenant_id) as connection:
        page = await crons.list_crons(connection, chosen, order, descending=descending, limit=limit, offset=offset)
        return page, await crons.count_crons(connection, chosen)


async def count_crons(database: Database, tenant_id: UUID, chosen: CronFilter) -> int:
    async with database.transaction(tenant_id) as connection:
        return await crons.count_crons(connection, chosen)


async def delete_cron(database: Database, tenant_id: UUID, cron_id: UUID) -> None:
    """Delete a cron. Its runs stay. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await crons.delete_cron(connection, cron_id)


async def begin_due_runs(platform: RunPlatform, now: datetime) -> int:
    """Begin the runs of crons whose time has come, at most `MAX_DUE`, and return the number of crons that were due.

    Several processes may do so at once.
    """
    due = await crons.list_due_crons(platform.database, now, MAX_DUE)
    for tenant_id, cron_id in due:
        try:
            await _begin_run(platform, tenant_id, cron_id, now)
        except Unavailable:
            raise
        except Exception:  # the others are still to begin; the next sweep tries this one again
            log.exception("a cron failed", cron=str(cron_id), tenant=str(tenant_id))
    return len(due)


async def _begin_run(platform: RunPlatform, tenant_id: UUID, cron_id: UUID, now: datetime) -> None:
    stored: tuple[NewLangGraphRun, StoredLangGraphRun] | None = None
    async with platform.database.transaction(tenant_id) as connection:
        cron = await crons.lock_due_cron(connection, cron_id, now)
        if cron is None:
            return
        if cron.end_time is None or now <= cron.end_time:
            stored = await _store_run(connection, platform, tenant_id, cron)
        next_run_at = find_next_time(cron.schedule, cron.timezone, now, cron.end_time)
        await crons.set_next_time(connection, cron_id, next_run_at)
    if stored is not None:
        await announce_run(platform, tenant_id, *stored)


async def _store_run(
    connection: Connection, platform: RunPlatform, tenant_id: UUID, cron: CronRow
) -> tuple[NewLangGraphRun, StoredLangGraphRun] | None:
    """Store the run of a cron. `None` means that it cannot begin now, such as in a busy thread that rejects it."""
    try:
        assistant = await get_assistant(platform.database, tenant_id, platform.graphs, cron.assistant_id)
        new = NewLangGraphRun(
            assistant.graph,
            assistant.id,
            add_assistant(assistant, cron.arguments),
            cron.thread_id,
            {**cron.metadata, "cron_id": str(cron.id)},
            cron.multitask,
            deletes_thread=cron.deletes_thread,
            thread_metadata=cron.metadata,
            webhook=cron.webhook,
        )
        check_arguments(get_graph(platform.graphs, new.graph), new.arguments)
        await make_room(platform, tenant_id, new)
        async with connection.transaction():
            return new, await store_langgraph_run(connection, platform, tenant_id, new)
    except Unavailable:
        raise
    except OffingError as error:
        log.warning("a cron could not begin its run", cron=str(cron.id), tenant=str(tenant_id), reason=str(error))
        return None


async def _check_run(platform: RunPlatform, tenant_id: UUID, assistant_id: UUID, arguments: RunArguments) -> None:
    assistant = await get_assistant(platform.database, tenant_id, platform.graphs, assistant_id)
    check_arguments(get_graph(platform.graphs, assistant.graph), add_assistant(assistant, arguments))


def read_clock() -> datetime:
    """Return the present time, for the processes that look for due crons."""
    return datetime.now(UTC)

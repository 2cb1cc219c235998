"""Threads for LangGraph's clients: created without a run, with metadata, found by status, copied and deleted."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.bus.live import LiveBus
from offing.bus.notifier import RunNotifier
from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.langgraph_config import ThreadTtl, ThreadTtlStrategy
from offing.core.run import CancelMode
from offing.sdk import Graph
from offing.services import langgraph_states, run_deletion, run_summaries
from offing.services.langgraph_states import ThreadGraph
from offing.services.runs import cancel_run
from offing.storage import langgraph_runs, langgraph_threads, thread_expiry
from offing.storage.langgraph_threads import LangGraphThreadRow, ThreadFilter
from offing.storage.pool import Database, repeat_deadlocked

PAGE = 100
"""Number of threads that are read at once."""

CANCEL_SECONDS = 30.0
"""Time that a request waits for the end of a run that it cancels, in seconds."""

TITLE = "A thread of a LangGraph client"


@dataclass(frozen=True, slots=True)
class NewThread:
    """The fields of a new thread."""

    id: UUID | None
    """`None` means a new id."""
    metadata: Mapping[str, Any]
    keeps_existing: bool
    """Whether an existing thread with this id is returned instead of an error."""
    ttl: ThreadTtl | None = None
    """When it expires. `None` means never."""


async def create_thread(database: Database, tenant_id: UUID, new: NewThread) -> LangGraphThreadRow:
    """Create a thread. Raises Conflict if there is one with this id, also of another tenant."""
    thread_id = new.id or new_id()
    async with database.transaction(tenant_id) as connection:
        is_new = await langgraph_threads.insert_thread(connection, tenant_id, thread_id, TITLE, new.metadata)
        if is_new and new.ttl is not None:
            await thread_expiry.set_ttl(connection, thread_id, new.ttl, replaces=True)
        if is_new or new.keeps_existing:
            try:
                return await langgraph_threads.get_thread(connection, thread_id)
            except NotFound:
                pass
    raise Conflict(f"There is a thread {thread_id}.", "Use another id, or if_exists=do_nothing.")


async def get_thread(database: Database, tenant_id: UUID, thread_id: UUID) -> LangGraphThreadRow:
    """Return a thread. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await langgraph_threads.get_thread(connection, thread_id)


async def list_threads(
    database: Database,
    tenant_id: UUID,
    chosen: ThreadFilter,
    *,
    order: str,
    descending: bool,
    limit: int,
    offset: int,
) -> list[LangGraphThreadRow]:
    async with database.transaction(tenant_id) as connection:
        return await langgraph_threads.list_threads(
            connection, chosen, order, descending=descending, limit=limit, offset=offset
        )


async def count_threads(database: Database, tenant_id: UUID, chosen: ThreadFilter) -> int:
    async with database.transaction(tenant_id) as connection:
        return await langgraph_threads.count_threads(connection, chosen)


async def change_thread(
    database: Database, tenant_id: UUID, thread_id: UUID, metadata: Mapping[str, Any], ttl: ThreadTtl | None = None
) -> LangGraphThreadRow:
    """Add keys to the metadata of a thread, and let it expire. `ttl` `None` keeps its expiry. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await langgraph_threads.get_thread(connection, thread_id)
        await langgraph_runs.lock_thread(connection, thread_id)
        await langgraph_threads.merge_metadata(connection, tenant_id, thread_id, metadata)
        if ttl is not None:
            await thread_expiry.set_ttl(connection, thread_id, ttl, replaces=True)
        return await langgraph_threads.get_thread(connection, thread_id)


async def delete_thread(
    database: Database, notifier: RunNotifier, bus: LiveBus, tenant_id: UUID, thread_id: UUID
) -> None:
    """Delete a thread with its runs, of which active ones are cancelled first.

    Raises NotFound, and Conflict if a run does not end in time.
    """
    async with database.transaction(tenant_id) as connection:
        await langgraph_threads.get_thread(connection, thread_id)
        active = await langgraph_runs.list_active_ids(connection, thread_id)
    for run_id in reversed(active):  # enqueued ones first, so that none of them starts
        await cancel_run(database, notifier, tenant_id, run_id, CancelMode.DISCARD)
    for run_id in active:
        await run_summaries.wait_for_end(database, bus, tenant_id, run_id, CANCEL_SECONDS)
    if (first := await _find_first_run(database, tenant_id, thread_id)) is not None:
        await run_deletion.delete_run(database, tenant_id, first, with_later_runs=True)
    await repeat_deadlocked(lambda: _delete_empty_thread(database, tenant_id, thread_id))


async def _delete_empty_thread(database: Database, tenant_id: UUID, thread_id: UUID) -> None:
    async with database.transaction(tenant_id) as connection:
        await langgraph_threads.delete_thread(connection, thread_id)


async def prune_threads(
    database: Database,
    notifier: RunNotifier,
    bus: LiveBus,
    tenant_id: UUID,
    thread_ids: Sequence[UUID],
    strategy: ThreadTtlStrategy,
) -> int:
    """Delete threads, or all their states but the latest, and return the number of threads that there were.

    Raises Conflict for a thread whose run does not end in time, or is active and only the states are to be deleted.
    The threads before it are pruned then.
    """
    count = 0
    for thread_id in dict.fromkeys(thread_ids):
        with suppress(NotFound):
            if strategy is ThreadTtlStrategy.DELETE:
                await delete_thread(database, notifier, bus, tenant_id, thread_id)
            else:
                await _keep_latest_states(database, tenant_id, thread_id)
            count += 1
    return count


async def delete_threads_of_assistant(
    database: Database, notifier: RunNotifier, bus: LiveBus, tenant_id: UUID, assistant_id: UUID
) -> None:
    """Delete the threads whose last run was of an assistant, as `delete_thread` does."""
    chosen = ThreadFilter({"assistant_id": str(assistant_id)}, None, None)
    while page := await list_threads(
        database, tenant_id, chosen, order="created_at", descending=True, limit=PAGE, offset=0
    ):
        for thread in page:
            await delete_thread(database, notifier, bus, tenant_id, thread.id)


async def _keep_latest_states(database: Database, tenant_id: UUID, thread_id: UUID) -> None:
    async with database.transaction(tenant_id) as connection:
        await langgraph_threads.get_thread(connection, thread_id)
        await langgraph_runs.lock_thread(connection, thread_id)
        if await langgraph_runs.list_active_ids(connection, thread_id):
            raise Conflict(f"A run of thread {thread_id} is active.", "Wait until it ends, or cancel it.")
        await thread_expiry.keep_latest_states(connection, thread_id)


async def expire_threads(database: Database, now: datetime, limit: int) -> int:
    """Do what the strategies of at most `limit` expired threads say, and return their number.

    Several processes may do so at once. Runs stay in Offing's record, as long as nobody deletes them.
    """
    expired = await thread_expiry.list_expired(database, now, limit)
    for tenant_id, thread_id in expired:
        async with database.transaction(tenant_id) as connection:
            await thread_expiry.expire_thread(connection, thread_id, now)
    return len(expired)


async def copy_thread(
    database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], thread_id: UUID
) -> LangGraphThreadRow:
    """Create a thread with the states and the metadata of another. Raises NotFound."""
    source = await get_thread(database, tenant_id, thread_id)
    copied = await create_thread(database, tenant_id, NewThread(None, source.metadata, keeps_existing=False))
    if (graph := find_graph(source, graphs)) is not None:
        await langgraph_states.copy_states(database, thread_id, ThreadGraph(tenant_id, copied.id, graph))
    async with database.transaction(tenant_id) as connection:
        if source.status in ("interrupted", "error"):
            await langgraph_threads.set_status(connection, tenant_id, copied.id, source.status)
        return await langgraph_threads.get_thread(connection, copied.id)


def find_graph(thread: LangGraphThreadRow, graphs: Mapping[str, Graph]) -> Graph | None:
    """Return the graph of a thread: that of its last run, else the one in its metadata. `None` means that it has none.

    Raises InvalidInput if it is not installed.
    """
    name = thread.graph or thread.metadata.get("graph_id")
    if name is None:
        return None
    if not isinstance(name, str) or name not in graphs:
        raise InvalidInput("thread_id", f"its graph {name!r} is not installed here", "Install the graph.")
    return graphs[name]


async def _find_first_run(database: Database, tenant_id: UUID, thread_id: UUID) -> UUID | None:
    async with database.transaction(tenant_id) as connection:
        return await langgraph_runs.find_first_run(connection, thread_id)

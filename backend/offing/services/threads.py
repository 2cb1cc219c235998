"""Threads with their runs."""

from dataclasses import dataclass
from uuid import UUID

from offing.storage import run_summaries, threads
from offing.storage.pagination import parse_page_cursor, render_page_cursor
from offing.storage.pool import Database
from offing.storage.run_summaries import RunSummary
from offing.storage.threads import ThreadRow


@dataclass(frozen=True, slots=True)
class ThreadWithRuns:
    thread: ThreadRow
    runs: list[RunSummary]


async def list_threads(
    database: Database, tenant_id: UUID, cursor: str | None, limit: int
) -> tuple[list[ThreadWithRuns], str | None]:
    """Return a page of threads with their runs, newest first, and the cursor of the next page."""
    before = parse_page_cursor(cursor)
    async with database.transaction(tenant_id) as connection:
        items = await threads.list_threads(connection, before, limit + 1)
        page = items[:limit]
        runs = await run_summaries.list_runs_of_threads(connection, [t.id for t in page])
    listed = [ThreadWithRuns(t, runs[t.id]) for t in page]
    return listed, render_page_cursor((page[-1].created_at, page[-1].id)) if len(items) > limit else None


async def get_thread(database: Database, tenant_id: UUID, thread_id: UUID) -> ThreadWithRuns:
    """Return a thread with its runs. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        thread = await threads.get_thread(connection, thread_id)
        return ThreadWithRuns(thread, (await run_summaries.list_runs_of_threads(connection, [thread_id]))[thread_id])

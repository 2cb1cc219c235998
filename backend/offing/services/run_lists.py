"""Lists of runs by filters and by words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.run_labels import normalize_tag
from offing.library.word_query import WordQuery
from offing.services.run_search import RunMatch, index_queued_runs, locate_match, parse_query, render_tsquery
from offing.storage import run_search, run_summaries
from offing.storage.pagination import PageKey, parse_page_cursor, render_page_cursor
from offing.storage.pool import Connection, Database
from offing.storage.run_filter import RunFilter
from offing.storage.run_summaries import RunSummary

MAX_INDEXED_PER_SEARCH = 200
"""Queued runs that a search indexes first. Only after an upgrade can there be more; workers index the others."""

MAX_MINIMAPS = 20
"""Maximum number of runs of a page that is listed with step minimaps."""

MATCHES_PER_WINDOW = 500
"""Runs with the searched words that are compared with the filters at once."""

MAX_WINDOWS = 20
"""Maximum number of windows for one page. A page that needs more is shorter, and the next one continues."""


@dataclass(frozen=True, slots=True)
class RunList:
    """A page of runs, newest first."""

    runs: list[RunSummary]
    next_cursor: str | None
    """`None` means that this is the last page."""
    matches: Mapping[UUID, RunMatch] = field(default_factory=dict[UUID, RunMatch])
    """Where runs match a search. Empty without a search."""
    unindexed_count: int = 0
    """Number of runs that a search may have missed, because they are still to be indexed."""
    minimaps: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    """Step marks of the runs. Empty if they were not asked for."""


async def list_runs(
    database: Database,
    tenant_id: UUID,
    run_filter: RunFilter,
    words: str | None,
    cursor: str | None,
    limit: int,
    *,
    with_minimaps: bool = False,
) -> RunList:
    """Return a page of runs, newest first. `words` must all occur; `None` means that nothing is searched.

    `with_minimaps` adds the step marks of each run, for at most `MAX_MINIMAPS` runs. Raises InvalidInput.
    """
    if with_minimaps and limit > MAX_MINIMAPS:
        raise InvalidInput("limit", f"{limit} runs with their minimaps are too many", f"Use at most {MAX_MINIMAPS}.")
    listed = await _list_runs(database, tenant_id, run_filter, words, cursor, limit)
    if not with_minimaps:
        return listed
    async with database.transaction(tenant_id) as connection:
        ids = [summary.run.id for summary in listed.runs]
        return replace(listed, minimaps=await run_summaries.sample_step_marks(connection, ids))


async def _list_runs(
    database: Database, tenant_id: UUID, run_filter: RunFilter, words: str | None, cursor: str | None, limit: int
) -> RunList:
    before = parse_page_cursor(cursor)
    _check_filter(run_filter, words)
    if words is not None:
        return await _search_runs(database, tenant_id, run_filter, parse_query(words), before, limit)
    async with database.transaction(tenant_id) as connection:
        summaries = await run_summaries.list_runs(connection, run_filter, before, limit + 1)
    page = summaries[:limit]
    return RunList(page, _render_key(page[-1]) if len(summaries) > limit else None)


def _check_filter(run_filter: RunFilter, words: str | None) -> None:
    if run_filter.tag is not None and normalize_tag("tag", run_filter.tag) != run_filter.tag:
        raise InvalidInput("tag", "no run has such a tag", "Write it as the run shows it.")
    if words is not None and run_filter.kind != "interactive":
        raise InvalidInput("q", "rollouts are not searched by words", "Leave out q, or list interactive runs.")
    start, end = run_filter.created_from, run_filter.created_before
    if start is not None and end is not None and start >= end:
        raise InvalidInput("created_before", "it is not after created_from", "Use a later time.")


async def _search_runs(
    database: Database,
    tenant_id: UUID,
    run_filter: RunFilter,
    query: WordQuery,
    before: PageKey | None,
    limit: int,
) -> RunList:
    await index_queued_runs(database, tenant_id, MAX_INDEXED_PER_SEARCH)
    async with database.transaction(tenant_id) as connection:
        tsquery = render_tsquery(query, tenant_id)
        summaries, continues_at = await _find_matching(connection, run_filter, tsquery, before, limit + 1)
        page = summaries[:limit]
        texts = await run_search.list_texts(connection, [summary.run.id for summary in page]) if page else []
        unindexed = await run_search.count_queued_runs(connection, tenant_id)
    matches = {one.run_id: match for one in texts if (match := locate_match(query, one)) is not None}
    cursor = _render_key(page[-1]) if len(summaries) > limit else continues_at and render_page_cursor(continues_at)
    return RunList(page, cursor, matches, unindexed)


async def _find_matching(
    connection: Connection, run_filter: RunFilter, tsquery: str, before: PageKey | None, limit: int
) -> tuple[list[RunSummary], PageKey | None]:
    """Return the next matching runs, and where to continue after the last window. `None` means that it was the last."""
    summaries: list[RunSummary] = []
    if before is None and run_filter.created_before is not None:
        before = run_filter.created_before, UUID(int=0)
    for _ in range(MAX_WINDOWS):
        keys = await run_search.find_runs(connection, tsquery, before, MATCHES_PER_WINDOW)
        summaries += await run_summaries.list_runs_among(connection, run_filter, _ids(keys), limit - len(summaries))
        if len(keys) < MATCHES_PER_WINDOW or _is_before(keys[-1], run_filter):
            return summaries, None
        before = keys[-1]
        if len(summaries) >= limit:
            break
    return summaries, before


def _is_before(key: PageKey, run_filter: RunFilter) -> bool:
    return run_filter.created_from is not None and key[0] < run_filter.created_from


def _ids(keys: Sequence[PageKey]) -> list[UUID]:
    return [run_id for _, run_id in keys]


def _render_key(last: RunSummary) -> str:
    return render_page_cursor((last.run.created_at, last.run.id))

"""Lists of runs by filters and by words, in several orders."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.run import RunStatus
from offing.core.run_labels import normalize_tag
from offing.services.run_search import RunMatch, index_queued_runs, locate_match, parse_query
from offing.services.run_search_pages import MAX_WINDOWS, list_best_first, list_newest_first
from offing.storage import ended_run_usage, run_search, run_summaries
from offing.storage.ended_run_usage import Total
from offing.storage.pagination import (
    NumberKey,
    parse_number_cursor,
    parse_page_cursor,
    render_number_cursor,
    render_page_cursor,
)
from offing.storage.pool import Connection, Database
from offing.storage.run_filter import RunFilter
from offing.storage.run_summaries import RunSummary

MAX_INDEXED_PER_SEARCH = 200
"""Queued runs that a search indexes first. Only after an upgrade can there be more; workers index the others."""

MAX_MINIMAPS = 20
"""Maximum number of runs of a page that is listed with step minimaps."""

MAX_PINNED_FIRST = 10
"""Maximum number of pinned runs that stand before the others."""

MAX_COUNT = 100
"""Runs beyond this are not counted."""

RUNS_PER_WINDOW = 250
"""Runs in the order of their cost or duration that are compared with the filters at once."""

RunOrder = Literal["best", "newest", "oldest", "cost", "duration"]
"""`best`: the best match of a search first. `cost` and `duration`: the most first, of the runs that have ended."""


@dataclass(frozen=True, slots=True)
class RunList:
    """A page of runs."""

    runs: list[RunSummary]
    next_cursor: str | None
    """`None` means that this is the last page."""
    matches: Mapping[UUID, RunMatch] = field(default_factory=dict[UUID, RunMatch])
    """Where runs match a search. Empty without a search."""
    unindexed_count: int = 0
    """Number of runs that a search may have missed, because they are still to be indexed."""
    minimaps: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    """Step marks of the runs. Empty if they were not asked for."""
    pinned: tuple[RunSummary, ...] = ()
    """The pinned runs that stand first, newest first. Only the first page has them."""
    has_more_pinned: bool = False
    """Whether more runs are pinned than `pinned` has."""


@dataclass(frozen=True, slots=True)
class ListForm:
    """How a list shows the runs that pass its filter."""

    order: RunOrder | None = None
    """`None` means the best match first for a search, else the newest first."""
    with_minimaps: bool = False
    """Adds the step marks of each run, for at most `MAX_MINIMAPS` runs."""
    pinned_first: int = 0
    """Number of pinned runs that stand before the others on the first page. The pages then list the others alone. 0
    means that pinned runs stand among the others.
    """


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Numbers of runs in the views of the list, each at most `MAX_COUNT`."""

    waiting_for_person: int
    active: int
    failed: int
    pinned: int
    archived: int


DEFAULT_FORM = ListForm()

COUNTED = {
    "waiting_for_person": RunFilter(waiting_for_person=True, archived=False),
    "active": RunFilter(status_group="active", archived=False),
    "failed": RunFilter(status=RunStatus.FAILED, archived=False),
    "pinned": RunFilter(pinned=True, archived=False),
    "archived": RunFilter(archived=True),
}


async def list_runs(
    database: Database,
    tenant_id: UUID,
    run_filter: RunFilter,
    words: str | None,
    cursor: str | None,
    limit: int,
    form: ListForm = DEFAULT_FORM,
) -> RunList:
    """Return a page of runs. `words` must all occur; `None` means that nothing is searched. Raises InvalidInput."""
    _check_filter(run_filter, words)
    _check_form(form, run_filter, words, limit)
    if words is not None:
        await index_queued_runs(database, tenant_id, MAX_INDEXED_PER_SEARCH)
    async with database.transaction(tenant_id) as connection:
        if words is not None:
            listed = await _search_runs(connection, tenant_id, run_filter, words, cursor, limit, form)
        else:
            listed = await _list_runs(connection, run_filter, cursor, limit, form)
        if not form.with_minimaps:
            return listed
        ids = [summary.run.id for summary in (*listed.pinned, *listed.runs)]
        return replace(listed, minimaps=await run_summaries.sample_step_marks(connection, ids))


async def count_runs(database: Database, tenant_id: UUID) -> RunCounts:
    """Return how many runs are in each view of the list, at most `MAX_COUNT`."""
    async with database.transaction(tenant_id) as connection:
        counts = await run_summaries.count_runs(connection, [*COUNTED.values()], MAX_COUNT)
    return RunCounts(**dict(zip(COUNTED, counts, strict=True)))


def _check_filter(run_filter: RunFilter, words: str | None) -> None:
    if run_filter.tag is not None and normalize_tag("tag", run_filter.tag) != run_filter.tag:
        raise InvalidInput("tag", "no run has such a tag", "Write it as the run shows it.")
    if words is not None and run_filter.kind != "interactive":
        raise InvalidInput("q", "rollouts are not searched by words", "Leave out q, or list interactive runs.")
    start, end = run_filter.created_from, run_filter.created_before
    if start is not None and end is not None and start >= end:
        raise InvalidInput("created_before", "it is not after created_from", "Use a later time.")


def _check_form(form: ListForm, run_filter: RunFilter, words: str | None, limit: int) -> None:
    order = form.order
    if form.with_minimaps and limit > MAX_MINIMAPS:
        raise InvalidInput("limit", f"{limit} runs with their minimaps are too many", f"Use at most {MAX_MINIMAPS}.")
    if words is None and order == "best":
        raise InvalidInput("order", "without q, no run matches better than another", "Use q, or another order.")
    if words is not None and order in ("oldest", "cost", "duration"):
        raise InvalidInput("order", f"a search has no order by {order}", "Use best or newest, or leave out q.")
    if order in ("cost", "duration") and run_filter.kind != "interactive":
        raise InvalidInput("order", f"rollouts have no order by {order}", "Use newest or oldest.")
    if form.pinned_first and (words is not None or run_filter.pinned is not None or order in ("cost", "duration")):
        problem = "pinned runs stand first only in a list by time, without q and pinned"
        raise InvalidInput("pinned_first", problem, "Leave one of them out.")


async def _list_runs(
    connection: Connection, run_filter: RunFilter, cursor: str | None, limit: int, form: ListForm
) -> RunList:
    if form.order == "cost" or form.order == "duration":
        return await _list_by_total(connection, run_filter, form.order, parse_number_cursor(cursor), limit)
    before = parse_page_cursor(cursor)
    pinned: list[RunSummary] = []
    if form.pinned_first:
        if before is None:
            only_pinned = replace(run_filter, pinned=True, latest_of_thread=False)
            pinned = await run_summaries.list_runs(connection, only_pinned, None, form.pinned_first + 1)
        run_filter = replace(run_filter, pinned=False)
    summaries = await run_summaries.list_runs(
        connection, run_filter, before, limit + 1, oldest_first=form.order == "oldest"
    )
    page = summaries[:limit]
    cursor = render_page_cursor(page[-1].page_key) if len(summaries) > limit else None
    first = tuple(pinned[: form.pinned_first])
    return RunList(page, cursor, pinned=first, has_more_pinned=len(pinned) > len(first))


async def _list_by_total(
    connection: Connection, run_filter: RunFilter, total: Total, before: NumberKey | None, limit: int
) -> RunList:
    """Return a page of ended runs, the largest total first."""
    page: list[RunSummary] = []
    values: dict[UUID, int] = {}
    for _ in range(MAX_WINDOWS):
        keys = await ended_run_usage.list_by_total(connection, total, before, RUNS_PER_WINDOW)
        values |= {run_id: value for value, run_id in keys}
        passing = set(await run_summaries.filter_run_ids(connection, run_filter, [run_id for _, run_id in keys]))
        ids = [run_id for _, run_id in keys if run_id in passing][: limit + 1 - len(page)]
        summaries = await run_summaries.list_runs_among(connection, run_filter, ids, len(ids))
        by_id = {summary.run.id: summary for summary in summaries}
        page += [by_id[run_id] for run_id in ids if run_id in by_id]
        if len(page) > limit:
            last = page[limit - 1].run.id
            return RunList(page[:limit], render_number_cursor((values[last], last)))
        if len(keys) < RUNS_PER_WINDOW:
            return RunList(page, None)
        before = keys[-1]
    return RunList(page, before and render_number_cursor(before))


async def _search_runs(
    connection: Connection,
    tenant_id: UUID,
    run_filter: RunFilter,
    words: str,
    cursor: str | None,
    limit: int,
    form: ListForm,
) -> RunList:
    query = parse_query(words)
    search = list_newest_first if form.order == "newest" else list_best_first
    page, following = await search(connection, tenant_id, run_filter, query, cursor, limit)
    texts = await run_search.list_texts(connection, [summary.run.id for summary in page]) if page else []
    unindexed = await run_search.count_queued_runs(connection, tenant_id)
    matches = {one.run_id: match for one in texts if (match := locate_match(query, one)) is not None}
    return RunList(page, following, matches, unindexed)

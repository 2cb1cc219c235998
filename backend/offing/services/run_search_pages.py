"""Pages of a search of runs: the best match first, or the newest.

The best match first means: of the runs whose title, tags, question or headings have all words the newest 500, and of
all that have them the newest 500, are ranked. Those beyond follow, newest first. So the work of a page is bounded,
however many runs match.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from offing.library.word_query import WordQuery
from offing.services.run_search import render_rank_query, render_tsquery
from offing.storage import run_search, run_summaries
from offing.storage.pagination import (
    PageKey,
    decode_cursor,
    encode_cursor,
    parse_page_cursor,
    parse_time,
    render_page_cursor,
    unknown_cursor,
)
from offing.storage.pool import Connection
from offing.storage.run_filter import RunFilter
from offing.storage.run_search import FoundRun
from offing.storage.run_summaries import RunSummary

MATCHES_PER_WINDOW = 500
"""Runs with the searched words that are ranked, or compared with the filters, at once."""

MAX_WINDOWS = 20
"""Maximum number of windows for one page. A page that needs more is shorter, and the next one continues."""

MAX_ID = UUID(int=(1 << 128) - 1)

RankKey = tuple[float, datetime, UUID]
"""Rank, creation and id: the order of ranked runs."""

SearchPage = tuple[list[RunSummary], str | None]
"""Runs, and the cursor of the next page. `None` means that there is none."""


@dataclass(frozen=True, slots=True)
class RankedPlace:
    """Where a list of matches, best first, continues."""

    newest_at: datetime
    """Runs that were created later are left out, so that the pages of a list are about the same runs."""
    head_until: PageKey | None
    """The oldest ranked one of the runs whose head has all words. `None` means that all of these are ranked."""
    until: PageKey | None
    """The oldest ranked one of all runs that have the words, and then of those that were listed after the ranked ones.
    `None` means that all of them are ranked.
    """
    after: RankKey | None
    """The last ranked run that was listed. `None` means that all of them were."""


async def list_newest_first(
    connection: Connection, tenant_id: UUID, run_filter: RunFilter, query: WordQuery, cursor: str | None, limit: int
) -> SearchPage:
    """Return a page of the runs that match, newest first. Raises InvalidInput for a cursor of another list."""
    before = parse_page_cursor(cursor)
    if before is None and run_filter.created_before is not None:
        before = run_filter.created_before, UUID(int=0)
    tsquery = render_tsquery(query, tenant_id)
    summaries, continues_at = await _list_windows(connection, run_filter, tsquery, before, None, limit + 1)
    if len(summaries) > limit:
        continues_at = summaries[limit - 1].page_key
    return summaries[:limit], continues_at and render_page_cursor(continues_at)


async def list_best_first(
    connection: Connection, tenant_id: UUID, run_filter: RunFilter, query: WordQuery, cursor: str | None, limit: int
) -> SearchPage:
    """Return a page of the runs that match, best match first. Raises InvalidInput for a cursor of another list."""
    place = None if cursor is None else parse_place(cursor)
    page: list[RunSummary] = []
    if place is None or place.after is not None:
        ranked, place = await _rank_matches(connection, tenant_id, run_filter, query, place)
        listed = ranked[:limit]
        page = await _load_in_order(connection, run_filter, [key[2] for key in listed])
        if len(ranked) > limit:
            return page, render_place(replace(place, after=listed[-1]))
        place = replace(place, after=None)
    if place.until is None:
        return page, None
    if len(page) == limit:
        return page, render_place(place)
    return await _append_rest(connection, run_filter, render_tsquery(query, tenant_id), place, page, limit)


async def _append_rest(
    connection: Connection,
    run_filter: RunFilter,
    tsquery: str,
    place: RankedPlace,
    page: list[RunSummary],
    limit: int,
) -> SearchPage:
    """Fill a page with the runs that are not ranked, newest first."""
    room = limit - len(page)
    more, continues_at = await _list_windows(connection, run_filter, tsquery, place.until, place, room + 1)
    if len(more) > room:
        continues_at = more[room - 1].page_key
    return page + more[:room], continues_at and render_place(replace(place, until=continues_at))


async def _rank_matches(
    connection: Connection, tenant_id: UUID, run_filter: RunFilter, query: WordQuery, place: RankedPlace | None
) -> tuple[list[RankKey], RankedPlace]:
    """Return the ranked runs that pass the filter and were not listed yet, best first, and where the list stands."""
    before = (run_filter.created_before, UUID(int=0)) if run_filter.created_before is not None else None
    if place is not None:
        before = place.newest_at, MAX_ID
    tsquery, rank_query = render_tsquery(query, tenant_id), render_rank_query(query, tenant_id)
    in_head, anywhere = [
        await run_search.find_runs(
            connection, tsquery, before, MATCHES_PER_WINDOW, rank_query=rank_query, in_head=is_in_head
        )
        for is_in_head in (True, False)
    ]
    if place is None:
        place = _begin(in_head, anywhere)
    else:
        in_head, anywhere = _not_before(in_head, place.head_until), _not_before(anywhere, place.until)
    matches = {one.run_id: (one.rank, *one.key) for one in (*in_head, *anywhere)}
    left = {id: key for id, key in matches.items() if place.after is None or key < place.after}
    passing = await run_summaries.filter_run_ids(connection, run_filter, list(left))
    return sorted((left[id] for id in passing), reverse=True), place


def _begin(in_head: list[FoundRun], anywhere: list[FoundRun]) -> RankedPlace:
    newest_at = max((one.key[0] for one in (*in_head, *anywhere)), default=datetime.max.replace(tzinfo=UTC))
    head_until, until = (page[-1].key if len(page) == MATCHES_PER_WINDOW else None for page in (in_head, anywhere))
    return RankedPlace(newest_at, head_until, until, None)


def _not_before(matches: list[FoundRun], oldest: PageKey | None) -> list[FoundRun]:
    """Return the runs of the window as it was for the first page. After a deletion, it has older runs, too."""
    return matches if oldest is None else [one for one in matches if one.key >= oldest]


async def _load_in_order(connection: Connection, run_filter: RunFilter, run_ids: list[UUID]) -> list[RunSummary]:
    summaries = await run_summaries.list_runs_among(connection, run_filter, run_ids, len(run_ids))
    by_id = {summary.run.id: summary for summary in summaries}
    return [by_id[id] for id in run_ids if id in by_id]


async def _list_windows(
    connection: Connection,
    run_filter: RunFilter,
    tsquery: str,
    before: PageKey | None,
    ranked: RankedPlace | None,
    limit: int,
) -> tuple[list[RunSummary], PageKey | None]:
    """Return the next matching runs, newest first, without those that are ranked, and where to continue after the last
    window. `None` means that it was the last.
    """
    summaries: list[RunSummary] = []
    for _ in range(MAX_WINDOWS):
        matches = await run_search.find_runs(connection, tsquery, before, MATCHES_PER_WINDOW)
        ids = [one.run_id for one in matches if ranked is None or not _is_ranked(one, ranked)]
        summaries += await run_summaries.list_runs_among(connection, run_filter, ids, limit - len(summaries))
        if len(matches) < MATCHES_PER_WINDOW or _is_before(matches[-1].key, run_filter):
            return summaries, None
        before = matches[-1].key
        if len(summaries) >= limit:
            break
    return summaries, before


def _is_ranked(match: FoundRun, place: RankedPlace) -> bool:
    return match.is_in_head and (place.head_until is None or match.key >= place.head_until)


def _is_before(key: PageKey, run_filter: RunFilter) -> bool:
    return run_filter.created_from is not None and key[0] < run_filter.created_from


def render_place(place: RankedPlace) -> str:
    """Return a place as the opaque text of a cursor."""
    return encode_cursor(orjson.dumps([place.newest_at, place.head_until, place.until, place.after]))


def parse_place(cursor: str) -> RankedPlace:
    """Parse a cursor of `render_place`. Raises InvalidInput for any other text."""
    content = decode_cursor(cursor)
    try:
        newest_at, head_until, until, after = orjson.loads(content)
        rank = None if after is None else (float(after[0]), parse_time(after[1]), UUID(after[2]))
        return RankedPlace(parse_time(newest_at), _parse_key(head_until), _parse_key(until), rank)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise unknown_cursor() from None


def _parse_key(parts: Any) -> PageKey | None:
    if parts is None:
        return None
    at, run_id = parts
    return parse_time(at), UUID(run_id)

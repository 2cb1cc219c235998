"""Index the words of runs, and search them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.library.word_query import (
    WordQuery,
    cut_excerpt,
    find_best_text,
    list_indexed_terms,
    locate_terms,
    parse_word_query,
)
from offing.storage import run_search as rows
from offing.storage.pool import Database
from offing.storage.run_search import RunTexts, RunWords

MAX_RUNS_PER_BATCH = 20
"""Runs that one statement indexes, so that a worker that writes a report does not wait long for it."""


class MatchLocation(StrEnum):
    TITLE = "title"
    QUESTION = "question"
    TAG = "tag"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class RunMatch:
    """Where a run matches a search best."""

    location: MatchLocation
    excerpt: str
    marks: tuple[tuple[int, int], ...] = ()
    """Where the searched words stand in the excerpt, in code points, ends excluded."""
    question_marks: tuple[tuple[int, int], ...] = ()
    """Where they stand in the question."""
    title_marks: tuple[tuple[int, int], ...] = ()
    """Where they stand in the title that a person gave the run."""


async def index_queued_runs(database: Database, tenant_id: UUID, limit: int) -> int:
    """Index at most `limit` runs of a tenant that are new or have changed, newest first. Return their number."""
    indexed = 0
    while indexed < limit:
        size = min(MAX_RUNS_PER_BATCH, limit - indexed)
        listed, stored = await _index_batch(database, tenant_id, size)
        indexed += stored
        if listed < size or not stored:
            break
    return indexed


async def index_all_tenants(database: Database, limit: int) -> int:
    """Index at most `limit` queued runs of each of a few tenants. Return the number of runs."""
    tenants = await rows.list_tenants_to_index(database, 20)
    return sum([await index_queued_runs(database, tenant, limit) for tenant in tenants])


async def _index_batch(database: Database, tenant_id: UUID, limit: int) -> tuple[int, int]:
    """Return how many runs were listed and how many of them were indexed. The others have changed meanwhile.

    The newest runs are those in progress, so no lock is held while their texts are read and split into words.
    """
    async with database.transaction(tenant_id) as connection:
        queued = await rows.list_queued_runs(connection, tenant_id, limit)
        texts = await rows.list_texts(connection, [run.run_id for run in queued]) if queued else []
    by_id = {run.run_id: run for run in queued}
    words = await asyncio.to_thread(
        lambda: {
            by_id[one.run_id]: RunWords(_list_words(tenant_id, one), _list_head_words(tenant_id, one)) for one in texts
        }
    )
    if not words:
        return len(queued), 0
    async with database.transaction(tenant_id, pipelined=True) as connection:
        return len(queued), await rows.store_words(connection, words)


def _list_words(tenant_id: UUID, texts: RunTexts) -> list[str]:
    return _list_prefixed(tenant_id, (texts.question, texts.title, *texts.tags, *texts.report))


def _list_head_words(tenant_id: UUID, texts: RunTexts) -> dict[str, list[str]]:
    """Return the words of a run's head by their weight."""
    by_weight = {"A": (texts.title,), "B": (texts.question,), "C": texts.headings, "D": texts.tags}
    return {weight: _list_prefixed(tenant_id, of_weight) for weight, of_weight in by_weight.items()}


def _list_prefixed(tenant_id: UUID, texts: Sequence[str]) -> list[str]:
    prefix = get_prefix(tenant_id)
    return [prefix + term for term in list_indexed_terms(texts)]


def get_prefix(tenant_id: UUID) -> str:
    """Return what the indexed words of a tenant begin with. Two tenants may share it, which costs only time."""
    return f"{tenant_id.hex[-8:]}:"


def parse_query(text: str) -> WordQuery:
    """Return the words that a person searches for. Raises InvalidInput for `q` if there are none."""
    query = parse_word_query(text)
    if query.is_empty:
        raise InvalidInput("q", "it has no word that is searched for", "Use a word other than those like 'the'.")
    return query


def render_tsquery(query: WordQuery, tenant_id: UUID) -> str:
    """Return a query in Postgres' notation. Terms consist of letters and digits and need no escapes."""
    prefix = get_prefix(tenant_id)
    parts = [f"'{prefix}{term}'" for term in query.terms]
    if query.beginning:
        complete = " & ".join(f"'{prefix}{term}'" for term in query.last_terms)
        beginning = f"'{prefix}{query.beginning}':*"
        parts.append(f"({beginning} | ({complete}))" if complete else beginning)
    return " & ".join(parts)


def render_rank_query(query: WordQuery, tenant_id: UUID) -> str:
    """Return the query by which matches are ranked: any of the terms, in Postgres' notation."""
    prefix = get_prefix(tenant_id)
    terms = [f"'{prefix}{term}'" for term in dict.fromkeys((*query.terms, *query.last_terms))]
    return " | ".join((*terms, *([f"'{prefix}{query.beginning}':*"] if query.beginning else ())))


def locate_match(query: WordQuery, texts: RunTexts) -> RunMatch | None:
    """Return the text of a run that matches best. `None` means that it has changed and matches no more."""
    candidates: Sequence[tuple[MatchLocation, str]] = [
        (MatchLocation.TITLE, texts.title),
        (MatchLocation.QUESTION, texts.question),
        *((MatchLocation.TAG, tag) for tag in texts.tags),
        *((MatchLocation.REPORT, text) for text in texts.report),
    ]
    best = find_best_text(query, [text for _, text in candidates])
    if best is None:
        return None
    location, text = candidates[best]
    excerpt = cut_excerpt(query, text)
    marks, *of_name = (locate_terms(query, one) for one in (excerpt, texts.question, texts.title))
    return RunMatch(location, excerpt, marks, *of_name)

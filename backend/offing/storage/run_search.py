"""The search index of runs: the words of a question, its title, tags and the latest report.

Triggers queue a run whenever one of these is new or changes. Whoever searches, and the workers' sweep, index queued
runs. Each stored word begins with a prefix of the tenant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

from offing.storage.pagination import PageKey
from offing.storage.pool import Connection, Database

LIST_QUEUED = """
    select run_id, queued_at from run_search_queue where tenant_id = %s order by queued_at desc limit %s
"""
"""Newest first, because people search for what they have just seen."""

COUNT_QUEUED = "select count(*) from (select from run_search_queue where tenant_id = %s limit 10000) as queued"

LIST_TEXTS = """
    select run.id, run.question, run.title,
           array(select tag from run_tag where run_tag.run_id = run.id order by position),
           (select body from report where report.run_id = run.id order by version desc limit 1)
      from run where run.id = any(%s)
"""

STORE_WORDS = """
    with due as (
      select q.run_id, new.words, new.head
        from unnest(%(runs)s::uuid[], %(queued_at)s::timestamptz[], %(words)s::text[], %(heads)s::text[])
             as new(run_id, queued_at, words, head)
             join run_search_queue q on q.run_id = new.run_id and q.queued_at = new.queued_at
             join run_search s on s.run_id = q.run_id
         for update of s, q skip locked),
    taken as (delete from run_search_queue q using due where q.run_id = due.run_id)
    update run_search s set words = array_to_tsvector(string_to_array(due.words, ' ')), head = due.head::tsvector
      from due
     where s.run_id = due.run_id
    returning s.run_id
"""
"""A change of a run gives its queue row another time, or holds its lock. Such a run stays queued."""

FIND_RUNS = """
    select run_id, run_created_at, is_in_head, rank
      from app.find_runs_by_words(%(query)s::tsquery, %(rank_query)s::tsquery, %(in_head)s, %(at)s, %(id)s, %(limit)s)
"""

LIST_TENANTS = "select app.list_tenants_to_index(%s)"


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run that is to be indexed."""

    run_id: UUID
    queued_at: datetime
    """When it was queued. Each change of the run replaces it."""


@dataclass(frozen=True, slots=True)
class RunTexts:
    """The texts of a run that are searched."""

    run_id: UUID
    question: str
    title: str
    """The title that a person gave the run. Empty means none."""
    tags: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    """Title, answer, headings and sentences of the latest report. Empty means that there is no report."""
    headings: tuple[str, ...] = ()
    """Title and headings of the latest report, which `report` has, too."""


@dataclass(frozen=True, slots=True)
class RunWords:
    """The words of a run that are stored."""

    words: Sequence[str]
    head: Mapping[str, Sequence[str]]
    """Those of its head by their weight, `A` to `D`."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that has the searched words."""

    key: PageKey
    is_in_head: bool
    """Whether its title, tags, question and the headings of its report have all of the words."""
    rank: float
    """How well the head matches. 0 also means that it was not asked for."""

    @property
    def run_id(self) -> UUID:
        return self.key[1]


async def list_queued_runs(connection: Connection, tenant_id: UUID, limit: int) -> list[QueuedRun]:
    """Return queued runs, newest first. Read their texts afterwards."""
    rows = await (await connection.execute(LIST_QUEUED, (tenant_id, limit))).fetchall()
    return [QueuedRun(run_id, queued_at) for run_id, queued_at in rows]


async def count_queued_runs(connection: Connection, tenant_id: UUID) -> int:
    """Return the number of runs that are still to be indexed, at most 10,000."""
    row = await (await connection.execute(COUNT_QUEUED, (tenant_id,))).fetchone()
    return row[0] if row else 0


async def list_texts(connection: Connection, run_ids: Sequence[UUID]) -> list[RunTexts]:
    """Return the texts of these runs, in any order."""
    rows = await (await connection.execute(LIST_TEXTS, (list(run_ids),))).fetchall()
    return [_texts_from_row(row) for row in rows]


async def store_words(connection: Connection, words: Mapping[QueuedRun, RunWords]) -> int:
    """Replace the indexed words of runs and take them off the queue. Return the number of runs.

    Runs that have changed since they were listed are left out and stay queued. The words contain no spaces. A worker
    that writes a report of one of these runs waits until the transaction ends.
    """
    values = {
        "runs": [run.run_id for run in words],
        "queued_at": [run.queued_at for run in words],
        "words": [" ".join(one.words) for one in words.values()],
        "heads": [_render_tsvector(one.head) for one in words.values()],
    }
    return len(await (await connection.execute(STORE_WORDS, values)).fetchall())


async def find_runs(
    connection: Connection,
    query: str,
    before: PageKey | None,
    limit: int,
    *,
    rank_query: str | None = None,
    in_head: bool = False,
) -> list[FoundRun]:
    """Return at most `limit` runs that match a query in Postgres' notation, newest first, after `before`.

    They are ranked for `rank_query`, in the same notation. `in_head` returns only runs whose head has all words.
    """
    at, run_id = before or (None, None)
    values = {
        "query": query,
        "rank_query": rank_query,
        "in_head": in_head,
        "at": at,
        "id": run_id,
        "limit": limit,
    }
    rows = await (await connection.execute(FIND_RUNS, values, prepare=False)).fetchall()
    return [FoundRun((created_at, id), is_in_head, rank) for id, created_at, is_in_head, rank in rows]


async def list_tenants_to_index(database: Database, limit: int) -> list[UUID]:
    return [tenant for (tenant,) in await database.call_function(LIST_TENANTS, (limit,))]


def _render_tsvector(words_by_weight: Mapping[str, Sequence[str]]) -> str:
    """Return words in Postgres' notation, with a position of its weight for each. They need no escapes."""
    weights: dict[str, list[str]] = {}
    for weight, words in words_by_weight.items():
        for word in words:
            weights.setdefault(word, []).append(weight)
    return " ".join(
        f"'{word}':{','.join(f'{position}{weight}' for position, weight in enumerate(of_word, 1))}"
        for word, of_word in weights.items()
    )


def _texts_from_row(row: Sequence[Any]) -> RunTexts:
    run_id, question, title, tags, body = row
    return RunTexts(run_id, question, title, tuple(tags), _list_report_texts(body), _list_headings(body))


def _list_headings(body: dict[str, Any] | None) -> tuple[str, ...]:
    return () if body is None else (body["title"], *(part["heading"] for part in body["sections"]))


def _list_report_texts(body: dict[str, Any] | None) -> tuple[str, ...]:
    if body is None:
        return ()
    answer = [body["answer"]["text"]] if body["answer"] else []
    sections = [(part["heading"], *(sentence["text"] for sentence in part["sentences"])) for part in body["sections"]]
    return tuple(text for text in (body["title"], *answer, *chain.from_iterable(sections)) if text)

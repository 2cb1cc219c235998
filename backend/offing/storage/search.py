"""Ranked passages for the terms of a query. The weights come from the document index.

The score of a passage is the sum, over the terms of the query with repetitions, of rarity times weight.
Rarity is BM25's inverse document frequency over the passages in scope. Postgres finds the packed postings by plain
equality, because row-level security does not let operators that it cannot trust, such as those of full text search,
use an index. They are added up here.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from psycopg.rows import class_row

from offing.storage.pool import Connection
from offing.storage.postings import MAX_WEIGHT, TermEntries, read_postings

MAX_POSTINGS = 5_000_000
"""Maximum number of passages that one search examines, summed over its terms. In a very large library the
commonest terms are left out first.
"""

IN_SCOPE = """
           s.tenant_id = %(tenant)s and s.removed_at is null
       and (%(collections)s::text[] = '{}' or s.collection = any(%(collections)s))
       and (%(sources)s::uuid[] = '{}' or s.id = any(%(sources)s))
"""

LIST_TEXTS_IN_SCOPE = f"""
    select string_agg(int8send((s.first_passage::bigint << 32) | s.passage_count), '')
      from source s where s.first_passage is not null and {IN_SCOPE}
"""

READ_HITS = f"""
    select a.id as text_id, s.id as source_id, s.title, s.name, p.heading, p.start_char as start,
           p.end_char as end, substring(a.body from p.start_char + 1 for p.end_char - p.start_char) as text, b.score,
           coalesce(a.published, '') as published
      from unnest(%(firsts)s::integer[], %(ordinals)s::integer[], %(scores)s::float8[])
           with ordinality as b(first_passage, ordinal, score, rank)
      join extracted_text a on a.tenant_id = %(tenant)s and a.first_passage = b.first_passage
      join passage p on p.text_id = a.id and p.ordinal = b.ordinal
      join lateral (select s.id, s.title, s.name from source s where s.text_id = a.id and {IN_SCOPE}
                     order by s.added_at desc, s.id limit 1) s on true
     order by b.rank
"""
"""If several sources in scope have the same text, the latest one is returned."""


@dataclass(frozen=True, slots=True)
class PassageHitRow:
    """A passage that matches a query. Scores can be compared within one query only."""

    text_id: UUID
    source_id: UUID
    title: str
    name: str
    heading: str
    start: int
    end: int
    text: str
    score: float
    published: str = ""
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means unknown."""


@dataclass(frozen=True, slots=True)
class BestPassages:
    """The best passages, best first."""

    firsts: list[int]
    """Number of the first passage of each one's text."""
    ordinals: list[int]
    scores: list[float]


async def search_passages(
    connection: Connection,
    tenant_id: UUID,
    terms: Sequence[str],
    limit: int,
    *,
    collections: Sequence[str] = (),
    source_ids: Sequence[UUID] = (),
) -> list[PassageHitRow]:
    """Return the best passages for these terms. A term that is repeated counts as often as it occurs.

    Empty `collections` or `sources` mean all of them.
    """
    scope = {"tenant": tenant_id, "collections": list(collections), "sources": list(source_ids)}
    texts = await list_texts_in_scope(connection, scope)
    best = await rank_terms(connection, tenant_id, terms, texts, limit)
    return await read_hits(connection, scope, best) if best.firsts else []


async def rank_terms(
    connection: Connection, tenant_id: UUID, terms: Sequence[str], texts: Any, limit: int
) -> BestPassages:
    """Return the best passages of these texts for the terms, as `search_passages` ranks them."""
    postings = select_terms(await read_postings(connection, tenant_id, terms)) if len(texts) else {}
    if not postings:
        return BestPassages([], [], [])
    repeats = Counter(terms)
    counted = [(entries, repeats[term]) for term, entries in postings.items()]
    return await asyncio.to_thread(rank_passages, texts, counted, limit)


async def read_hits(connection: Connection, scope: Mapping[str, Any], best: BestPassages) -> list[PassageHitRow]:
    """Return the passages with their texts, best first. Those that are no longer in scope are left out."""
    values = {**scope, "firsts": best.firsts, "ordinals": best.ordinals, "scores": best.scores}
    async with connection.cursor(row_factory=class_row(PassageHitRow)) as cursor:
        await cursor.execute(READ_HITS, values, prepare=False)
        return await cursor.fetchall()


def select_terms(postings: Mapping[str, list[TermEntries]]) -> dict[str, list[TermEntries]]:
    """Select the rarest terms as long as they have at most `MAX_POSTINGS` passages together, rarest first.

    The rarest term is always selected.
    """
    counts = {term: sum(len(part.entries) for part in parts) for term, parts in postings.items()}
    selected: dict[str, list[TermEntries]] = {}
    passages = 0
    for term in sorted(postings, key=lambda term: (counts[term], term)):
        passages += counts[term]
        if selected and passages > MAX_POSTINGS:
            break
        selected[term] = postings[term]
    return selected


async def list_texts_in_scope(connection: Connection, scope: Mapping[str, Any]) -> Any:
    """Return the passage numbers of the texts in scope, ascending: the first one times 2**32 plus their count."""
    async with connection.cursor(binary=True) as cursor:
        # A generic plan, for any scope, is twenty times slower than the plan for this one.
        row = await (await cursor.execute(LIST_TEXTS_IN_SCOPE, scope, prepare=False)).fetchone()
    texts = np.frombuffer(row[0] if row and row[0] else b"", ">i8")
    texts = np.sort(texts.astype(np.int64))
    return texts[np.flatnonzero(np.diff(texts, prepend=-1))]  # several sources can have the same text


def rank_passages(texts: Any, postings: Sequence[tuple[Sequence[TermEntries], int]], limit: int) -> BestPassages:
    """Add up rarity times weight for the passages of these texts, and return the best ones.

    `postings` are the entries of each term and how often the query contains it. Among equal scores, the passage with
    the smallest number is first.
    """
    firsts, counts = texts >> 32, texts & 0xFFFF_FFFF
    base, size = firsts[0], firsts[-1] + counts[-1] - firsts[0]
    bounds = np.zeros(size + 1, np.int8)
    bounds[firsts - base] += 1
    np.subtract.at(bounds, firsts - base + counts, 1)
    is_in_scope = np.cumsum(bounds[:-1], dtype=np.int8).view(np.bool_)
    scores = np.zeros(size)
    total = counts.sum()
    for parts, repeats in postings:
        entries = [_select_in_scope(part, base, is_in_scope) for part in parts]
        match_count = sum(len(numbers) for numbers, _ in entries)
        rarity = repeats * np.log(1 + (total - match_count + 0.5) / (match_count + 0.5)) / MAX_WEIGHT
        for numbers, weights in entries:
            scores[numbers] += rarity * weights
    best = _select_largest(scores, limit)
    at: Any = firsts.searchsorted(best + base, side="right") - 1
    return BestPassages(firsts[at].tolist(), (best + base - firsts[at]).tolist(), scores[best].tolist())


def _select_in_scope(part: TermEntries, base: int, is_in_scope: Any) -> tuple[Any, Any]:
    """Return the places of the entries in the array of scores, and their weights."""
    places, weights = part.entries["place"] + np.int64(part.first_passage - base), part.entries["weight"]
    if len(places) and (places[0] < 0 or places[-1] >= len(is_in_scope)):
        inside = (places >= 0) & (places < len(is_in_scope))
        places, weights = places[inside], weights[inside]
    visible = is_in_scope[places]
    return (places, weights) if visible.all() else (places[visible], weights[visible])


def _select_largest(scores: Any, limit: int) -> Any:
    """Return the places of the largest scores above 0, largest first."""
    sample = scores[::16]
    # The smallest of the largest scores of a sample is not above that of all scores.
    bound = np.partition(sample, -limit)[-limit] if len(sample) > limit else 0
    places = np.flatnonzero(scores >= bound) if bound else np.flatnonzero(scores)
    return places[np.argsort(-scores[places], kind="stable")][:limit]

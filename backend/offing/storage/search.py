"""Ranked passages for the terms of a query. The weights come from the document index.

The score of a passage is the sum, over the terms of the query with repetitions, of rarity times weight.
Rarity is BM25's inverse document frequency over the passages in scope. All conditions are equality on
btree indexes, because row-level security does not let operators that it cannot trust, such as
those of full text search, use an index.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

MAX_POSTINGS = 30_000
"""Maximum number of texts that one search examines, summed over its terms. In a large library the
commonest terms are left out first.
"""

COUNT_TEXTS_WITH_TERM = "select term, count(*) from posting where tenant_id = %s and term = any(%s) group by term"

SEARCH_PASSAGES = """
    with scope as materialized (
      select a.id, a.passage_count from extracted_text a
       where a.tenant_id = %(tenant)s
         and exists (select from source s
                      where s.text_id = a.id and s.tenant_id = %(tenant)s and s.removed_at is null
                        and (%(collections)s::text[] = '{}' or s.collection = any(%(collections)s))
                        and (%(sources)s::uuid[] = '{}' or s.id = any(%(sources)s)))),
    found as materialized (
      select p.term, p.text_id, p.passage_ordinals, p.weights
        from posting p join scope on scope.id = p.text_id
       where p.tenant_id = %(tenant)s and p.term = any(%(terms)s)),
    rarity as (
      select term, query.repeats * ln(1 + (total.n - count.n + 0.5) / (count.n + 0.5)) as idf
        from (select term, sum(cardinality(passage_ordinals))::float8 as n from found group by term) as count
             join unnest(%(terms)s::text[], %(repeats)s::int[]) as query(term, repeats) using (term),
             (select sum(passage_count)::float8 as n from scope) as total),
    best as materialized (
      select f.text_id, hit.ordinal, sum(r.idf * hit.weight) as score
        from found f join rarity r using (term), unnest(f.passage_ordinals, f.weights) as hit(ordinal, weight)
       group by f.text_id, hit.ordinal
       order by score desc, f.text_id, hit.ordinal limit %(limit)s)
    select b.text_id, s.id as source_id, s.title, s.name, p.heading, p.start_char as start,
           p.end_char as end, substring(a.body from p.start_char + 1 for p.end_char - p.start_char) as text, b.score
      from best b
      join passage p on p.text_id = b.text_id and p.ordinal = b.ordinal
      join extracted_text a on a.id = b.text_id
      join lateral (select s.id, s.title, s.name from source s
                     where s.text_id = b.text_id and s.tenant_id = %(tenant)s and s.removed_at is null
                       and (%(collections)s::text[] = '{}' or s.collection = any(%(collections)s))
                       and (%(sources)s::uuid[] = '{}' or s.id = any(%(sources)s))
                     order by s.added_at desc, s.id limit 1) s on true
     order by b.score desc, b.text_id, b.ordinal
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
    counts = Counter(terms)
    selected = await _select_terms(connection, tenant_id, list(counts))
    repeats = [counts[term] for term in selected]
    values = {"tenant": tenant_id, "terms": selected, "repeats": repeats, "limit": limit}
    async with connection.cursor(row_factory=class_row(PassageHitRow)) as cursor:
        await cursor.execute(
            SEARCH_PASSAGES,
            {**values, "collections": list(collections), "sources": list(source_ids)},
            prepare=False,  # a generic plan is twenty times slower than the plan for these values
        )
        return await cursor.fetchall()


async def _select_terms(connection: Connection, tenant_id: UUID, terms: list[str]) -> list[str]:
    """Select the rarest terms as long as they have at most `MAX_POSTINGS` texts together.

    The rarest term is always selected.
    """
    counted = await (await connection.execute(COUNT_TEXTS_WITH_TERM, (tenant_id, terms), prepare=False)).fetchall()
    chosen: list[str] = []
    texts = 0
    for term, count in sorted(counted, key=lambda row: (row[1], row[0])):
        texts += count
        if chosen and texts > MAX_POSTINGS:
            break
        chosen.append(term)
    return chosen

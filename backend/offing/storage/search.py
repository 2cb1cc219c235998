"""Ranked passages for a query's terms. The only home of scoring; weights come from the text's digest.

A passage's score is the sum, over the query's terms, of rarity times weight, with BM25's inverse document frequency
over the passages in scope. Everything is plain equality on btree indexes: row-level security lets no operator that
it cannot trust, such as text search's, near an index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

MOST_POSTINGS = 30_000
"""Texts of all terms together that one search looks into. In a large library the commonest terms fall to it first."""

TEXTS_WITH = "select term, count(*) from posting where tenant_id = %s and term = any(%s) group by term"

SEARCH = """
    with scope as materialized (
      select a.id, a.passages from artefact a
       where a.tenant_id = %(tenant)s
         and exists (select from source s
                      where s.artefact_id = a.id and s.tenant_id = %(tenant)s and s.gone_at is null
                        and (%(collections)s::text[] = '{}' or s.collection = any(%(collections)s))
                        and (%(sources)s::uuid[] = '{}' or s.id = any(%(sources)s)))),
    found as materialized (
      select p.term, p.artefact_id, p.passages, p.weights
        from posting p join scope on scope.id = p.artefact_id
       where p.tenant_id = %(tenant)s and p.term = any(%(terms)s)),
    rarity as (
      select term, ln(1 + (total.n - count.n + 0.5) / (count.n + 0.5)) as idf
        from (select term, sum(cardinality(passages))::float8 as n from found group by term) as count,
             (select sum(passages)::float8 as n from scope) as total),
    best as materialized (
      select f.artefact_id, hit.ordinal, sum(r.idf * hit.weight) as score
        from found f join rarity r using (term), unnest(f.passages, f.weights) as hit(ordinal, weight)
       group by f.artefact_id, hit.ordinal
       order by score desc, f.artefact_id, hit.ordinal limit %(limit)s)
    select b.artefact_id as artefact, s.id as source, s.title, s.name, p.heading, p.start_at as start,
           p.end_at as end, substring(a.body from p.start_at + 1 for p.end_at - p.start_at) as text, b.score
      from best b
      join passage p on p.artefact_id = b.artefact_id and p.ordinal = b.ordinal
      join artefact a on a.id = b.artefact_id
      join lateral (select s.id, s.title, s.name from source s
                     where s.artefact_id = b.artefact_id and s.tenant_id = %(tenant)s and s.gone_at is null
                       and (%(collections)s::text[] = '{}' or s.collection = any(%(collections)s))
                       and (%(sources)s::uuid[] = '{}' or s.id = any(%(sources)s))
                     order by s.added_at desc, s.id limit 1) s on true
     order by b.score desc, b.artefact_id, b.ordinal
"""
"""Where several sources in scope hold the same text, the latest stands for it."""


@dataclass(frozen=True, slots=True)
class HitRow:
    """A passage that answers a query, best first. `score` compares within one query only."""

    artefact: UUID
    source: UUID
    title: str
    name: str
    heading: str
    start: int
    end: int
    text: str
    score: float


async def search(
    connection: Connection,
    tenant: UUID,
    terms: Sequence[str],
    limit: int,
    *,
    collections: Sequence[str] = (),
    sources: Sequence[UUID] = (),
) -> list[HitRow]:
    """The best passages for these terms. No collections, or no sources, given: all of them."""
    telling = await _telling(connection, tenant, list(dict.fromkeys(terms)))
    values = {"tenant": tenant, "terms": telling, "limit": limit}
    async with connection.cursor(row_factory=class_row(HitRow)) as cursor:
        await cursor.execute(
            SEARCH,
            {**values, "collections": list(collections), "sources": list(sources)},
            prepare=False,  # the plan for any terms and any scope is twenty times slower than the one for these
        )
        return await cursor.fetchall()


async def _telling(connection: Connection, tenant: UUID, terms: list[str]) -> list[str]:
    """The terms rarest first, as far as their texts stay within `MOST_POSTINGS`; the rarest in any case."""
    counted = await (await connection.execute(TEXTS_WITH, (tenant, terms), prepare=False)).fetchall()
    chosen: list[str] = []
    texts = 0
    for term, count in sorted(counted, key=lambda row: (row[1], row[0])):
        texts += count
        if chosen and texts > MOST_POSTINGS:
            break
        chosen.append(term)
    return chosen

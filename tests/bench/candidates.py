"""The compared ways to rank. Each indexes the same passages in the same Postgres, under row-level security."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncConnection

from offing.core.tool import SourceSpan
from offing.library.terms import extract_terms
from offing.storage import search as ranking

Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to rank. `make` builds its index from the stored passages as the application's role."""

    name: str
    tables: LiteralString = ""
    """Executed once by the owner."""
    fill: LiteralString = ""
    """Executed once by the application, with the tenant as %(tenant)s."""
    query: LiteralString = ""
    """Returns text id, start and end of the best passages, for %(ask)s, %(tenant)s and %(limit)s."""


VECTORS = """
    create table app.try_vector (
      text_id uuid not null references app.extracted_text on delete cascade, ordinal integer not null,
      tenant_id uuid not null, words tsvector not null, length_chars integer not null,
      primary key (text_id, ordinal));
    create index try_vector_words on app.try_vector using gin (words);
    select app.protect_table('app.try_vector');
    grant select, insert on app.try_vector to offing_app;
    create table app.try_word (tenant_id uuid not null, word text not null, n float8 not null,
      primary key (tenant_id, word));
    select app.protect_table('app.try_word');
    grant select, insert on app.try_word to offing_app;
"""

FILL_VECTORS = """
    insert into try_vector (text_id, ordinal, tenant_id, words, length_chars)
    select p.text_id, p.ordinal, p.tenant_id, v.words,
           (select sum(cardinality(u.positions)) from unnest(v.words) u)
      from passage p join extracted_text a on a.id = p.text_id
      join lateral (select title, name from source where text_id = a.id limit 1) s on true
      cross join lateral (select
        setweight(to_tsvector('english', s.title || ' ' || s.name), 'A')
        || setweight(to_tsvector('english', p.heading), 'B')
        || to_tsvector('english', substring(a.body from p.start_char + 1 for p.end_char - p.start_char)) as words) v
     where p.tenant_id = %(tenant)s
"""

FILL_WORDS = """
    insert into try_word (tenant_id, word, n)
    select %(tenant)s, u.lexeme, count(*) from try_vector v, unnest(v.words) u where v.tenant_id = %(tenant)s group by 2
"""

RANKED = """
    with asked as (select replace(plainto_tsquery('english', %(ask)s)::text, '&', '|')::tsquery as q)
    select p.text_id, p.start_char, p.end_char
      from asked, try_vector v join passage p using (text_id, ordinal)
     where v.tenant_id = %(tenant)s and v.words @@ asked.q
     order by ts_rank_cd(v.words, asked.q, 4 | 1) desc, p.text_id, p.ordinal limit %(limit)s
"""

RANKED_PLAINLY = """
    with asked as (select replace(plainto_tsquery('english', %(ask)s)::text, '&', '|')::tsquery as q)
    select p.text_id, p.start_char, p.end_char
      from asked, try_vector v join passage p using (text_id, ordinal)
     where v.tenant_id = %(tenant)s and v.words @@ asked.q
     order by ts_rank(v.words, asked.q, 1) desc, p.text_id, p.ordinal limit %(limit)s
"""

BM25_IN_SQL = """
    with asked as (select plainto_tsquery('english', %(ask)s)::text as q),
    lexemes as (select distinct m[1] as word from asked, regexp_matches(asked.q, '''([^'']+)''', 'g') as m),
    total as (
      select count(*)::float8 as n, avg(length_chars)::float8 as usual from try_vector where tenant_id = %(tenant)s),
    scored as (
      select v.text_id, v.ordinal,
             sum(ln(1 + (t.n - w.n + 0.5) / (w.n + 0.5)) * f.tf * 2.2
                 / (f.tf + 1.2 * (0.25 + 0.75 * v.length_chars / t.usual))) as score
        from asked, total t, try_vector v
        cross join lateral (select u.lexeme, cardinality(u.positions)::float8 as tf from unnest(v.words) u) f
        join lexemes l on l.word = f.lexeme
        join try_word w on w.word = f.lexeme and w.tenant_id = %(tenant)s
       where v.tenant_id = %(tenant)s and v.words @@ replace(asked.q, '&', '|')::tsquery
       group by 1, 2)
    select p.text_id, p.start_char, p.end_char from scored join passage p using (text_id, ordinal)
     order by score desc, p.text_id, p.ordinal limit %(limit)s
"""

POSTINGS = Candidate("own posting rows, BM25 weights")

CANDIDATES = (
    Candidate("tsvector, ts_rank_cd", VECTORS, FILL_VECTORS, RANKED),
    Candidate("tsvector, ts_rank", query=RANKED_PLAINLY),
    Candidate("tsvector, BM25 in SQL", fill=FILL_WORDS, query=BM25_IN_SQL),
    POSTINGS,
)


async def rank_with(
    candidate: Candidate, connection: Connection, tenant_id: UUID, ask: str, limit: int = 10
) -> Sequence[SourceSpan]:
    """Return the candidate's passages for a question, best first."""
    if candidate is POSTINGS:
        hits = await ranking.search_passages(connection, tenant_id, list(extract_terms(ask)), limit)
        return [SourceSpan(hit.text_id, hit.start, hit.end) for hit in hits]
    cursor = await connection.execute(candidate.query, {"ask": ask, "tenant": tenant_id, "limit": limit})
    return [SourceSpan(text_id, start, end) for text_id, start, end in await cursor.fetchall()]

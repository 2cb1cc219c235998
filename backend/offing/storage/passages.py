"""Passages and postings of a text, and exact stretches of stored texts. Knows no ranking: weights come ready-made."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from offing.core.tool import Span
from offing.storage.pool import Connection

DROP = (
    "delete from passage where tenant_id = %s and artefact_id = %s",
    "delete from posting where tenant_id = %s and artefact_id = %s",
)

ADD_PASSAGES = """
    insert into passage (artefact_id, ordinal, tenant_id, start_at, end_at, heading)
    select %s, number - 1, %s, start_at, end_at, heading
      from unnest(%s::integer[], %s::integer[], %s::text[]) with ordinality as p(start_at, end_at, heading, number)
"""

ADD_POSTINGS = """
    insert into posting (tenant_id, term, artefact_id, passages, weights)
    select %s, term, %s, passages::integer[], weights::real[]
      from unnest(%s::text[], %s::text[], %s::text[]) as p(term, passages, weights)
"""
"""One statement for many rows, their arrays written as text: row-level security forbids `copy`."""

ROWS_A_STATEMENT = 10_000

NOTE_DIGEST = "update artefact set digest = %s, passages = %s where tenant_id = %s and id = %s"

TEXTS_OF = """
    select w.number, substring(a.body from w.start_at + 1 for w.end_at - w.start_at)
      from unnest(%s::uuid[], %s::integer[], %s::integer[]) with ordinality as w(id, start_at, end_at, number)
      join artefact a on a.id = w.id and a.tenant_id = %s
     where w.start_at >= 0 and w.end_at >= w.start_at and w.end_at <= a.length
"""

WINDOW = """
    select s.id as source, s.title, s.name, a.id as artefact, a.length, a.snapshot,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join artefact a on a.id = s.artefact_id
     where s.tenant_id = %(tenant)s and s.gone_at is null
       and (s.id::text = %(wanted)s or a.id::text = %(wanted)s or s.name = %(wanted)s or s.title = %(wanted)s)
       and (%(collections)s::text[] = '{}' or s.collection = any(%(collections)s))
       and (%(sources)s::uuid[] = '{}' or s.id = any(%(sources)s))
     order by s.id::text = %(wanted)s desc, a.id::text = %(wanted)s desc, s.name = %(wanted)s desc, s.added_at desc
     limit 1
"""
"""By id of a source or a text, else by name, else by title; the latest where several bear it."""

IN_CONTEXT = """
    select s.id as source, s.title, s.name, a.id as artefact, a.length, a.snapshot,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from artefact a
      join lateral (select id, title, name from source where artefact_id = a.id
                    union all
                    select o.id, o.title, o.name from source_past p join source o on o.id = p.source_id
                     where p.artefact_id = a.id limit 1) s on true
     where a.tenant_id = %(tenant)s and a.id = %(artefact)s
"""
"""A stretch of a text that some source holds, or held before it was replaced."""


@dataclass(frozen=True, slots=True)
class PassageRow:
    start: int
    end: int
    heading: str


@dataclass(frozen=True, slots=True)
class PostingRow:
    term: str
    passages: Sequence[int]
    weights: Sequence[float]


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A stretch of a source's text."""

    source: UUID
    title: str
    name: str
    artefact: UUID
    length: int
    """Code points of the whole text."""
    snapshot: bytes
    text: str


async def put_digest(
    connection: Connection,
    tenant: UUID,
    artefact: UUID,
    version: int,
    passages: Sequence[PassageRow],
    postings: Sequence[PostingRow],
) -> None:
    """Make a text searchable; what was there of an earlier version goes."""
    for statement in DROP:
        await connection.execute(statement, (tenant, artefact))
    starts, ends = [p.start for p in passages], [p.end for p in passages]
    await connection.execute(ADD_PASSAGES, (artefact, tenant, starts, ends, [p.heading for p in passages]))
    for first in range(0, len(postings), ROWS_A_STATEMENT):
        rows = postings[first : first + ROWS_A_STATEMENT]
        ordinals, weights = [_array(p.passages) for p in rows], [_array(p.weights) for p in rows]
        await connection.execute(ADD_POSTINGS, (tenant, artefact, [p.term for p in rows], ordinals, weights))
    await connection.execute(NOTE_DIGEST, (version, len(passages), tenant, artefact))


def _array(numbers: Sequence[float]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


async def texts_of(connection: Connection, tenant: UUID, spans: Sequence[Span]) -> tuple[str | None, ...]:
    """The exact text of each span, in the order asked for. None: no such text, or it does not reach that far."""
    ids, starts, ends = [s.artefact for s in spans], [s.start for s in spans], [s.end for s in spans]
    cursor = await connection.execute(TEXTS_OF, (ids, starts, ends, tenant))
    found: dict[int, str] = {number: text async for number, text in cursor}
    return tuple(found.get(number) for number in range(1, len(spans) + 1))


async def window(
    connection: Connection,
    tenant: UUID,
    wanted: str,
    start: int,
    length: int,
    *,
    collections: Sequence[str] = (),
    sources: Sequence[UUID] = (),
) -> WindowRow | None:
    """`length` code points from `start` on of the source with this id, name or title. None: no such source."""
    values = {"tenant": tenant, "wanted": wanted, "start": start, "length": length}
    async with connection.cursor(row_factory=class_row(WindowRow)) as cursor:
        await cursor.execute(WINDOW, {**values, "collections": list(collections), "sources": list(sources)})
        return await cursor.fetchone()


async def in_context(connection: Connection, tenant: UUID, artefact: UUID, start: int, length: int) -> WindowRow | None:
    """`length` code points from `start` on of a text. None: this tenant has no such text."""
    values = {"tenant": tenant, "artefact": artefact, "start": start, "length": length}
    async with connection.cursor(row_factory=class_row(WindowRow)) as cursor:
        await cursor.execute(IN_CONTEXT, values)
        return await cursor.fetchone()

"""Vectors of passages by embedding models: which are missing, how they are stored, and which process computes them.

The vectors of a text are one row, in the order of its passages. A passage takes two bytes per dimension, and its
signature one bit per dimension. A row is valid as long as the passages of its text have the same numbers, so a text
that is indexed anew needs new vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from psycopg.rows import class_row

from offing.storage.pool import Connection, Database
from offing.storage.search import IN_SCOPE

VECTOR_TYPE = np.dtype("<f2")
SIGNATURE_WORD_BYTES = 8
"""Signatures are filled up to a multiple of these bytes, so that they are compared as 64-bit numbers."""

CLAIM_FILLING = "select tenant_id, model_id, claim_number from app.claim_vector_filling(%s, %s::interval, %s::interval)"

READ_NEXT_PASSAGE = "select next_passage from index_counter where tenant_id = %s"

LACKS_VECTORS = """
           s.tenant_id = %(tenant)s and s.removed_at is null and s.passage_count > 0
       and not exists (select from text_vector v where v.tenant_id = s.tenant_id and v.model_id = %(model)s
                                                   and v.first_passage = s.first_passage)
"""

LIST_UNFILLED = f"""
    select s.text_id, s.first_passage, s.passage_count, (array_agg(s.title order by s.added_at desc, s.id))[1] as title
      from source s where {LACKS_VECTORS}
     group by 1, 2, 3 order by max(s.added_at) desc, s.first_passage desc limit %(limit)s
"""

READ_PASSAGES = """
    select n.number, p.heading, substring(a.body from p.start_char + 1 for p.end_char - p.start_char) as text
      from unnest(%s::uuid[], %s::integer[]) with ordinality as n(id, first_passage, number)
      join extracted_text a on a.tenant_id = %s and a.id = n.id and a.first_passage = n.first_passage
      join passage p on p.text_id = a.id
     order by n.number, p.ordinal
"""

INSERT_VECTORS = """
    insert into text_vector (tenant_id, model_id, text_id, first_passage, vectors, signatures, rejection)
    select %s, %s, n.id, n.first_passage, n.vectors, n.signatures, n.rejection
      from unnest(%b::uuid[], %b::integer[], %b::bytea[], %b::bytea[], %b::text[])
           as n(id, first_passage, vectors, signatures, rejection)
      join extracted_text a on a.tenant_id = %s and a.id = n.id and a.first_passage = n.first_passage
       for share of a
    on conflict (tenant_id, model_id, text_id) do update
       set first_passage = excluded.first_passage, vectors = excluded.vectors, signatures = excluded.signatures,
           rejection = excluded.rejection
"""
"""Leaves out texts that were indexed anew or erased in the meantime."""

RENEW_CLAIM = """
    update embedding_model
       set claimed_until = clock_timestamp() + %s::interval, dimensions = coalesce(dimensions, %s)
     where tenant_id = %s and id = %s and claim_number = %s and claimed_until > clock_timestamp()
    returning dimensions
"""

RELEASE_CLAIM = """
    update embedding_model set claimed_until = clock_timestamp() + %s::interval
     where tenant_id = %s and id = %s and claim_number = %s
"""

SET_FILLED = """
    update embedding_model set filled_passage = %s, checked_at = clock_timestamp()
     where tenant_id = %s and id = %s and claim_number = %s
"""

LIST_UNUSED_MODELS = """
    select id from embedding_model
     where tenant_id = %s and id <> %s and claimed_at < clock_timestamp() - %s::interval
"""

DELETE_VECTORS_OF_MODEL = """
    delete from text_vector where tenant_id = %(tenant)s and model_id = %(model)s and text_id in (
      select text_id from text_vector where tenant_id = %(tenant)s and model_id = %(model)s limit %(limit)s)
"""

DELETE_MODEL = "delete from embedding_model where tenant_id = %s and id = %s"

FIND_MODEL = """
    select m.id, m.dimensions, m.filled_passage >= c.next_passage as is_complete
      from embedding_model m join index_counter c using (tenant_id)
     where m.tenant_id = %s and m.key = %s and m.dimensions is not null
"""

GET_COVERAGE = f"""
    select m.key, m.dimensions, count(distinct s.first_passage) as text_count,
           count(distinct s.first_passage) filter (where octet_length(v.vectors) > 0) as filled_count,
           count(distinct s.first_passage) filter (where v.rejection <> '') as rejected_count
      from source s
      left join embedding_model m on m.tenant_id = s.tenant_id and m.key = %(key)s
      left join text_vector v on v.tenant_id = s.tenant_id and v.model_id = m.id and v.first_passage = s.first_passage
     where s.passage_count > 0 and {IN_SCOPE}
     group by 1, 2
"""


@dataclass(frozen=True, slots=True)
class FillingClaim:
    """The right of a process to compute the vectors of a tenant's texts for a while."""

    tenant_id: UUID
    model_id: int
    claim_number: int


@dataclass(frozen=True, slots=True)
class FilledModel:
    """An embedding model of which a tenant has vectors."""

    id: int
    dimensions: int
    is_complete: bool
    """Whether all texts have vectors, except those that the model rejects."""


@dataclass(frozen=True, slots=True)
class UnfilledText:
    """A text that a search can find and that has no vectors yet."""

    text_id: UUID
    first_passage: int
    passage_count: int
    title: str
    """Title of the latest source that has the text."""


@dataclass(frozen=True, slots=True)
class PassageText:
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class TextVectors:
    """The vectors of all passages of a text."""

    text_id: UUID
    first_passage: int
    vectors: Any
    """Array with one row per passage. A row of zeros is a passage that the model rejects."""
    rejection: str = ""
    """Why the model rejects passages of the text. Empty if it rejects none."""


@dataclass(frozen=True, slots=True)
class VectorCoverage:
    """How many of the texts that a search can find have vectors of a model."""

    text_count: int
    filled_count: int
    rejected_count: int
    """Number of texts with passages that the model rejects."""
    dimensions: int | None
    """`None` means that there are no vectors yet."""


async def claim_filling(
    database: Database, model_key: str, claim_seconds: float, check_seconds: float
) -> FillingClaim | None:
    """Claim a tenant that has texts without vectors. `None` means that there is none, or that others have claimed them.

    After `check_seconds`, a tenant is claimed even if it has no new texts.
    """
    values = (model_key, f"{claim_seconds} seconds", f"{check_seconds} seconds")
    rows = await database.call_function(CLAIM_FILLING, values)
    return FillingClaim(*rows[0]) if rows else None


async def renew_claim(
    connection: Connection, claim: FillingClaim, claim_seconds: float, dimensions: int | None
) -> int | None:
    """Renew a claim, and return the dimensions of the stored vectors. `None` means that the claim is lost.

    `dimensions` is the number of dimensions of the first vectors. `None` means that there are no new vectors.
    """
    values = (f"{claim_seconds} seconds", dimensions, claim.tenant_id, claim.model_id, claim.claim_number)
    row = await (await connection.execute(RENEW_CLAIM, values)).fetchone()
    return None if row is None else row[0] or 0


async def release_claim(connection: Connection, claim: FillingClaim, pause_seconds: float = 0) -> None:
    """End a claim. Nobody claims the tenant again for the duration of the pause."""
    values = (f"{pause_seconds} seconds", claim.tenant_id, claim.model_id, claim.claim_number)
    await connection.execute(RELEASE_CLAIM, values)


async def list_unfilled(connection: Connection, claim: FillingClaim, limit: int) -> tuple[list[UnfilledText], int]:
    """Return texts without vectors, those of the newest sources first, and the next passage number before the list.

    If the list is empty, all texts with smaller numbers have vectors.
    """
    row = await (await connection.execute(READ_NEXT_PASSAGE, (claim.tenant_id,))).fetchone()
    values = {"tenant": claim.tenant_id, "model": claim.model_id, "limit": limit}
    async with connection.cursor(row_factory=class_row(UnfilledText)) as cursor:
        await cursor.execute(LIST_UNFILLED, values, prepare=False)
        return await cursor.fetchall(), row[0] if row else 0


async def read_passages(
    connection: Connection, tenant_id: UUID, texts: Sequence[UnfilledText]
) -> list[list[PassageText]]:
    """Return the passages of each text. A text that was indexed anew or erased has none."""
    values = ([t.text_id for t in texts], [t.first_passage for t in texts], tenant_id)
    passages: dict[int, list[PassageText]] = {}
    async for number, heading, text in await connection.execute(READ_PASSAGES, values):
        passages.setdefault(number, []).append(PassageText(heading, text))
    return [passages.get(number, []) for number in range(1, len(texts) + 1)]


async def insert_vectors(connection: Connection, claim: FillingClaim, texts: Sequence[TextVectors]) -> int:
    """Store the vectors of texts, and return the number of stored texts.

    Those of texts that were indexed anew or erased in the meantime are dropped.
    """
    values = (
        [t.text_id for t in texts], [t.first_passage for t in texts], [pack_floats(t.vectors) for t in texts],
        [pack_signatures(t.vectors) for t in texts], [t.rejection for t in texts],
    )  # fmt: skip
    parameters = (claim.tenant_id, claim.model_id, *values, claim.tenant_id)
    return (await connection.execute(INSERT_VECTORS, parameters)).rowcount


def pack_floats(vectors: Any) -> bytes:
    """Return the vectors as they are stored. Empty if all are zeros."""
    return vectors.astype(VECTOR_TYPE).tobytes() if vectors.any() else b""


def pack_signatures(vectors: Any) -> bytes:
    """Return a bit per dimension, 1 for positive numbers. Empty if all vectors are zeros."""
    if not vectors.any():
        return b""
    bits = np.packbits(vectors > 0, axis=1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % SIGNATURE_WORD_BYTES))).tobytes()


async def set_filled(connection: Connection, claim: FillingClaim, next_passage: int) -> None:
    """Note that all texts with smaller passage numbers have vectors or need none."""
    await connection.execute(SET_FILLED, (next_passage, claim.tenant_id, claim.model_id, claim.claim_number))


async def list_unused_models(connection: Connection, claim: FillingClaim, unused_seconds: float) -> list[int]:
    """Return the other models of the tenant for which no process has computed vectors for this time."""
    values = (claim.tenant_id, claim.model_id, f"{unused_seconds} seconds")
    return [id async for (id,) in await connection.execute(LIST_UNUSED_MODELS, values)]


async def delete_vectors(connection: Connection, tenant_id: UUID, model_id: int, limit: int) -> bool:
    """Delete vectors of a model, and the model after its last vectors. Return whether some remain."""
    values = {"tenant": tenant_id, "model": model_id, "limit": limit}
    if (await connection.execute(DELETE_VECTORS_OF_MODEL, values)).rowcount:
        return True
    await connection.execute(DELETE_MODEL, (tenant_id, model_id))
    return False


async def find_model(connection: Connection, tenant_id: UUID, key: str) -> FilledModel | None:
    """Return a model of which texts of the tenant have vectors."""
    async with connection.cursor(row_factory=class_row(FilledModel)) as cursor:
        await cursor.execute(FIND_MODEL, (tenant_id, key))
        return await cursor.fetchone()


async def get_coverage(
    connection: Connection, tenant_id: UUID, key: str, collections: Sequence[str] = ()
) -> VectorCoverage:
    """Return how many texts of these collections have vectors of a model. Empty `collections` mean all of them."""
    values = {"tenant": tenant_id, "key": key, "collections": list(collections), "sources": list[UUID]()}
    row = await (await connection.execute(GET_COVERAGE, values, prepare=False)).fetchone()
    if row is None:
        return VectorCoverage(0, 0, 0, None)
    return VectorCoverage(text_count=row[2], filled_count=row[3], rejected_count=row[4], dimensions=row[1])

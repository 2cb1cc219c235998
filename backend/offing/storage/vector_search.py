"""Passages ranked by the similarity of their vectors to that of a query, and fused with the ranking by words.

A scope of up to `MAX_EXACT_PASSAGES` passages is compared completely. In a larger one, two steps select candidates:
the Hamming distance of the signatures to that of the query, then the sum of the query's numbers with the signs of the
signature, which is nearer to the similarity. Only the vectors of the candidates are read and compared.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.rank_fusion import fuse_rankings
from offing.storage.pool import Connection
from offing.storage.search import BestPassages, PassageHitRow, list_texts_in_scope, rank_terms, read_hits
from offing.storage.vectors import VECTOR_TYPE, pack_signatures

MAX_EXACT_PASSAGES = 20_000
"""Number of passages in scope up to which all vectors are compared."""

MAX_ESTIMATED = 20_000
"""Number of passages that the Hamming distance selects."""

MAX_CANDIDATES = 1_000
"""Number of passages that the estimated similarity selects, whose vectors are compared."""

RANKING_DEPTH = 100
"""Number of the best passages of each ranking that are fused."""

RANKING_WEIGHTS = (1.0, 1.0)
"""Factors of the ranking by words and of that by vectors."""

READ_VECTORS = """
    select v.first_passage, v.vectors
      from unnest(%(firsts)s::integer[]) as n(first_passage)
      join text_vector v on v.tenant_id = %(tenant)s and v.model_id = %(model)s and v.first_passage = n.first_passage
     where octet_length(v.vectors) > 0
"""

READ_SIGNATURES = """
    select string_agg(int4send(first_passage) || int4send(octet_length(signatures)), ''), string_agg(signatures, '')
      from text_vector where tenant_id = %(tenant)s and model_id = %(model)s
     group by first_passage / 8192
"""
"""Both aggregates have the same order, because one node reads the rows for both. Groups of some hundred kilobytes take
two thirds of the time of one value, which the server enlarges by copying.
"""

READ_CANDIDATES = """
    select n.number, substring(v.vectors from n.ordinal * %(size)s + 1 for %(size)s)
      from unnest(%(firsts)s::integer[], %(ordinals)s::integer[]) with ordinality as n(first_passage, ordinal, number)
      join text_vector v on v.tenant_id = %(tenant)s and v.model_id = %(model)s and v.first_passage = n.first_passage
"""


@dataclass(frozen=True, slots=True)
class QueryVector:
    model_id: int
    vector: Any
    """Array of float32 with length 1."""
    is_complete: bool = True
    """Whether all texts have vectors of the model."""


async def search_by_words_and_vector(
    connection: Connection,
    tenant_id: UUID,
    terms: Sequence[str],
    query: QueryVector,
    limit: int,
    *,
    collections: Sequence[str] = (),
    source_ids: Sequence[UUID] = (),
) -> list[PassageHitRow]:
    """Return the best passages by the fused rankings of their words and of their vectors.

    Empty `collections` or `source_ids` mean all of them.
    """
    scope = {"tenant": tenant_id, "collections": list(collections), "sources": list(source_ids)}
    texts = await list_texts_in_scope(connection, scope)
    if not len(texts):
        return []
    depth = max(RANKING_DEPTH, limit)
    by_words = await rank_terms(connection, tenant_id, terms, texts, depth)
    by_vector = await rank_vectors(connection, tenant_id, query, texts, depth)
    return await read_hits(connection, scope, fuse_best_passages((by_words, by_vector), limit))


def fuse_best_passages(
    rankings: Sequence[BestPassages], limit: int, weights: Sequence[float] = RANKING_WEIGHTS
) -> BestPassages:
    """Return the best passages of several rankings. Among equal scores, those of the first ranking come first."""
    keys = [list(zip(one.firsts, one.ordinals, strict=True)) for one in rankings]
    fused = fuse_rankings(keys, weights)[:limit]
    return BestPassages([key[0] for key, _ in fused], [key[1] for key, _ in fused], [score for _, score in fused])


async def rank_vectors(
    connection: Connection, tenant_id: UUID, query: QueryVector, texts: Any, limit: int
) -> BestPassages:
    """Return the passages of these texts that are most similar to the query.

    A passage whose similarity is 0 or less is left out. Among equal similarities, the smallest number is first.
    """
    if not query.vector.any():
        return BestPassages([], [], [])  # a text without a direction is similar to none
    values = {"tenant": tenant_id, "model": query.model_id}
    if (texts & 0xFFFF_FFFF).sum() <= MAX_EXACT_PASSAGES:
        return await _rank_all(connection, values, query.vector, texts, limit)
    return await _rank_candidates(connection, values, query.vector, texts, limit)


async def _rank_all(
    connection: Connection, values: Mapping[str, Any], vector: Any, texts: Any, limit: int
) -> BestPassages:
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(READ_VECTORS, {**values, "firsts": (texts >> 32).tolist()}, prepare=False)
        rows = await cursor.fetchall()
    return await asyncio.to_thread(_compare_all, rows, vector, limit)


def _compare_all(rows: Sequence[tuple[int, bytes]], vector: Any, limit: int) -> BestPassages:
    size = len(vector) * VECTOR_TYPE.itemsize
    firsts, ordinals = _number_passages(np.array([r[0] for r in rows], np.int64), [len(r[1]) // size for r in rows])
    return _select_most_similar(firsts, ordinals, b"".join(body for _, body in rows), vector, limit)


async def _rank_candidates(
    connection: Connection, values: Mapping[str, Any], vector: Any, texts: Any, limit: int
) -> BestPassages:
    async with connection.cursor(binary=True) as cursor:
        parts = await (await cursor.execute(READ_SIGNATURES, values, prepare=False)).fetchall()
        firsts, ordinals = await asyncio.to_thread(_select_candidates, parts, vector, texts, limit)
        size = len(vector) * VECTOR_TYPE.itemsize
        numbers = {"firsts": firsts.tolist(), "ordinals": ordinals.tolist(), "size": size}
        rows = await (await cursor.execute(READ_CANDIDATES, {**values, **numbers}, prepare=False)).fetchall()
    at = np.array([number for number, _ in rows], np.int64) - 1
    bodies = b"".join(body for _, body in rows)
    return await asyncio.to_thread(_select_most_similar, firsts[at], ordinals[at], bodies, vector, limit)


def _select_candidates(parts: Sequence[tuple[bytes, bytes]], vector: Any, texts: Any, limit: int) -> tuple[Any, Any]:
    """Return the passages of these texts whose signatures are most similar to the query.

    A part has the first passage number and the bytes of signatures of each text, and the signatures in the same order.
    """
    query = np.frombuffer(pack_signatures(vector[np.newaxis]), np.uint64)
    head = np.frombuffer(b"".join(heads for heads, _ in parts), ">i4").astype(np.int64).reshape(-1, 2)
    firsts, ordinals = _number_passages(head[:, 0], head[:, 1] // query.nbytes)
    rows = np.frombuffer(b"".join(signatures for _, signatures in parts), np.uint64).reshape(-1, len(query))
    in_scope = np.repeat(np.isin(head[:, 0], texts >> 32), head[:, 1] // query.nbytes)
    if not in_scope.all():
        firsts, ordinals, rows = firsts[in_scope], ordinals[in_scope], rows[in_scope]
    distances = _count_different_bits(rows, query)
    chosen = _select_smallest(distances, firsts + ordinals, max(MAX_ESTIMATED, limit))
    signs = np.unpackbits(rows[chosen].view(np.uint8), axis=1, count=len(vector))
    estimates = signs.astype(np.float32) @ vector.astype(np.float32)
    chosen = chosen[np.argsort(-estimates, kind="stable")[: max(MAX_CANDIDATES, 2 * limit)]]
    return firsts[chosen], ordinals[chosen]


def _count_different_bits(rows: Any, query: Any) -> Any:
    """Return the Hamming distance of each row to the query. Adding column by column is faster than row by row."""
    bits = np.bitwise_count(rows ^ query)
    distances = np.zeros(len(rows), np.uint16)
    for column in range(bits.shape[1]):
        distances += bits[:, column]
    return distances


def _select_smallest(distances: Any, numbers: Any, count: int) -> Any:
    """Return the places of the smallest distances, ordered by number. Among equal ones, the smallest are selected."""
    if len(distances) <= count:
        return np.argsort(numbers)
    bound = np.partition(distances, count - 1)[count - 1]
    below, equal = np.flatnonzero(distances < bound), np.flatnonzero(distances == bound)
    equal = equal[np.argsort(numbers[equal])][: count - len(below)]
    chosen = np.concatenate([below, equal])
    return chosen[np.argsort(numbers[chosen])]


def _number_passages(firsts: Any, counts: Any) -> tuple[Any, Any]:
    """Return, for each passage of the texts in order, the first passage number of its text and its ordinal."""
    counts = np.asarray(counts, np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(firsts, counts), np.arange(total) - np.repeat(ends - counts, counts)


def _select_most_similar(firsts: Any, ordinals: Any, body: bytes, vector: Any, limit: int) -> BestPassages:
    vectors = np.frombuffer(body, VECTOR_TYPE).reshape(-1, len(vector))
    scores = vectors.astype(np.float32) @ vector.astype(np.float32)
    order = np.lexsort((firsts + ordinals, -scores))[:limit]
    order = order[scores[order] > 0]
    return BestPassages(firsts[order].tolist(), ordinals[order].tolist(), scores[order].tolist())

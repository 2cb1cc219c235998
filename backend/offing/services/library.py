"""The document library: search passages and read stored text.

Ingestion is in `services.ingestion`, erasure in `services.erasure`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID

from offing.core.errors import InvalidInput, NotFound
from offing.core.tool import SourceSpan
from offing.library.neighbors import (
    MAX_TABLE_CHARS,
    MAX_WHOLE_CHARS,
    PassageWindow,
    complete_passage,
    find_header_row,
    merge_ranges,
)
from offing.library.passages import HEADING_SEPARATOR
from offing.library.terms import extract_terms
from offing.models.embedding import Embedder
from offing.services.library_models import (
    INCOMPLETE,
    MAX_RERANKED,
    NO_MODELS,
    LibraryModels,
    PassageSearch,
    embed_query,
    rerank_hits,
)
from offing.storage import library as rows
from offing.storage import passages as texts
from offing.storage import search as ranking
from offing.storage import vector_search, vectors
from offing.storage.library import SourceRow
from offing.storage.passages import SpanWindowRow
from offing.storage.pool import Connection, Database
from offing.storage.search import PassageHitRow
from offing.storage.vectors import VectorCoverage
from offing.tools.tool import FoundPassage, FoundPassages, LibraryAccess, TextWindow

MAX_QUERY_TERMS = 100
"""Maximum number of terms of a query that are searched, with repetitions. Later terms are left out."""


@dataclass(frozen=True, slots=True)
class LibraryScope:
    """The part of the library that may be seen. Empty fields mean all of it."""

    collections: tuple[str, ...] = ()
    sources: tuple[UUID, ...] = ()


UNLIMITED_SCOPE = LibraryScope()


@dataclass(frozen=True, slots=True)
class PassageInContext:
    """A span with the text around it."""

    text_id: UUID
    source_id: UUID
    title: str
    name: str
    start: int
    end: int
    before: str
    text: str
    after: str
    snapshot: bytes
    text_length: int
    """Code points of the whole text."""


async def search_passages(
    db: Database, tenant_id: UUID, query: str, limit: int, scope: LibraryScope = UNLIMITED_SCOPE
) -> list[PassageHitRow]:
    """Return the best passages for a query, best first. A word that the query repeats counts more.

    Empty if nothing matches or the query has no significant word.
    """
    terms = list(islice(extract_terms(query), MAX_QUERY_TERMS))
    if not terms:
        return []
    async with db.transaction(tenant_id) as connection:
        return await ranking.search_passages(
            connection, tenant_id, terms, limit, collections=scope.collections, source_ids=scope.sources
        )


async def search_library(
    db: Database,
    tenant_id: UUID,
    query: str,
    limit: int,
    scope: LibraryScope = UNLIMITED_SCOPE,
    models: LibraryModels = NO_MODELS,
) -> PassageSearch:
    """Return the best passages by their words and, with an embedding model, by their meaning, best first.

    If a model does not answer in time, the result is that without the model, and a notice says so.
    """
    depth = limit if models.reranker is None else max(limit, MAX_RERANKED)
    if models.embedder is None or not query.strip():
        result = PassageSearch(await search_passages(db, tenant_id, query, depth, scope))
    else:
        result = await _search_by_meaning(db, tenant_id, query, depth, scope, models.embedder)
    if models.reranker is not None:
        reranked = await rerank_hits(db, tenant_id, query, result.hits, models.reranker)
        result = PassageSearch(reranked.hits, (*result.notices, *reranked.notices))
    return PassageSearch(result.hits[:limit], result.notices)


async def _search_by_meaning(
    db: Database, tenant_id: UUID, query: str, limit: int, scope: LibraryScope, embedder: Embedder
) -> PassageSearch:
    vector = await embed_query(db, tenant_id, query, embedder)
    if isinstance(vector, str):
        return PassageSearch(await search_passages(db, tenant_id, query, limit, scope), (vector,))
    terms = list(islice(extract_terms(query), MAX_QUERY_TERMS))
    async with db.transaction(tenant_id) as connection:
        hits = await vector_search.search_by_words_and_vector(
            connection, tenant_id, terms, vector, limit, collections=scope.collections, source_ids=scope.sources
        )
    return PassageSearch(hits, () if vector.is_complete else (INCOMPLETE,))


async def complete_hits(db: Database, tenant_id: UUID, hits: Sequence[PassageHitRow]) -> tuple[FoundPassage, ...]:
    """Return the hits with the text around them that completes them, best first.

    Hits of one text that touch become one, so there may be fewer than before. A hit that continues a table has the
    header row of the table as its last heading.
    """
    if not hits:
        return ()
    async with db.transaction(tenant_id) as connection:
        around = [
            SourceSpan(hit.text_id, max(0, hit.start - MAX_WHOLE_CHARS), hit.end + MAX_WHOLE_CHARS) for hit in hits
        ]
        windows = await texts.read_text_windows(connection, tenant_id, around)
        ranges = [_complete_hit(hit, windows.get(rank)) for rank, hit in enumerate(hits)]
        merged = merge_ranges(ranges)
        spans = [SourceSpan(hits[part.rank].text_id, part.start, part.end) for part in merged]
        bodies = await texts.read_spans(connection, tenant_id, spans)
        headers = await _read_header_rows(connection, tenant_id, spans, bodies)
    return tuple(
        _build_passage(hits[part.rank], hits[part.first], span, body, header)
        for part, span, body, header in zip(merged, spans, bodies, headers, strict=True)
        if body
    )


def _complete_hit(hit: PassageHitRow, row: SpanWindowRow | None) -> tuple[UUID, int, int]:
    if row is None:
        return hit.text_id, hit.start, hit.end
    return hit.text_id, *complete_passage(PassageWindow(hit.start, hit.end, row.text, row.start, row.text_length))


async def _read_header_rows(
    connection: Connection, tenant_id: UUID, spans: Sequence[SourceSpan], bodies: Sequence[str | None]
) -> list[str]:
    """Return the header row of the table that each range continues. Empty for others."""
    ranks = [rank for rank, body in enumerate(bodies) if body and body.lstrip().startswith("|")]
    before = [
        SourceSpan(spans[rank].text_id, max(0, spans[rank].start - MAX_TABLE_CHARS), spans[rank].start)
        for rank in ranks
    ]
    windows = await texts.read_text_windows(connection, tenant_id, before) if before else {}
    rows = {ranks[number]: find_header_row(row.text, bodies[ranks[number]] or "") for number, row in windows.items()}
    return [rows.get(rank, "") for rank in range(len(spans))]


def _build_passage(best: PassageHitRow, first: PassageHitRow, span: SourceSpan, body: str, header: str) -> FoundPassage:
    is_before_heading = re.search(r"^#", body[: max(0, first.start - span.start)], re.MULTILINE) is not None
    path = first.heading.split(HEADING_SEPARATOR)[0] if is_before_heading else first.heading
    heading = HEADING_SEPARATOR.join(filter(None, (path, header)))
    return FoundPassage(
        span.text_id, best.source_id, best.title, best.name, heading, span.start, span.end, body, best.score,
        published=best.published,
    )  # fmt: skip


async def get_source(db: Database, tenant_id: UUID, source_id: UUID) -> SourceRow:
    async with db.transaction(tenant_id) as connection:
        source = await rows.find_source(connection, tenant_id, source_id)
    if source is None:
        raise NotFound("source", str(source_id))
    return source


async def list_sources(
    db: Database,
    tenant_id: UUID,
    *,
    collection: str | None = None,
    title_filter: str | None = None,
    page_key: tuple[datetime, UUID] | None = None,
    limit: int = 50,
) -> tuple[list[SourceRow], int]:
    """List sources, latest first, with the number of all that match.

    `page_key` is the time and id of the last source of the previous page.
    """
    async with db.transaction(tenant_id) as connection:
        return await rows.list_sources(
            connection, tenant_id, collection=collection, text=title_filter, before=page_key, limit=limit
        )


async def read_windows(db: Database, tenant_id: UUID, spans: Sequence[SourceSpan]) -> tuple[str | None, ...]:
    """Return the stored text of each span, which is shorter if its text ends before the span does.

    `None` for a text that was erased.
    """
    async with db.transaction(tenant_id) as connection:
        windows = await texts.read_text_windows(connection, tenant_id, spans)
    return tuple(windows[n].text if n in windows else None for n in range(len(spans)))


async def get_passage_in_context(
    db: Database, tenant_id: UUID, text_id: UUID, start: int, end: int, around: int = 600
) -> PassageInContext:
    """Return a span with `around` code points on either side.

    Raises NotFound, and InvalidInput for a span that is not in the text.
    """
    first = max(0, start - around)
    async with db.transaction(tenant_id) as connection:
        row = await texts.find_text_window(connection, tenant_id, text_id, first, end + around - first)
    if row is None:
        raise NotFound("text", str(text_id))
    if not 0 <= start < end <= row.text_length:
        raise InvalidInput(
            "end",
            f"must be after `start` and at most {row.text_length}, the length of the text",
            "Choose a range within the text.",
        )
    at, stop = start - first, end - first
    return PassageInContext(
        text_id, row.source_id, row.title, row.name, start, end,
        before=row.text[:at], text=row.text[at:stop], after=row.text[stop:], snapshot=row.snapshot_sha256,
        text_length=row.text_length,
    )  # fmt: skip


def build_library_access(
    db: Database, tenant_id: UUID, scope: LibraryScope = UNLIMITED_SCOPE, models: LibraryModels = NO_MODELS
) -> LibraryAccess:
    """Return the library as the tools of one run see it."""
    return _LibraryAdapter(db, tenant_id, scope, models)


@dataclass(frozen=True, slots=True)
class _LibraryAdapter:
    db: Database
    tenant_id: UUID
    scope: LibraryScope
    models: LibraryModels

    async def search(self, query: str, limit: int) -> FoundPassages:
        result = await search_library(self.db, self.tenant_id, query, limit, self.scope, self.models)
        return FoundPassages(await complete_hits(self.db, self.tenant_id, result.hits), result.notices)

    async def read(self, reference: str, start: int, length: int) -> TextWindow | None:
        async with self.db.transaction(self.tenant_id) as connection:
            row = await texts.find_window(
                connection, self.tenant_id, reference, start, length,
                collections=self.scope.collections, source_ids=self.scope.sources,
            )  # fmt: skip
        return row and TextWindow(
            row.source_id, row.text_id, row.title, row.name, start, row.text, row.text_length, row.published
        )

    async def suggest(self, reference: str, limit: int) -> tuple[str, ...]:
        hits = await search_passages(self.db, self.tenant_id, reference, limit * 3, self.scope)
        return tuple(dict.fromkeys(h.name for h in hits))[:limit]


async def get_vector_coverage(database: Database, tenant_id: UUID, models: LibraryModels) -> VectorCoverage:
    """Return how many texts have vectors of the embedding model. Without such a model, none has."""
    async with database.transaction(tenant_id) as connection:
        return await vectors.get_coverage(connection, tenant_id, models.embedder.key if models.embedder else "")

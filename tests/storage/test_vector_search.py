"""Passages are found by words and by vectors together, in the scope of the search and of the tenant."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from offing.core.model import FailureKind, Usage
from offing.library.readers import DocumentReaderPool
from offing.models.embedding import EmbeddingPurpose, Embeddings, RerankScores
from offing.models.role_call import AttemptFailure
from offing.services import erasure, ingestion, library
from offing.services.ingestion import Upload
from offing.services.library import LibraryScope
from offing.services.library_models import INCOMPLETE, LibraryModels
from offing.storage import search, vector_search, vectors
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.vector_search import QueryVector
from tests.model_provider.embeddings import WordEmbedder, shared_words
from tests.storage.library_vectors import store_vectors

SYNONYMS = {"automobile": "car", "repaired": "service", "mechanic": "service"}
"""Words that the embedding of these tests takes for others."""


@dataclass(slots=True)
class SynonymEmbedder:
    """An embedding model in which some words have the same meaning."""

    words: WordEmbedder = field(default_factory=WordEmbedder)

    @property
    def key(self) -> str:
        return self.words.key

    @property
    def batch_size(self) -> int:
        return self.words.batch_size

    async def embed(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        return await self.words.embed(
            [" ".join(SYNONYMS.get(w, w) for w in text.lower().replace(".", "").split()) for text in texts], purpose
        )


@dataclass(frozen=True, slots=True)
class WordReranker:
    """A reranker that counts shared words. Fails with `failure` if that is set."""

    failure: AttemptFailure | None = None

    async def rerank(self, query: str, texts: Sequence[str]) -> RerankScores | AttemptFailure:
        return self.failure or RerankScores(tuple(shared_words(query, text) for text in texts), Usage())


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(1) as result:
        yield result


async def upload(
    pool: Database,
    readers: DocumentReaderPool,
    texts: dict[str, str],
    tenant_id: UUID = LOCAL_TENANT,
    collection: str = "",
) -> list[UUID]:
    uploads = [Upload(name, text.encode()) for name, text in texts.items()]
    files = await ingestion.ingest_uploads(pool, tenant_id, uploads, collection=collection, readers=readers)
    return [file.source_id for file in files if file.source_id]


async def names(
    pool: Database,
    query: str,
    embedder: SynonymEmbedder,
    tenant_id: UUID = LOCAL_TENANT,
    scope: LibraryScope | None = None,
) -> list[str]:
    models = LibraryModels(embedder)
    result = await library.search_library(pool, tenant_id, query, 10, scope or library.UNLIMITED_SCOPE, models)
    return [hit.name for hit in result.hits]


GARAGE = {"garage.md": "The automobile was repaired.\n", "meadow.md": "A meadow in bloom.\n"}


async def test_a_passage_that_shares_no_word_with_the_query_is_found_by_its_vector(
    pool: Database, readers: DocumentReaderPool
) -> None:
    embedder = SynonymEmbedder()
    await upload(pool, readers, GARAGE)
    assert await store_vectors(pool, embedder) == 2
    assert await library.search_passages(pool, LOCAL_TENANT, "car mechanic", 10) == []
    result = await library.search_library(pool, LOCAL_TENANT, "car mechanic", 10, models=LibraryModels(embedder))
    assert (result.hits[0].name, result.notices) == ("garage.md", ())
    assert embedder.words.calls[-1] == ("query", ("car service",))


async def test_a_passage_with_the_identifier_of_the_query_is_first(pool: Database, readers: DocumentReaderPool) -> None:
    embedder = SynonymEmbedder()
    texts = {f"part{n}.md": f"The part with the number k{n}x of the pump.\n" for n in range(30)}
    await upload(pool, readers, texts)
    await store_vectors(pool, embedder)
    for number in (0, 17, 29):
        assert (await names(pool, f"k{number}x", embedder))[0] == f"part{number}.md"


async def test_vectors_of_sources_outside_of_the_scope_are_not_found(
    pool: Database, readers: DocumentReaderPool, other_tenant: UUID
) -> None:
    embedder = SynonymEmbedder()
    await upload(pool, readers, GARAGE)
    (paper,) = await upload(pool, readers, {"paper.md": "Automobile tires.\n"}, collection="papers")
    await upload(pool, readers, {"theirs.md": "Another automobile.\n"}, other_tenant)
    assert await store_vectors(pool, embedder) == 4
    assert set(await names(pool, "car", embedder)) == {"garage.md", "paper.md"}
    assert await names(pool, "car", embedder, scope=LibraryScope(collections=("papers",))) == ["paper.md"]
    assert await names(pool, "car", embedder, scope=LibraryScope(sources=(paper,))) == ["paper.md"]
    assert await names(pool, "car", embedder, other_tenant) == ["theirs.md"]


async def test_a_removed_source_is_not_found_by_its_vector(
    pool: Database, readers: DocumentReaderPool, tmp_path: Path
) -> None:
    embedder = SynonymEmbedder()
    for name, text in GARAGE.items():
        (tmp_path / name).write_text(text)
    await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    await store_vectors(pool, embedder)
    (tmp_path / "garage.md").unlink()
    await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    assert "garage.md" not in await names(pool, "car mechanic", embedder)


async def test_erasing_a_source_deletes_its_vectors(pool: Database, readers: DocumentReaderPool) -> None:
    embedder = SynonymEmbedder()
    (garage, _) = await upload(pool, readers, GARAGE)
    await store_vectors(pool, embedder)
    await erasure.erase_source(pool, LOCAL_TENANT, garage)
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await connection.execute("select from text_vector")).rowcount == 1
    assert "garage.md" not in await names(pool, "car", embedder)


async def test_vectors_of_passages_that_were_numbered_anew_are_not_used(
    pool: Database, readers: DocumentReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = SynonymEmbedder()
    await upload(pool, readers, GARAGE)
    await store_vectors(pool, embedder)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update extracted_text set index_version = 1")
    await upload(pool, readers, GARAGE)
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert (await connection.execute("select from text_vector")).rowcount == 0
    result = await library.search_library(pool, LOCAL_TENANT, "car mechanic", 10, models=LibraryModels(embedder))
    assert (result.hits, result.notices) == ([], (INCOMPLETE,))
    assert await store_vectors(pool, embedder) == 2
    assert (await names(pool, "car mechanic", embedder))[0] == "garage.md"


async def test_signatures_with_many_candidates_rank_as_all_vectors_do(
    pool: Database, readers: DocumentReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = WordEmbedder()
    texts = {f"{n}.md": f"# Page {n}\n\nThe w{n % 7}x and the w{n % 11}x and w{n}x.\n" for n in range(60)}
    await upload(pool, readers, texts)
    await upload(pool, readers, {"other.md": "The w3x of another collection.\n"}, collection="others")
    await store_vectors(pool, embedder)
    result = await embedder.embed(["the w3x with w5x"], "query")
    assert isinstance(result, Embeddings)
    rankings: list[search.BestPassages] = []
    async with pool.transaction(LOCAL_TENANT) as connection:
        model = await vectors.find_model(connection, LOCAL_TENANT, embedder.key)
        assert model is not None
        query = QueryVector(model.id, result.vectors[0])
        scope = {"tenant": LOCAL_TENANT, "collections": [""], "sources": []}
        in_scope = await search.list_texts_in_scope(connection, scope)
        for maximum in (vector_search.MAX_EXACT_PASSAGES, 0):
            monkeypatch.setattr(vector_search, "MAX_EXACT_PASSAGES", maximum)
            rankings.append(await vector_search.rank_vectors(connection, LOCAL_TENANT, query, in_scope, 20))
    assert len(rankings[0].firsts) == 20
    assert rankings[0] == rankings[1]


async def test_a_query_is_answered_by_words_if_the_model_fails_and_the_answer_says_so(
    pool: Database, readers: DocumentReaderPool
) -> None:
    embedder = WordEmbedder()
    models = LibraryModels(embedder)
    await upload(pool, readers, GARAGE)
    result = await library.search_library(pool, LOCAL_TENANT, "automobile", 10, models=models)
    assert [hit.name for hit in result.hits] == ["garage.md"]
    assert result.notices == ("The passages are ranked by their words alone, because no document has vectors yet.",)
    assert embedder.calls == []
    await store_vectors(pool, embedder)
    embedder.failure = AttemptFailure(FailureKind.OVERLOADED, "The server is away.")
    result = await library.search_library(pool, LOCAL_TENANT, "automobile", 10, models=models)
    assert [hit.name for hit in result.hits] == ["garage.md"]
    (notice,) = result.notices
    assert "by their words alone" in notice
    assert "The server is away." in notice


async def test_a_query_of_other_dimensions_or_without_a_direction_is_answered_by_words(
    pool: Database, readers: DocumentReaderPool
) -> None:
    await upload(pool, readers, GARAGE)
    await store_vectors(pool, WordEmbedder())
    models = LibraryModels(WordEmbedder(dimensions=32))
    result = await library.search_library(pool, LOCAL_TENANT, "automobile", 10, models=models)
    assert [hit.name for hit in result.hits] == ["garage.md"]
    assert ["32 dimensions" in notice for notice in result.notices] == [True]
    no_words = await library.search_library(pool, LOCAL_TENANT, "?!", 10, models=LibraryModels(WordEmbedder()))
    assert (no_words.hits, no_words.notices) == ([], ())


async def test_the_daily_spending_limit_holds_for_queries(pool: Database, readers: DocumentReaderPool) -> None:
    await upload(pool, readers, GARAGE)
    embedder = WordEmbedder()
    await store_vectors(pool, embedder)
    calls = len(embedder.calls)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update tenant set max_daily_spend_usd = 0.5")
        await connection.execute(
            "insert into daily_spend (tenant_id, day, used_usd) values (%s, current_date, 0.5)", (LOCAL_TENANT,)
        )
    result = await library.search_library(pool, LOCAL_TENANT, "automobile", 10, models=LibraryModels(embedder))
    assert [hit.name for hit in result.hits] == ["garage.md"]
    assert ["The daily spending limit is reached." in notice for notice in result.notices] == [True]
    assert len(embedder.calls) == calls


async def test_the_reranker_orders_the_best_hits(pool: Database, readers: DocumentReaderPool) -> None:
    texts = {"short.md": "Tide tide tide.\n", "long.md": "The tide and the moon and many more words about it.\n"}
    await upload(pool, readers, texts)
    by_words = await library.search_library(pool, LOCAL_TENANT, "tide tide tide moonlight", 10)
    assert [hit.name for hit in by_words.hits] == ["short.md", "long.md"]
    models = LibraryModels(None, WordReranker())
    result = await library.search_library(pool, LOCAL_TENANT, "tide and moon", 1, models=models)
    assert [hit.name for hit in result.hits] == ["long.md"]
    failing = LibraryModels(None, WordReranker(AttemptFailure(FailureKind.OVERLOADED, "The server is away.")))
    result = await library.search_library(pool, LOCAL_TENANT, "tide tide tide moonlight", 10, models=failing)
    assert [hit.name for hit in result.hits] == ["short.md", "long.md"]
    assert ["not reranked" in notice for notice in result.notices] == [True]


def test_a_signature_has_a_bit_per_dimension() -> None:
    packed = vectors.pack_signatures(np.array([[1.0, -1.0, 0.0, 0.5] + [0.0] * 6, [-1.0] * 10]))
    assert packed == bytes([0b1001_0000, *[0] * 15])

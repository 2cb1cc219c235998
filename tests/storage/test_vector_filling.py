"""Texts get vectors once, whatever fails: the model, a text, the daily spending limit, or another process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from offing.core.errors import LeaseLostError
from offing.core.model import FailureKind, Usage
from offing.library.readers import DocumentReaderPool
from offing.models.embedding import EmbeddingPurpose, Embeddings
from offing.models.role_call import AttemptFailure
from offing.services import ingestion
from offing.services.ingestion import Upload
from offing.services.vector_filling import MAX_UNCLEAR_FAILURES, FillingResult, fill_next_tenant, wait_until_filled
from offing.storage import vectors
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.model_provider.embeddings import WordEmbedder, word_vector

NOTES = {f"note{n}.md": f"# Note {n}\n\nThe w{n}x of the harbor.\n" for n in range(4)}


@dataclass(slots=True)
class PickyEmbedder:
    """An embedding model that fails for texts with a word, and has a price."""

    word: str = ""
    kind: FailureKind = FailureKind.BAD_REQUEST
    price_usd: Decimal = Decimal(0)
    key: str = "test/picky"
    batch_size: int = 32
    calls: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    gate: asyncio.Event | None = None
    """A call waits for it. `None` means that no call waits."""
    called: asyncio.Event = field(default_factory=asyncio.Event)

    async def embed(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Embeddings | AttemptFailure:
        self.calls.append(tuple(texts))
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.word and any(self.word in text for text in texts):
            return AttemptFailure(self.kind, f"I do not like {self.word}.")
        rows = np.array([word_vector(text) for text in texts], dtype=np.float32)
        return Embeddings(rows, Usage(cost_usd=self.price_usd))


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(1) as result:
        yield result


async def upload(
    pool: Database, readers: DocumentReaderPool, texts: dict[str, str], tenant_id: UUID = LOCAL_TENANT
) -> None:
    await ingestion.ingest_uploads(pool, tenant_id, [Upload(n, t.encode()) for n, t in texts.items()], readers=readers)


async def rejections(pool: Database) -> dict[str, str]:
    """Name of each source whose text has a row of vectors, with the reason of a rejection."""
    query = "select name, rejection from text_vector v join source s using (text_id)"
    async with pool.transaction(LOCAL_TENANT) as connection:
        return {name: rejection async for name, rejection in await connection.execute(query)}


async def execute(pool: Database, statement: str) -> int:
    async with pool.transaction(LOCAL_TENANT) as connection:
        return (await connection.execute(statement.encode())).rowcount


async def test_texts_are_embedded_once_with_title_and_heading_and_those_of_the_newest_source_first(
    pool: Database, readers: DocumentReaderPool
) -> None:
    embedder = WordEmbedder()
    assert await fill_next_tenant(pool, embedder) is None
    for name, text in NOTES.items():
        await upload(pool, readers, {name: text})
    assert await fill_next_tenant(pool, embedder) == FillingResult(4)
    assert await fill_next_tenant(pool, embedder) is None
    ((purpose, texts),) = embedder.calls
    assert purpose == "passage"
    assert texts[0] == "Note 3\nNote 3\n# Note 3\n\nThe w3x of the harbor."
    assert ["Note 2" in texts[1], "Note 0" in texts[3]] == [True, True]
    await upload(pool, readers, {"late.md": "A late one.\n"})
    assert await fill_next_tenant(pool, embedder) == FillingResult(1)
    assert len(embedder.calls) == 2


async def test_a_command_waits_for_vectors_as_long_as_their_number_grows(
    pool: Database, readers: DocumentReaderPool
) -> None:
    embedder, counts = WordEmbedder(batch_size=1), list[int]()

    def count(coverage: vectors.VectorCoverage) -> None:
        counts.append(coverage.filled_count)

    async def wait(max_idle_seconds: float) -> vectors.VectorCoverage:
        return await wait_until_filled(pool, LOCAL_TENANT, embedder, [""], count, max_idle_seconds=max_idle_seconds)

    assert (await wait(9)).text_count == 0
    await upload(pool, readers, NOTES)
    assert (await wait(0.5)).filled_count == 0
    assert len(counts) > 2
    waiting = asyncio.create_task(wait(9))
    assert await fill_next_tenant(pool, embedder) == FillingResult(4)
    assert (await waiting).filled_count == 4
    other = Upload("late.md", b"A late one.")
    await ingestion.ingest_uploads(pool, LOCAL_TENANT, [other], collection="papers", readers=readers)
    assert (await wait(9)).text_count == 4


async def test_each_tenant_gets_vectors_of_its_own_texts(
    pool: Database, readers: DocumentReaderPool, other_tenant: UUID
) -> None:
    await upload(pool, readers, NOTES)
    await upload(pool, readers, {"theirs.md": "Theirs.\n"}, other_tenant)
    results = [await fill_next_tenant(pool, WordEmbedder()) for _ in range(3)]
    assert {r.text_count for r in results if r} == {4, 1}
    assert results[2] is None
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert await vectors.get_coverage(connection, LOCAL_TENANT, WordEmbedder().key) == vectors.VectorCoverage(
            4, 4, 0, 64
        )


async def test_a_text_of_many_passages_is_embedded_in_several_calls(
    pool: Database, readers: DocumentReaderPool
) -> None:
    await upload(pool, readers, {"long.md": "".join(f"# Part {n}\n\n{'word ' * 150}\n\n" for n in range(5))})
    embedder = WordEmbedder(batch_size=2)
    assert await fill_next_tenant(pool, embedder) == FillingResult(1)
    assert [len(texts) for _, texts in embedder.calls] == [2, 2, 1]
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute("select octet_length(vectors) from text_vector")).fetchone()
    assert row == (5 * 64 * 2,)


async def test_a_text_whose_sources_are_all_removed_is_skipped_until_one_is_back(
    pool: Database, readers: DocumentReaderPool, tmp_path: Path
) -> None:
    embedder = WordEmbedder()
    (tmp_path / "kept.md").write_text("Kept.\n")
    (tmp_path / "gone.md").write_text("Gone.\n")
    await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    (tmp_path / "gone.md").rename(tmp_path.parent / "gone.md")
    await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    assert await fill_next_tenant(pool, embedder) == FillingResult(1)
    (tmp_path.parent / "gone.md").rename(tmp_path / "gone.md")
    await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    assert await fill_next_tenant(pool, embedder) is None
    await execute(pool, "update embedding_model set checked_at = checked_at - interval '11 minutes'")
    assert await fill_next_tenant(pool, embedder) == FillingResult(1)


async def test_two_processes_do_not_embed_the_same_text(pool: Database, readers: DocumentReaderPool) -> None:
    await upload(pool, readers, NOTES)
    embedder = PickyEmbedder(gate=asyncio.Event())
    assert embedder.gate is not None
    first = asyncio.create_task(fill_next_tenant(pool, embedder))
    await embedder.called.wait()
    assert await fill_next_tenant(pool, embedder) is None
    embedder.gate.set()
    assert await first == FillingResult(4)
    assert len(embedder.calls) == 1


async def test_a_process_whose_claim_was_taken_over_stores_nothing(pool: Database, readers: DocumentReaderPool) -> None:
    await upload(pool, readers, NOTES)
    slow, embedder = PickyEmbedder(gate=asyncio.Event()), PickyEmbedder()
    assert slow.gate is not None
    first = asyncio.create_task(fill_next_tenant(pool, slow))
    await slow.called.wait()
    await execute(pool, "update embedding_model set claimed_until = claimed_until - interval '1 hour'")
    assert await fill_next_tenant(pool, embedder) == FillingResult(4)
    slow.gate.set()
    with pytest.raises(LeaseLostError):
        await first


async def test_a_model_that_fails_loses_no_text(pool: Database, readers: DocumentReaderPool) -> None:
    embedder = WordEmbedder(failure=AttemptFailure(FailureKind.OVERLOADED, "The server is away."))
    await upload(pool, readers, NOTES)
    for _ in range(2):
        assert await fill_next_tenant(pool, embedder) == FillingResult(0, embedder.failure)
    assert await fill_next_tenant(pool, embedder, failure_count=9) == FillingResult(0, embedder.failure)
    embedder.failure = AttemptFailure(FailureKind.BAD_REQUEST, "There is no such model.")
    assert await fill_next_tenant(pool, embedder) == FillingResult(0, embedder.failure)
    embedder.failure = None
    assert await fill_next_tenant(pool, embedder) == FillingResult(4)
    assert set((await rejections(pool)).values()) == {""}


async def test_a_text_that_the_model_rejects_does_not_block_others_and_is_not_tried_again(
    pool: Database, readers: DocumentReaderPool
) -> None:
    embedder = PickyEmbedder("w2x")
    await upload(pool, readers, NOTES)
    assert await fill_next_tenant(pool, embedder) == FillingResult(4)
    assert await rejections(pool) == {**dict.fromkeys(NOTES, ""), "note2.md": "I do not like w2x."}
    await execute(pool, "update embedding_model set checked_at = '-infinity'")
    calls = len(embedder.calls)
    assert await fill_next_tenant(pool, embedder) == FillingResult(0)
    assert len(embedder.calls) == calls
    async with pool.transaction(LOCAL_TENANT) as connection:
        coverage = await vectors.get_coverage(connection, LOCAL_TENANT, embedder.key)
    assert coverage == vectors.VectorCoverage(4, 3, 1, 64)


async def test_a_text_at_which_the_model_crashes_again_and_again_is_given_up(
    pool: Database, readers: DocumentReaderPool
) -> None:
    embedder = PickyEmbedder("w2x", FailureKind.OVERLOADED)
    await upload(pool, readers, NOTES)
    result = await fill_next_tenant(pool, embedder, failure_count=MAX_UNCLEAR_FAILURES - 1)
    assert result is not None
    assert result.failure is not None
    assert await fill_next_tenant(pool, embedder, failure_count=MAX_UNCLEAR_FAILURES) == FillingResult(4)
    assert (await rejections(pool))["note2.md"] == "I do not like w2x."


async def test_the_daily_spending_limit_holds_and_pauses_the_tenant(
    pool: Database, readers: DocumentReaderPool
) -> None:
    embedder = PickyEmbedder(price_usd=Decimal("0.40"), batch_size=1)
    await upload(pool, readers, NOTES)
    await execute(pool, "update tenant set max_daily_spend_usd = 1")
    result = await fill_next_tenant(pool, embedder)
    assert result is not None
    assert result.failure is not None
    assert (result.text_count, result.failure.kind) == (2, FailureKind.BUDGET_EXHAUSTED)
    assert await execute(pool, "select from daily_spend where used_usd = 0.8") == 1
    assert await fill_next_tenant(pool, embedder) is None
    await execute(pool, "update tenant set max_daily_spend_usd = 5")
    await execute(pool, "update embedding_model set claimed_until = '-infinity'")
    assert await fill_next_tenant(pool, embedder) == FillingResult(2)


async def test_vectors_of_another_model_are_deleted_once_all_texts_have_those_of_the_current_one(
    pool: Database, readers: DocumentReaderPool
) -> None:
    before, after = WordEmbedder("before"), WordEmbedder("after", 128)
    await upload(pool, readers, NOTES)
    await fill_next_tenant(pool, before)
    await execute(pool, "update embedding_model set claimed_at = claimed_at - interval '1 hour'")
    after.failure = AttemptFailure(FailureKind.OVERLOADED, "The server is away.")
    await fill_next_tenant(pool, after)
    assert await execute(pool, "select from text_vector") == 4
    after.failure = None
    assert await fill_next_tenant(pool, after) == FillingResult(4)
    assert await execute(pool, "select from text_vector where octet_length(vectors) = 128 * 2") == 4
    assert await execute(pool, "select from embedding_model") == 1
    assert await execute(pool, "select from text_vector") == 4


async def test_the_vectors_of_a_model_that_another_process_still_uses_are_not_deleted(
    pool: Database, readers: DocumentReaderPool
) -> None:
    await upload(pool, readers, NOTES)
    await fill_next_tenant(pool, WordEmbedder("before"))
    await fill_next_tenant(pool, WordEmbedder("after"))
    assert await execute(pool, "select from text_vector") == 8


async def test_a_model_with_other_dimensions_than_the_stored_vectors_is_a_failure(
    pool: Database, readers: DocumentReaderPool
) -> None:
    await upload(pool, readers, NOTES)
    await fill_next_tenant(pool, WordEmbedder())
    await upload(pool, readers, {"late.md": "A late one.\n"})
    result = await fill_next_tenant(pool, WordEmbedder(dimensions=32))
    assert result is not None
    assert result.failure is not None
    assert "32 dimensions instead of 64" in result.failure.message

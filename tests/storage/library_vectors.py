"""Vectors of the test library, as a worker process stores them."""

from offing.models.embedding import Embedder, Embeddings
from offing.storage import vectors
from offing.storage.pool import Database
from offing.storage.vectors import TextVectors


async def store_vectors(pool: Database, embedder: Embedder, limit: int = 1000) -> int:
    """Store the vectors of the unfilled texts of every tenant, and return their number."""
    count = 0
    while claim := await vectors.claim_filling(pool, embedder.key, 30, 3600):
        async with pool.transaction(claim.tenant_id) as connection:
            texts, next_passage = await vectors.list_unfilled(connection, claim, limit)
            passages = await vectors.read_passages(connection, claim.tenant_id, texts)
            for text, own in zip(texts, passages, strict=True):
                embedded = await embedder.embed([p.text for p in own], "passage")
                assert isinstance(embedded, Embeddings)
                await vectors.renew_claim(connection, claim, 30, embedded.vectors.shape[1])
                await vectors.insert_vectors(
                    connection, claim, [TextVectors(text.text_id, text.first_passage, embedded.vectors)]
                )
            await vectors.set_filled(connection, claim, next_passage)
            await vectors.release_claim(connection, claim)
        count += len(texts)
    return count

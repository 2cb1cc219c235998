"""Store documents that were read: their bytes, texts and document indexes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from offing.clock import new_id
from offing.library.document_index import NO_POSTINGS, NOT_INDEXED
from offing.library.readers import ParsedDocument
from offing.storage import library as rows
from offing.storage import passages as texts
from offing.storage import postings
from offing.storage.library import StoredText, TextPublication
from offing.storage.passages import PassageRow, TextIndex
from offing.storage.pool import Connection
from offing.storage.postings import NumberRange, TextPostings


async def store_unindexed(connection: Connection, tenant_id: UUID, data: bytes, document: ParsedDocument) -> UUID:
    """Store the bytes and the text of a document that no search has to find. Returns the id of the text.

    Bytes that are already stored keep their text and its index.
    """
    unindexed = replace(document, digest=NOT_INDEXED, passages=(), postings=NO_POSTINGS)
    return (await store_documents(connection, tenant_id, [(data, unindexed)]))[0]


async def store_documents(
    connection: Connection, tenant_id: UUID, documents: Sequence[tuple[bytes, ParsedDocument]]
) -> list[UUID]:
    """Store the bytes and the extracted texts of documents. Returns the ids of the texts in the same order.

    Bytes that are already stored keep their text, unless its index is of another version. Passages get their numbers
    first, because that locks the index: writers of the same text then wait for each other there and nowhere else.
    """
    count = sum(len(document.passages) for _, document in documents)
    numbers = await postings.allocate_numbers(connection, tenant_id, count) if count else NumberRange(0, 0)
    new = _number_texts(documents, numbers.first_passage)
    inserted = await rows.insert_texts(connection, tenant_id, new)
    known = await _list_known_texts(connection, tenant_id, [n for n in new if n.id not in inserted])
    stored: list[tuple[UUID, rows.NewExtractedText, ParsedDocument]] = []
    for one, (_, document) in zip(new, documents, strict=True):
        same = known.get(one.snapshot_sha256) if one.id not in inserted else None
        if same is None or one.index_version not in (same.index_version, NOT_INDEXED):
            stored.append((same.id if same else one.id, one, document))
    indexes = [
        TextIndex(
            text_id, one.index_version, one.first_passage,
            [PassageRow(*p) for p in document.passages], TextPostings(*document.postings),
        )
        for text_id, one, document in stored
    ]  # fmt: skip
    await _store_indexes(connection, tenant_id, numbers, count, indexes, inserted)
    await _add_publications(connection, tenant_id, [n for n in new if n.id not in inserted], known, indexes)
    return [one.id if one.id in inserted else known[one.snapshot_sha256].id for one in new]


async def _list_known_texts(
    connection: Connection, tenant_id: UUID, new: Sequence[rows.NewExtractedText]
) -> dict[bytes, StoredText]:
    return await rows.list_stored_texts(connection, tenant_id, [n.snapshot_sha256 for n in new]) if new else {}


def _number_texts(documents: Sequence[tuple[bytes, ParsedDocument]], first_passage: int) -> list[rows.NewExtractedText]:
    new: list[rows.NewExtractedText] = []
    for data, document in documents:
        new.append(
            rows.NewExtractedText(
                id=new_id(),
                snapshot_sha256=hashlib.sha256(data).digest(),
                media_type=document.media_type,
                content=data,
                extractor=document.extractor,
                text_sha256=hashlib.sha256(document.text.encode()).digest(),
                text=document.text,
                title=document.title,
                index_version=document.digest,
                passage_count=len(document.passages),
                first_passage=first_passage,
                publication=TextPublication(
                    document.publication.author, document.publication.published, document.page_starts
                ),
            )
        )
        first_passage += len(document.passages)
    return new


async def _add_publications(
    connection: Connection,
    tenant_id: UUID,
    new: Sequence[rows.NewExtractedText],
    known: Mapping[bytes, StoredText],
    indexes: Sequence[TextIndex],
) -> None:
    """Store author, date and pages of stored texts that have none or whose index was replaced."""
    replaced = {index.text_id for index in indexes}
    pairs = [(known[one.snapshot_sha256], one.publication) for one in new]
    added = [(text.id, publication) for text, publication in pairs if not text.has_publication or text.id in replaced]
    if added:
        await rows.set_publications(connection, tenant_id, added)


async def _store_indexes(
    connection: Connection,
    tenant_id: UUID,
    numbers: NumberRange,
    passage_count: int,
    indexes: Sequence[TextIndex],
    inserted: set[UUID],
) -> None:
    """Store the document indexes of texts that were just inserted, and replace those of other texts."""
    replaced = [index for index in indexes if index.text_id not in inserted]
    if replaced:
        await texts.delete_indexes(connection, tenant_id, [index.text_id for index in replaced])
        await texts.set_index_versions(connection, tenant_id, replaced)
    if any(index.passages for index in indexes):
        await texts.insert_passages(connection, tenant_id, indexes)
        rows_by_text = [(index.first_passage, index.postings) for index in indexes]
        await postings.insert_segment(connection, tenant_id, numbers, passage_count, rows_by_text)

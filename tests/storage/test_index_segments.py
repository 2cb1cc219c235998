"""The packed search index on a real database: it is converted, merged, replaced and erased without losing a passage."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.library.document_index import INDEX_VERSION, build_index
from offing.library.readers import DocumentReaderPool
from offing.library.terms import extract_terms
from offing.local import ServerUrls
from offing.packaged_files import get_migrations_dir
from offing.services import document_storage, ingestion, library
from offing.services.erasure import erase_source
from offing.services.ingestion import Upload
from offing.storage import erasure, search
from offing.storage.migrate import LOCAL_TENANT, migrate
from offing.storage.pool import Connection, Database
from offing.storage.postings import SEGMENTS_PER_MERGE, SegmentRow, unpack_bucket
from tests.conftest import at_database

OLD_TEXT = """
    insert into app.extracted_text (id, tenant_id, snapshot_sha256, extractor, sha256, body, length_chars,
                                    index_version, passage_count)
    values (%(id)s, %(tenant)s, %(sha)s, 'text/1+utf-8', %(sha)s, %(body)s, %(length)s, %(version)s, %(count)s)
"""

BUCKETS = """
    select s.segment, s.first_passage, s.end_passage, b.body from app.index_segment s
      join app.posting_bucket b on b.tenant_id = s.tenant_id and b.segment = s.segment
"""


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(1) as result:
        yield result


@pytest.fixture
def database_before(servers: ServerUrls, tmp_path: Path) -> Iterator[ServerUrls]:
    """A database with the migrations of the version before the packed index."""
    for path in get_migrations_dir().glob("00[01][0-9]*.sql"):
        if path.name < "0016":
            shutil.copy(path, tmp_path)
    with psycopg.connect(servers.owner_url, autocommit=True) as owner:
        owner.execute(b"create database before_segments")
        owner_url, app_url = (
            at_database(servers.owner_url, "before_segments"),
            at_database(servers.app_url, "before_segments"),
        )
        migrate(owner_url, folder=tmp_path)
        yield ServerUrls(owner_url, app_url, servers.redis_url)
        owner.execute(b"drop database before_segments with (force)")


def write_as_before(owner: psycopg.Connection, name: str, body: str) -> UUID:
    """Store a text with one row per term, as the version before did."""
    text_id, sha, index = new_id(), name.encode(), build_index(body)
    owner.execute(
        "insert into app.snapshot (tenant_id, sha256, media_type, body) values (%s, %s, 'text/plain', %s)",
        (LOCAL_TENANT, sha, body.encode()),
    )
    values = {"id": text_id, "tenant": LOCAL_TENANT, "sha": sha, "body": body, "length": len(body), "version": 102}
    owner.execute(OLD_TEXT, {**values, "count": len(index.passages)})
    owner.execute(
        "insert into app.source (id, tenant_id, name, title, text_id) values (%s, %s, %s, %s, %s)",
        (new_id(), LOCAL_TENANT, name, name, text_id),
    )
    for ordinal, passage in enumerate(index.passages):
        owner.execute(
            "insert into app.passage (text_id, ordinal, tenant_id, start_char, end_char, heading)"
            " values (%s, %s, %s, %s, %s, '')",
            (text_id, ordinal, LOCAL_TENANT, passage.start, passage.end),
        )
    for posting in index.postings:
        owner.execute(
            "insert into app.posting (tenant_id, term, text_id, passage_ordinals, weights) values (%s, %s, %s, %s, %s)",
            (LOCAL_TENANT, posting.term, text_id, list(posting.passages), list(posting.weights)),
        )
    return text_id


async def test_texts_of_the_version_before_are_found_after_its_migration(
    database_before: ServerUrls, readers: DocumentReaderPool
) -> None:
    sections = "\n\n".join(f"# Part {n}\n\n" + f"The tide of harbor{n}x is high. " * 60 for n in range(30))
    with psycopg.connect(database_before.owner_url, autocommit=True) as owner:
        texts = [write_as_before(owner, f"{n}.txt", f"{sections}\n\nOnly lighthouse{n}x is here.") for n in range(5)]
    migrate(database_before.owner_url, folder=get_migrations_dir())
    async with Database(database_before.app_url) as db:
        for number, text_id in enumerate(texts):
            (hit, *_) = await library.search_passages(db, LOCAL_TENANT, f"lighthouse{number}x", 5)
            assert (hit.text_id, f"lighthouse{number}x" in hit.text) == (text_id, True)
        assert {"harbor29x" in hit.text for hit in await library.search_passages(db, LOCAL_TENANT, "harbor29x", 5)} == {
            True
        }
        await ingestion.ingest_uploads(db, LOCAL_TENANT, [Upload("new.txt", b"A new mole.")], readers=readers)
        assert [hit.name for hit in await library.search_passages(db, LOCAL_TENANT, "mole", 5)] == ["new.txt"]


async def count_segments(pool: Database) -> int:
    async with pool.transaction(LOCAL_TENANT) as connection:
        row = await (await connection.execute("select count(*) from index_segment")).fetchone()
    assert row is not None
    return row[0]


async def upload(pool: Database, readers: DocumentReaderPool, name: str, text: str) -> UUID:
    (file,) = await ingestion.ingest_uploads(pool, LOCAL_TENANT, [Upload(name, text.encode())], readers=readers)
    assert file.source_id is not None
    return file.source_id


async def test_single_documents_are_merged_into_few_segments_and_all_are_found(
    pool: Database, readers: DocumentReaderPool
) -> None:
    for number in range(2 * SEGMENTS_PER_MERGE):
        await upload(pool, readers, f"{number}.txt", f"Every buoy has a number, and this one has b{number}x.")
    assert await count_segments(pool) < SEGMENTS_PER_MERGE
    for number in range(2 * SEGMENTS_PER_MERGE):
        (hit,) = await library.search_passages(pool, LOCAL_TENANT, f"b{number}x", 5)
        assert hit.name == f"{number}.txt"
    assert len(await library.search_passages(pool, LOCAL_TENANT, "buoy", 50)) == 2 * SEGMENTS_PER_MERGE


def list_terms(owner_url: str) -> set[str]:
    with psycopg.connect(owner_url) as owner:
        rows = owner.execute(BUCKETS).fetchall()
    return {term for *segment, body in rows for term in unpack_bucket(body, SegmentRow(*segment))[0]}


def count_entries(owner_url: str) -> int:
    with psycopg.connect(owner_url) as owner:
        rows = owner.execute(BUCKETS).fetchall()
    return sum(len(unpack_bucket(body, SegmentRow(*segment))[2]) for *segment, body in rows)


async def test_an_erased_source_leaves_no_term_in_the_index_and_the_others_stay(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    erased = await upload(pool, readers, "secret.txt", "The agent Marbrook met the buoy keeper.")
    for number in range(SEGMENTS_PER_MERGE):
        await upload(pool, readers, f"{number}.txt", f"Every buoy has a number, and this one has b{number}x.")
    assert set(extract_terms("Marbrook secret")) <= list_terms(owner_url)
    await erase_source(pool, LOCAL_TENANT, erased)
    assert set(extract_terms("Marbrook secret agent")) & list_terms(owner_url) == set()
    assert len(await library.search_passages(pool, LOCAL_TENANT, "buoy", 50)) == SEGMENTS_PER_MERGE


async def test_a_text_with_an_earlier_index_is_indexed_anew_when_it_is_ingested_again(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    for name, text in (("tide.txt", "The tide turns."), ("mole.txt", "The mole stays.")):
        await upload(pool, readers, name, text)
    before = count_entries(owner_url)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.extracted_text set index_version = 1 where body like '%tide%'")
    assert [hit.name for hit in await library.search_passages(pool, LOCAL_TENANT, "tide", 5)] == ["tide.txt"]
    await upload(pool, readers, "tide.txt", "The tide turns.")
    assert [hit.name for hit in await library.search_passages(pool, LOCAL_TENANT, "tide", 5)] == ["tide.txt"]
    assert [hit.name for hit in await library.search_passages(pool, LOCAL_TENANT, "mole", 5)] == ["mole.txt"]
    with psycopg.connect(owner_url) as owner:
        assert owner.execute("select distinct index_version from app.extracted_text").fetchall() == [(INDEX_VERSION,)]
    assert count_entries(owner_url) == before


@asynccontextmanager
async def erasing(pool: Database, source_id: UUID) -> AsyncGenerator[Connection]:
    """A transaction that has deleted a source, and deletes its texts at the end."""
    async with pool.transaction(LOCAL_TENANT) as connection:
        deleted = await erasure.delete_source(connection, LOCAL_TENANT, source_id)
        assert deleted is not None
        orphans = await erasure.list_orphaned_texts(connection, LOCAL_TENANT, deleted.text_ids)
        yield connection
        await erasure.delete_texts(connection, LOCAL_TENANT, orphans)


async def test_a_source_can_be_erased_while_another_text_replaces_it(
    pool: Database, readers: DocumentReaderPool
) -> None:
    async with erasing(pool, await upload(pool, readers, "tide.txt", "The tide turns.")) as connection:
        replacing = asyncio.create_task(upload(pool, readers, "tide.txt", "The tide stays."))
        await asyncio.sleep(0.5)
        assert not replacing.done()
        await connection.execute("select 1 from index_counter for update nowait")
    await replacing
    (hit,) = await library.search_passages(pool, LOCAL_TENANT, "tide", 5)
    assert hit.text == "The tide stays."


async def test_a_stored_text_that_is_erased_while_it_gets_another_name_is_reported(
    pool: Database, readers: DocumentReaderPool
) -> None:
    async with erasing(pool, await upload(pool, readers, "tide.txt", "The tide turns.")):
        again = Upload("copy.txt", b"The tide turns.")
        adding = asyncio.create_task(ingestion.ingest_uploads(pool, LOCAL_TENANT, [again], readers=readers))
        await asyncio.sleep(0.5)
    (file,) = await adding
    assert (file.outcome, file.source_id) == ("failed", None)
    assert "erased" in file.problem
    assert "Ingest the document again." in file.problem


async def test_a_text_that_no_search_has_to_find_takes_no_index_away(
    pool: Database, readers: DocumentReaderPool
) -> None:
    async def store_unindexed(text: str) -> None:
        document = await readers.read("page.txt", text.encode(), LOCAL_TENANT)
        async with pool.transaction(LOCAL_TENANT) as connection:
            await document_storage.store_unindexed(connection, LOCAL_TENANT, text.encode(), document)

    await upload(pool, readers, "tide.txt", "The tide turns.")
    await store_unindexed("The tide turns.")
    await store_unindexed("The mole stays.")
    assert await count_segments(pool) == 1
    assert [hit.name for hit in await library.search_passages(pool, LOCAL_TENANT, "tide", 5)] == ["tide.txt"]
    await upload(pool, readers, "mole.txt", "The mole stays.")
    assert [hit.name for hit in await library.search_passages(pool, LOCAL_TENANT, "mole", 5)] == ["mole.txt"]


async def test_the_commonest_terms_are_left_out_above_a_maximum(
    pool: Database, readers: DocumentReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await upload(pool, readers, f"{number}.txt", f"A buoy b{number}x.")
    monkeypatch.setattr(search, "MAX_POSTINGS", 2)
    assert [hit.name for hit in await library.search_passages(pool, LOCAL_TENANT, "buoy b2x", 5)] == ["2.txt"]


async def test_a_text_of_more_passages_than_narrow_entries_can_number_is_found(
    pool: Database, readers: DocumentReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offing.storage.postings.NARROW_PASSAGES", 3)
    sections = "\n\n".join(f"# Part {n}\n\n" + f"The tide of harbor{n}x is high. " * 60 for n in range(9))
    await upload(pool, readers, "tides.md", sections)
    await upload(pool, readers, "buoy.md", "A buoy.")
    (hit, *_) = await library.search_passages(pool, LOCAL_TENANT, "harbor8x", 50)
    assert "harbor8x" in hit.text

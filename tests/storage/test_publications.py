"""Author, date and pages of a document: stored with its text, added to a text of before, erased with it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from fpdf import FPDF

from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, library
from offing.services.ingestion import Upload
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

Stored = tuple[str | None, str | None, list[int] | None, list[int] | None]
UNKNOWN: Stored = (None, None, None, None)
FORGET = "update app.extracted_text set author = null, published = null, page_starts = null, page_numbers = null"


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(1) as result:
        yield result


def write_pdf(*texts: str, author: str = "Ann Lee") -> bytes:
    pdf = FPDF()
    pdf.set_author(author)
    pdf.set_creation_date(datetime(2021, 3, 4, tzinfo=UTC))
    pdf.set_font("helvetica", size=12)
    for text in texts:
        pdf.add_page()
        pdf.multi_cell(0, 5, text)
    return bytes(pdf.output())


async def ingest(pool: Database, readers: DocumentReaderPool, *files: tuple[str, bytes]) -> list[str]:
    uploads = [Upload(name, data) for name, data in files]
    results = await ingestion.ingest_uploads(pool, LOCAL_TENANT, uploads, readers=readers)
    return [result.outcome for result in results]


async def stored(pool: Database, name: str) -> tuple[UUID, Stored]:
    """Return the id of the text of a source, and its author, date and pages."""
    async with pool.transaction(LOCAL_TENANT) as connection:
        cursor = await connection.execute(
            "select a.id, author, published, page_starts, page_numbers from source s "
            "join extracted_text a on a.id = s.text_id where s.name = %s",
            (name,),
        )
        row = await cursor.fetchone()
    assert row is not None
    return row[0], (row[1], row[2], row[3], row[4])


async def test_author_date_and_pages_are_stored_with_the_text(pool: Database, readers: DocumentReaderPool) -> None:
    front = b"---\nauthor: Bo Chen\ndate: 2024-03\n---\n\n# Pools\n\nA pool.\n"
    files = [("a.pdf", write_pdf("One pool.", "Two pools.")), ("b.md", front), ("c.txt", b"A pool of nobody.")]
    assert await ingest(pool, readers, *files) == ["added"] * 3
    assert (await stored(pool, "a.pdf"))[1] == ("Ann Lee", "2021-03-04", [0, 11], [1, 2])
    assert (await stored(pool, "b.md"))[1] == ("Bo Chen", "2024-03", [], [])
    assert (await stored(pool, "c.txt"))[1] == ("", "", [], [])


async def test_a_text_of_before_gets_them_once_when_its_file_is_ingested_again(
    pool: Database, readers: DocumentReaderPool, owner_url: str
) -> None:
    files = [("a.pdf", write_pdf("One pool.", "Two pools.")), ("b.txt", b"A pool of nobody.")]
    await ingest(pool, readers, *files)
    text_id, known = await stored(pool, "a.pdf")
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(FORGET)
    assert await stored(pool, "a.pdf") == (text_id, UNKNOWN)
    assert await ingest(pool, readers, *files) == ["replaced", "replaced"]
    assert await stored(pool, "a.pdf") == (text_id, known)
    assert (await stored(pool, "b.txt"))[1] == ("", "", [], [])
    assert await ingest(pool, readers, *files) == ["unchanged", "unchanged"]


async def test_an_index_of_another_version_is_replaced_with_what_its_reader_found(
    pool: Database, readers: DocumentReaderPool, owner_url: str
) -> None:
    await ingest(pool, readers, ("a.pdf", write_pdf("One pool.", "Two pools.")))
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.extracted_text set index_version = 1, author = 'Somebody', page_starts = '{5}'")
    await ingest(pool, readers, ("a.pdf", write_pdf("One pool.", "Two pools.")))
    assert (await stored(pool, "a.pdf"))[1] == ("Ann Lee", "2021-03-04", [0, 11], [1, 2])


async def test_the_date_of_a_document_comes_with_what_a_search_finds_and_a_tool_reads(
    pool: Database, readers: DocumentReaderPool, owner_url: str
) -> None:
    await ingest(pool, readers, ("a.pdf", write_pdf("A pool keeps sockets open.")))
    access = library.build_library_access(pool, LOCAL_TENANT)

    async def dates() -> tuple[str, str]:
        (passage,) = (await access.search("pool", 5)).passages
        window = await access.read("a.pdf", 0, 100)
        assert window is not None
        return passage.published, window.published

    assert await dates() == ("2021-03-04", "2021-03-04")
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(FORGET)
    assert await dates() == ("", "")


async def test_hostile_names_are_bounded_data(pool: Database, readers: DocumentReaderPool) -> None:
    await ingest(pool, readers, ("a.pdf", write_pdf("One pool.", author="Ann'); drop table source; --\x07 \u202eLee")))
    await ingest(pool, readers, ("b.pdf", write_pdf("Two pools.", author=", ".join(["Ann Lee"] * 10_000))))
    assert (await stored(pool, "a.pdf"))[1][0] == "Ann'), drop table source, Lee"
    author = (await stored(pool, "b.pdf"))[1][0] or ""
    assert author.endswith("Ann Lee et al.")
    assert len(author) <= 200

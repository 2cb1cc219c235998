"""Folders of any size go in: at the pace of the database, one file's fault staying its own, and nothing lost."""

import asyncio
import io
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import docx
import pytest
from fpdf import FPDF

from offing.core.errors import Unavailable
from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, library
from offing.services.ingestion import Upload
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database

COUNT = 1500


def sentence(number: int) -> str:
    return f"Station {number} reports a tide of {number % 7} meters under gauge g{number}x."


def a_pdf(text: str) -> bytes:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", size=11)
    pdf.multi_cell(0, 5, text)
    return bytes(pdf.output())


def a_docx(text: str) -> bytes:
    document, out = docx.Document(), io.BytesIO()
    document.add_paragraph(text)
    document.save(out)
    return out.getvalue()


def written(folder: Path, count: int) -> Path:
    """A folder of small documents: mostly Markdown, reStructuredText, HTML and plain text; some DOCX and PDF."""
    for number in range(count):
        text, below = sentence(number), folder / f"part{number % 20}"
        below.mkdir(exist_ok=True)
        match number % 50:
            case 0:
                (below / f"{number}.docx").write_bytes(a_docx(text))
            case 1:
                (below / f"{number}.pdf").write_bytes(a_pdf(text))
            case n if n % 4 == 0:
                (below / f"{number}.html").write_text(f"<html><body><h1>Station</h1><p>{text}</p></body></html>")
            case n if n % 4 == 1:
                (below / f"{number}.rst").write_text(f"Station\n=======\n\n{text}\n")
            case n if n % 4 == 2:
                (below / f"{number}.txt").write_text(text)
            case _:
                (below / f"{number}.md").write_text(f"# Station\n\n{text}\n")
    return folder


@pytest.fixture
async def small_pool(app_url: str) -> AsyncIterator[Database]:
    """A pool that is far smaller than what is ingested, and that lets nobody wait long for it."""
    async with Database(app_url, max_connections=2, queue_seconds=1.0) as database:
        yield database


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(2) as result:
        yield result


async def test_a_folder_of_1500_files_goes_in_and_is_skipped_the_next_time(
    small_pool: Database, readers: DocumentReaderPool, tmp_path: Path
) -> None:
    folder = written(tmp_path, COUNT)
    result = await ingestion.ingest_folder(small_pool, LOCAL_TENANT, folder, readers=readers)
    assert Counter(file.outcome for file in result.files) == {"added": COUNT}
    _, total = await library.list_sources(small_pool, LOCAL_TENANT, limit=1)
    assert total == COUNT
    (hit, *_) = await library.search_passages(small_pool, LOCAL_TENANT, "gauge g777x", 1)
    assert "Station 777 reports" in hit.text
    async with DocumentReaderPool(1, command=("/nonexistent",)) as none:
        again = await ingestion.ingest_folder(small_pool, LOCAL_TENANT, folder, readers=none)
    assert (Counter(file.outcome for file in again.files), again.removed_count) == ({"unchanged": COUNT}, 0)


class Watched(Database):
    """A database that counts the transactions which are open or wait at once, and fails those that a test names."""

    def __init__(self, url: str, failing: Iterable[int] = (), error: Exception | None = None) -> None:
        super().__init__(url, max_connections=2)
        self.failing, self.error = set(failing), error or Unavailable("Postgres did not answer: it was told not to")
        self.begun = self.now = self.most_at_once = 0

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        self.begun, self.now = self.begun + 1, self.now + 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            if self.begun in self.failing:
                raise self.error
            async with super().transaction(tenant_id, pipelined=pipelined) as connection:
                yield connection
        finally:
            self.now -= 1


async def test_what_waits_for_the_database_does_not_grow_with_the_folder(
    app_url: str, readers: DocumentReaderPool, tmp_path: Path
) -> None:
    async with Watched(app_url) as database:
        result = await ingestion.ingest_folder(database, LOCAL_TENANT, written(tmp_path, 200), readers=readers)
        assert Counter(file.outcome for file in result.files) == {"added": 200}
        assert database.most_at_once <= readers.max_documents


async def test_a_database_that_stumbles_is_asked_again_and_no_file_is_lost(
    app_url: str, readers: DocumentReaderPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "STORE_RETRY_SECONDS", (0.01, 0.02, 0.03))
    async with Watched(app_url, failing=range(5, 60, 7)) as database:
        result = await ingestion.ingest_folder(database, LOCAL_TENANT, written(tmp_path, 60), readers=readers)
        assert Counter(file.outcome for file in result.files) == {"added": 60}


async def test_a_file_that_cannot_be_stored_is_reported_and_the_others_go_in(
    app_url: str, readers: DocumentReaderPool, tmp_path: Path
) -> None:
    # The second transaction stores all documents, and each of the next ones a single document.
    async with Watched(app_url, failing=[2, 9], error=ValueError("a fault in our own code")) as database:
        folder = written(tmp_path, 40)
        result = await ingestion.ingest_folder(database, LOCAL_TENANT, folder, readers=readers)
        assert Counter(file.outcome for file in result.files) == {"added": 39, "failed": 1}
        (failed,) = [file for file in result.files if file.outcome == "failed"]
        assert (failed.source_id, "See the log" in failed.problem) == (None, True)
        again = await ingestion.ingest_folder(database, LOCAL_TENANT, folder, readers=readers)
        assert Counter(file.outcome for file in again.files) == {"unchanged": 39, "added": 1}


async def test_a_database_that_stays_away_ends_a_folder_soon_and_takes_nothing_out_of_search(
    app_url: str, readers: DocumentReaderPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "STORE_RETRY_SECONDS", (0.01,))
    folder = written(tmp_path, 120)
    async with Watched(app_url) as database:
        await ingestion.ingest_folder(database, LOCAL_TENANT, folder, readers=readers)
        for file in folder.rglob("*.md"):
            file.write_text("# Station\n\nIt was moved.\n" + file.name)
        changed = len(list(folder.rglob("*.md")))
        before = database.begun
        database.failing = set(range(before + 2, before + 1000))
        result = await ingestion.ingest_folder(database, LOCAL_TENANT, folder, readers=readers)
        assert Counter(file.outcome for file in result.files) == {"unchanged": 120 - changed, "failed": changed}
        assert (
            result.removed_count,
            database.begun - before <= 1 + 2 * (ingestion.MAX_CONSECUTIVE_FAILURES + readers.max_documents),
        ) == (0, True)
        database.failing = set()
        again = await ingestion.ingest_folder(database, LOCAL_TENANT, folder, readers=readers)
        assert Counter(file.outcome for file in again.files) == {"unchanged": 120 - changed, "replaced": changed}


async def test_a_file_that_fails_keeps_what_its_name_stood_for(
    app_url: str, readers: DocumentReaderPool, tmp_path: Path
) -> None:
    (tmp_path / "tide.md").write_text("# Tide\n\nIt is high at noon.\n")
    async with Watched(app_url) as database:
        await ingestion.ingest_folder(database, LOCAL_TENANT, tmp_path, readers=readers)
        (tmp_path / "tide.md").write_text("# Tide\n\nIt is low at noon.\n")
        database.failing, database.error = {database.begun + 2}, ValueError("a fault in our own code")
        result = await ingestion.ingest_folder(database, LOCAL_TENANT, tmp_path, readers=readers)
        assert ([file.outcome for file in result.files], result.removed_count) == (["failed"], 0)
        assert [hit.name for hit in await library.search_passages(database, LOCAL_TENANT, "high noon", 5)] == [
            "tide.md"
        ]


async def test_many_uploads_at_once_share_readers_and_connections(
    small_pool: Database, readers: DocumentReaderPool
) -> None:
    uploads = [[Upload(f"{n}-{m}.md", sentence(100 * n + m).encode()) for m in range(40)] for n in range(12)]
    results = await asyncio.gather(
        *(ingestion.ingest_uploads(small_pool, LOCAL_TENANT, one, readers=readers) for one in uploads)
    )
    assert Counter(file.outcome for taken in results for file in taken) == {"added": 480}

"""Documents in, passages out, on a real database and with real readers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal
from uuid import UUID

import pytest

from offing.clock import new_id
from offing.core.errors import InvalidInput, NotFound
from offing.core.tool import SourceSpan
from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, library
from offing.services.ingestion import Upload
from offing.services.library import LibraryScope
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

POOLS = (
    "# Pools\n\nA pool keeps sockets open, so that later requests need no handshake. \U0001f600 Caf\u00e9 sockets.\n"
)
AGENTS = "# Agents\n\nAn agent keeps one pool for every origin it talks to.\n"


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(2) as result:
        yield result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "pools.md").write_text(POOLS)
    (tmp_path / "sub/agents.md").write_text(AGENTS)
    return tmp_path


async def ingest(pool: Database, folder: Path, readers: DocumentReaderPool) -> dict[str, str]:
    result = await ingestion.ingest_folder(pool, LOCAL_TENANT, folder, readers=readers)
    return {file.name: file.outcome for file in result.files}


async def names(
    pool: Database, query: str, tenant_id: UUID = LOCAL_TENANT, scope: LibraryScope | None = None
) -> list[str]:
    return [
        hit.name for hit in await library.search_passages(pool, tenant_id, query, 10, scope or library.UNLIMITED_SCOPE)
    ]


async def counted(pool: Database, table: Literal["snapshot", "extracted_text", "source", "passage"]) -> int:
    async with pool.transaction(LOCAL_TENANT) as connection:
        cursor = await connection.execute(f"select from {table}".encode())
        return cursor.rowcount


async def test_a_folder_is_ingested_once_and_found(pool: Database, folder: Path, readers: DocumentReaderPool) -> None:
    assert await ingest(pool, folder, readers) == {"pools.md": "added", "sub/agents.md": "added"}
    assert await ingest(pool, folder, readers) == {"pools.md": "unchanged", "sub/agents.md": "unchanged"}
    assert await names(pool, "Which agent keeps a pool per origin?") == ["sub/agents.md", "pools.md"]


async def test_a_word_that_the_query_repeats_counts_more(
    pool: Database, tmp_path: Path, readers: DocumentReaderPool
) -> None:
    (tmp_path / "harbors.md").write_text("# One\n\nThe harbor closes.\n")
    (tmp_path / "lighthouses.md").write_text("# Two\n\nThe lighthouse closes in the evening.\n")
    await ingest(pool, tmp_path, readers)
    assert (await names(pool, "lighthouse harbor harbor"))[0] == "harbors.md"
    assert (await names(pool, "harbor lighthouse lighthouse"))[0] == "lighthouses.md"


async def test_words_after_the_maximum_are_left_out(pool: Database, folder: Path, readers: DocumentReaderPool) -> None:
    await ingest(pool, folder, readers)
    filler = " ".join(f"filler{n}x" for n in range(library.MAX_QUERY_TERMS))
    assert await names(pool, f"handshake {filler}") == ["pools.md"]
    assert await names(pool, f"{filler} {filler} handshake") == []


async def test_a_warm_run_starts_no_reader(pool: Database, folder: Path, readers: DocumentReaderPool) -> None:
    await ingest(pool, folder, readers)
    async with DocumentReaderPool(1, command=("/nonexistent",)) as none:
        assert set((await ingest(pool, folder, none)).values()) == {"unchanged"}


async def test_every_passage_is_an_exact_span_of_the_stored_text(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    await ingest(pool, folder, readers)
    hits = await library.search_passages(pool, LOCAL_TENANT, "caf\u00e9 sockets", 10)
    assert hits
    spans = [SourceSpan(hit.text_id, hit.start, hit.end) for hit in hits]
    assert list(await library.read_windows(pool, LOCAL_TENANT, spans)) == [hit.text for hit in hits]
    assert hits[0].text == POOLS[hits[0].start : hits[0].end]


async def test_progress_is_told_file_by_file(pool: Database, folder: Path, readers: DocumentReaderPool) -> None:
    seen: list[tuple[int, int, str]] = []
    await ingestion.ingest_folder(
        pool, LOCAL_TENANT, folder, lambda done, total, name: seen.append((done, total, name)), readers=readers
    )
    assert [(done, total) for done, total, _ in seen] == [(1, 2), (2, 2)]


async def test_a_changed_file_replaces_what_its_source_held(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    await ingest(pool, folder, readers)
    old = (await library.search_passages(pool, LOCAL_TENANT, "handshake", 1))[0]
    (folder / "pools.md").write_text("# Pools\n\nEverything about wells and water.\n")
    assert await ingest(pool, folder, readers) == {"pools.md": "replaced", "sub/agents.md": "unchanged"}
    assert await names(pool, "handshake") == []
    assert (await library.search_passages(pool, LOCAL_TENANT, "wells", 1))[0].source_id == old.source_id
    assert await library.read_windows(pool, LOCAL_TENANT, [SourceSpan(old.text_id, old.start, old.end)]) == (old.text,)
    assert (await library.get_passage_in_context(pool, LOCAL_TENANT, old.text_id, old.start, old.end)).text == old.text


async def test_a_vanished_file_leaves_search_and_comes_back(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    await ingest(pool, folder, readers)
    (folder / "pools.md").rename(folder / "pools.away")
    result = await ingestion.ingest_folder(pool, LOCAL_TENANT, folder, readers=readers)
    assert result.removed_count == 1
    assert await names(pool, "handshake") == []
    (folder / "pools.away").rename(folder / "pools.md")
    assert (await ingest(pool, folder, readers))["pools.md"] == "unchanged"
    assert await names(pool, "handshake") == ["pools.md"]


async def test_a_file_that_can_no_longer_be_read_leaves_search(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    await ingest(pool, folder, readers)
    (folder / "pools.md").write_bytes(b"")
    assert (await ingest(pool, folder, readers))["pools.md"] == "rejected"
    assert await names(pool, "handshake") == []


async def test_the_same_bytes_under_two_names_are_stored_once(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    (folder / "copy.md").write_text(POOLS)
    outcomes = await ingest(pool, folder, readers)
    assert set(outcomes.values()) == {"added"}
    assert await counted(pool, "snapshot") == await counted(pool, "extracted_text") == 2
    assert len(await names(pool, "handshake")) == 1


async def test_one_bad_file_is_rejected_and_the_others_are_taken(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (folder / "empty.md").write_bytes(b"")
    (folder / "code.py").write_text("pass")
    result = await ingestion.ingest_folder(pool, LOCAL_TENANT, folder, readers=readers)
    assert Counter(file.outcome for file in result.files) == {"added": 2, "rejected": 2}
    assert all(file.problem.endswith(".") for file in result.files if file.outcome == "rejected")
    assert result.skipped == {".py": 1}


async def test_two_ingestions_of_one_folder_at_once_agree(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    for number in range(12):
        (folder / f"more{number}.md").write_text(f"# Number {number}\n\nText of document {number} about sockets.\n")
    both = await asyncio.gather(ingest(pool, folder, readers), ingest(pool, folder, readers))
    assert all(set(outcomes.values()) <= {"added", "replaced", "unchanged"} for outcomes in both)
    assert await counted(pool, "extracted_text") == await counted(pool, "source") == 14
    assert await counted(pool, "passage") == 14


async def test_uploads_keep_their_order_and_lose_their_folders(pool: Database, readers: DocumentReaderPool) -> None:
    sent = [Upload("C:\\docs\\b.md", POOLS.encode()), Upload("../../etc/a.md", AGENTS.encode()), Upload("c.pdf", b"x")]
    result = await ingestion.ingest_uploads(pool, LOCAL_TENANT, sent, readers=readers)
    outcomes = [(file.name, file.outcome) for file in result]
    assert outcomes == [("b.md", "added"), ("a.md", "added"), ("c.pdf", "added")]
    with pytest.raises(InvalidInput, match="files"):
        await ingestion.ingest_uploads(pool, LOCAL_TENANT, [Upload("..", b"x")], readers=readers)


async def test_sources_are_listed_page_by_page(pool: Database, folder: Path, readers: DocumentReaderPool) -> None:
    await ingest(pool, folder, readers)
    first, total = await library.list_sources(pool, LOCAL_TENANT, limit=1)
    then, _ = await library.list_sources(pool, LOCAL_TENANT, limit=1, page_key=(first[0].added_at, first[0].id))
    assert total == 2
    assert {first[0].name, then[0].name} == {"pools.md", "sub/agents.md"}
    named, total = await library.list_sources(pool, LOCAL_TENANT, title_filter="AGENT")
    assert ([s.title for s in named], total) == (["Agents"], 1)
    assert named[0].length_chars == len(AGENTS)
    assert named[0].size_bytes == len(AGENTS.encode())


async def test_a_scope_limits_search_and_reading(pool: Database, folder: Path, readers: DocumentReaderPool) -> None:
    await ingest(pool, folder, readers)
    await ingestion.ingest_uploads(
        pool, LOCAL_TENANT, [Upload("own.md", b"# Own\n\nA pool of my own.")], readers=readers
    )
    uploads = LibraryScope(collections=("",))
    agents = (await library.list_sources(pool, LOCAL_TENANT, title_filter="agents"))[0][0]
    assert await names(pool, "pool", scope=uploads) == ["own.md"]
    assert await names(pool, "pool", scope=LibraryScope(sources=(agents.id,))) == ["sub/agents.md"]
    port = library.build_library_access(pool, LOCAL_TENANT, uploads)
    assert await port.read("pools.md", 0, 10) is None
    assert await port.read(str(agents.id), 0, 10) is None
    window = await port.read("own.md", 2, 3)
    assert window is not None
    assert (window.text, window.total_chars) == ("Own", 24)


async def test_a_source_is_read_by_id_name_title_or_text_id(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    await ingest(pool, folder, readers)
    port = library.build_library_access(pool, LOCAL_TENANT)
    agents = (await library.list_sources(pool, LOCAL_TENANT, title_filter="agents"))[0][0]
    for expected in (str(agents.id), str(agents.text_id), "sub/agents.md", "Agents"):
        window = await port.read(expected, 0, 500)
        assert window is not None
        assert window.text == AGENTS
    assert await port.suggest("pool of an agent", 5) == ("sub/agents.md", "pools.md")


async def test_a_passage_is_shown_in_its_context(pool: Database, folder: Path, readers: DocumentReaderPool) -> None:
    await ingest(pool, folder, readers)
    hit = (await library.search_passages(pool, LOCAL_TENANT, "handshake", 1))[0]
    at = POOLS.index("sockets open")
    result = await library.get_passage_in_context(pool, LOCAL_TENANT, hit.text_id, at, at + 12, around=9)
    assert (result.before, result.text, result.after) == (POOLS[at - 9 : at], "sockets open", POOLS[at + 12 : at + 21])
    with pytest.raises(InvalidInput):
        await library.get_passage_in_context(pool, LOCAL_TENANT, hit.text_id, 0, 10**6)
    with pytest.raises(NotFound):
        await library.get_passage_in_context(pool, LOCAL_TENANT, new_id(), 0, 1)


async def test_another_tenant_sees_nothing(
    pool: Database, folder: Path, readers: DocumentReaderPool, other_tenant: UUID
) -> None:
    await ingest(pool, folder, readers)
    hit = (await library.search_passages(pool, LOCAL_TENANT, "handshake", 1))[0]
    assert await names(pool, "handshake", other_tenant) == []
    assert await library.read_windows(pool, other_tenant, [SourceSpan(hit.text_id, 0, 5)]) == (None,)
    assert await library.build_library_access(pool, other_tenant).read("pools.md", 0, 5) is None
    with pytest.raises(NotFound):
        await library.get_passage_in_context(pool, other_tenant, hit.text_id, 0, 5)


async def test_a_question_without_a_telling_word_finds_nothing(
    pool: Database, folder: Path, readers: DocumentReaderPool
) -> None:
    await ingest(pool, folder, readers)
    assert await names(pool, "how is it") == []
    assert await names(pool, "' ; drop table & | !") == []


async def test_a_large_document_is_read_window_by_window(pool: Database, readers: DocumentReaderPool) -> None:
    line = "Line {} of a long ledger tells of \u00e9ntries and sums.\n"
    text = "".join(line.format(n % 1000) for n in range(120_000)) + "The end is 109999."
    assert len(text) > 5_000_000
    (result,) = await ingestion.ingest_uploads(pool, LOCAL_TENANT, [Upload("big.txt", text.encode())], readers=readers)
    assert result.outcome == "added"
    port = library.build_library_access(pool, LOCAL_TENANT)
    began = asyncio.get_running_loop().time()
    for start in (0, 2_500_000, len(text) - 100):
        window = await port.read("big.txt", start, 6000)
        assert window is not None
        assert window.text == text[start : start + 6000]
    assert asyncio.get_running_loop().time() - began < 2
    assert (await library.search_passages(pool, LOCAL_TENANT, "109999", 1))[0].text.count("109999") == 1

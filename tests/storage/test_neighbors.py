"""What a run gets from a search: passages with the text that completes them, as exact spans."""

from itertools import pairwise
from pathlib import Path

from offing.core.tool import SourceSpan
from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, library
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

ROWS = "".join(f"| harbor {n} | {n * 7} boats moored at the quay in the evening |\n" for n in range(300))
GUIDE = f"# Harbors\n\n| Name | Boats |\n| --- | --- |\n{ROWS}\n## Notes\n\n" + "Nothing else is said here. " * 400


async def test_a_hit_in_a_long_table_has_its_header_row_and_an_exact_span(pool: Database, tmp_path: Path) -> None:
    (tmp_path / "harbors.md").write_text(GUIDE)
    async with DocumentReaderPool(1) as readers:
        await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    access = library.build_library_access(pool, LOCAL_TENANT)
    (hit,) = (await access.search("harbor 250 1750", 1)).passages
    assert hit.heading == "Harbors \u203a | Name | Boats |"
    assert hit.text == GUIDE[hit.start : hit.end]
    assert "| harbor 250 |" in hit.text
    assert await library.read_windows(pool, LOCAL_TENANT, [SourceSpan(hit.text_id, hit.start, hit.end)]) == (hit.text,)


async def test_hits_that_touch_are_returned_once_and_the_ranking_of_the_api_stays(
    pool: Database, tmp_path: Path
) -> None:
    (tmp_path / "harbors.md").write_text(GUIDE)
    async with DocumentReaderPool(1) as readers:
        await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    raw = await library.search_passages(pool, LOCAL_TENANT, "harbor boats quay", 20)
    hits = (await library.build_library_access(pool, LOCAL_TENANT).search("harbor boats quay", 20)).passages
    assert 0 < len(hits) < len(raw) == 20
    spans = sorted((hit.start, hit.end) for hit in hits)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert hits[0].score == raw[0].score


async def test_a_short_document_is_returned_completely(pool: Database, tmp_path: Path) -> None:
    page = "# Pools\n\n" + "A pool has rooms. " * 15 + "\n\n## Tides\n\n" + "The tide comes twice. " * 15
    (tmp_path / "pools.md").write_text(page)
    async with DocumentReaderPool(1) as readers:
        await ingestion.ingest_folder(pool, LOCAL_TENANT, tmp_path, readers=readers)
    (hit,) = (await library.build_library_access(pool, LOCAL_TENANT).search("tide pool", 5)).passages
    assert (hit.text, hit.heading) == (page, "Pools")

"""A document library of 50,000 documents: time of ingestion, disk space, and time of a search.

    .venv/bin/python -m tests.bench library
    .venv/bin/python -m tests.bench.library [--folders N…] [--documents N]

The documents are generated: 9 kB of Markdown each, with words that are as frequent as Zipf's law says. The most
frequent ones are the stop words of the index. Folders of them are ingested by the application's role, with real
readers, into a Postgres of its own, and the rest is stored without reading it again. Queries are sentences of such
documents.
"""

import argparse
import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import psutil
import psycopg

from offing.clock import new_id
from offing.library.publication import Publication
from offing.library.reader_process import read_document
from offing.library.readers import DocumentReaderPool, ParsedDocument
from offing.library.terms import STOP_WORDS
from offing.services import ingestion, library
from offing.services.document_storage import store_documents
from offing.storage import library as rows
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.bench.measurement import Aim, Measurement, percentile
from tests.bench.servers import open_migrated_servers

FOLDERS = (1_500, 15_000)
"""Number of files of each folder that is ingested, one after the other."""

DOCUMENTS = 50_000
"""Number of documents at which space and search are measured. Those beyond the folders are stored as copies of read
documents with other texts and the same postings, by the same transactions as a folder.
"""

READ_DOCUMENTS = 2_000
"""Number of documents that are read for the copies."""

DOCUMENT_BYTES = 9_000
VOCABULARY = 200_000
NEW_WORDS = 0.5
"""Share of a document's words that do not repeat one of its earlier words (Simon 1955, doi:10.2307/2333389)."""

QUERIES = 200

SIZES = """
    select relname, pg_total_relation_size(oid) from pg_class
     where relnamespace = 'app'::regnamespace and relkind = 'r' and pg_total_relation_size(oid) > 1000000
     order by 2 desc
"""


@dataclass(frozen=True, slots=True)
class GrownLibrary:
    """What was measured."""

    files_per_second: Sequence[float]
    """By folder, in the order of `FOLDERS`."""
    cpu_seconds_per_file: Sequence[float]
    """CPU time of this process, its readers and Postgres."""
    bytes_per_document: float
    """Disk space of the database, without what it takes when it is empty."""
    search_seconds: Sequence[float]
    bytes_by_table: dict[str, int]


class TextGenerator:
    """Writes documents whose words are as frequent as Zipf's law says, from a seed."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        letters = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
        words = sorted(STOP_WORDS) + [_spell(number, letters) for number in range(VOCABULARY)]
        self._words, self._weights = words, list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))

    def sentence(self, before: list[str] | None = None) -> str:
        """Return a sentence that repeats words of `before`, which gets its words."""
        fresh = self._dice.choices(self._words, cum_weights=self._weights, k=self._dice.randint(8, 24))
        if before is not None:
            fresh = [w if not before or self._dice.random() < NEW_WORDS else self._dice.choice(before) for w in fresh]
            before += fresh
        return " ".join(fresh).capitalize() + "."

    def document(self) -> str:
        """Return about `DOCUMENT_BYTES` of Markdown with headings and paragraphs."""
        words: list[str] = []
        parts, size = [f"# {self.sentence(words)[:60]}"], 0
        while size < DOCUMENT_BYTES:
            parts += [f"## {self.sentence(words)[:40]}"] if len(parts) % 4 == 0 else []
            parts.append(" ".join(self.sentence(words) for _ in range(self._dice.randint(3, 6))))
            size += len(parts[-1])
        return "\n\n".join(parts)


def _spell(number: int, syllables: Sequence[str]) -> str:
    word = ""
    while number or len(word) < 4:
        number, digit = divmod(number, len(syllables))
        word += syllables[digit]
    return word


def write_folder(folder: Path, count: int, texts: TextGenerator) -> Path:
    for number in range(count):
        below = folder / f"{number // 500:03}"
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{number:06}.md").write_text(texts.document())
    return folder


async def grow_library(
    db: Database, owner_url: str, home: Path, folders: Sequence[int], document_count: int
) -> GrownLibrary:
    """Ingest folders of these sizes, store more documents up to a number, and measure."""
    texts, rates, cpu_seconds = TextGenerator(0), list[float](), list[float]()
    empty_bytes = _database_bytes(owner_url)
    async with DocumentReaderPool() as readers:
        for number, count in enumerate(folders):
            seconds, cpu = await _time_folder(db, write_folder(home / f"folder{number}", count, texts), readers)
            rates.append(count / seconds)
            cpu_seconds.append(sum(cpu.values()) / count)
            print(
                f"{count} files, {rates[-1]:.0f} per second, {cpu_seconds[-1] * 1e3:.1f} ms of CPU per file "
                f"({', '.join(f'{name} {part / count * 1e3:.1f}' for name, part in cpu.items())}), "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    await _store_copies(db, texts, document_count - sum(folders))
    grown = (_database_bytes(owner_url) - empty_bytes) / document_count
    print(f"{grown:.0f} bytes of database per document", flush=True)
    seconds = [await _time_search(db, query) for query in _queries()]
    return GrownLibrary(rates, cpu_seconds, grown, seconds, _bytes_by_table(owner_url))


async def _time_folder(db: Database, folder: Path, readers: DocumentReaderPool) -> tuple[float, dict[str, float]]:
    """Ingest a folder and return the seconds and the seconds of CPU time by kind of process."""
    began, cpu_before = time.perf_counter(), _cpu_seconds()
    result = await ingestion.ingest_folder(db, LOCAL_TENANT, folder, readers=readers)
    seconds, cpu = time.perf_counter() - began, _cpu_seconds()
    if set(outcomes := Counter(file.outcome for file in result.files)) != {"added"}:
        raise SystemExit(f"not every file was ingested: {dict(outcomes)}")
    return seconds, {kind: value - cpu_before.get(kind, 0.0) for kind, value in cpu.items()}


def _cpu_seconds() -> dict[str, float]:
    """Return the CPU time of this process and of the living processes below it, by kind."""
    total: dict[str, float] = {"readers": 0.0, "this process": 0.0, "servers": 0.0}
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times, words = process.cpu_times(), process.cmdline()
            is_reader = "offing.library.reader_process" in words
            kind = "this process" if process.pid == os.getpid() else "readers" if is_reader else "servers"
            total[kind] += times.user + times.system
    return total


async def _store_copies(db: Database, texts: TextGenerator, count: int) -> None:
    """Store as many documents: copies of a few that are read, each with a text of its own."""
    originals: list[ParsedDocument] = []
    for number in range(min(count, READ_DOCUMENTS)):
        answer = read_document(f"{number}.md", texts.document().encode())
        publication = Publication(**answer.pop("publication"))
        originals.append(ParsedDocument(**answer, publication=publication))
    for first in range(0, count, ingestion.MAX_BATCH_DOCUMENTS):
        numbers = range(first, min(count, first + ingestion.MAX_BATCH_DOCUMENTS))
        copies = [_copy(originals[number % len(originals)], number) for number in numbers]
        async with db.transaction(LOCAL_TENANT) as connection:
            text_ids = await store_documents(connection, LOCAL_TENANT, copies)
            sources = [
                rows.NewSource(new_id(), f"{number}.md", copy.title, text_id)
                for number, text_id, (_, copy) in zip(numbers, text_ids, copies, strict=True)
            ]
            await rows.upsert_sources(connection, LOCAL_TENANT, "copies", sources)


def _copy(document: ParsedDocument, number: int) -> tuple[bytes, ParsedDocument]:
    text = f"{document.text[:-8]}{number:08}"
    return text.encode(), replace(document, text=text)


def _queries() -> Iterator[str]:
    texts = TextGenerator(1)
    for _ in range(QUERIES):
        yield texts.sentence()


async def _time_search(db: Database, query: str) -> float:
    began = time.perf_counter()
    await library.search_passages(db, LOCAL_TENANT, query, 10)
    return time.perf_counter() - began


def _database_bytes(owner_url: str) -> int:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        row = connection.execute("select pg_database_size(current_database())").fetchone()
    assert row is not None
    return row[0]


def _bytes_by_table(owner_url: str) -> dict[str, int]:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        return dict(connection.execute(SIZES).fetchall())


def measure_library(folders: Sequence[int] = FOLDERS, document_count: int = DOCUMENTS) -> GrownLibrary:
    with open_migrated_servers() as (servers, files):
        return asyncio.run(_measured(servers.app_url, servers.owner_url, files, folders, document_count))


async def _measured(
    app_url: str, owner_url: str, home: Path, folders: Sequence[int], document_count: int
) -> GrownLibrary:
    async with Database(app_url) as db:
        return await grow_library(db, owner_url, home, folders, document_count)


def library_size() -> list[Measurement]:
    """Measure the part `library` of the benchmark."""
    result = measure_library()
    rates = [
        Measurement(f"files per second into a library, folder of {count:,} texts of 9 kB", (rate,), "/s",
                    aim=Aim("at least 100", at_least=100))
        for count, rate in zip(FOLDERS, result.files_per_second, strict=True)
    ]  # fmt: skip
    cpu_seconds = [
        Measurement(f"CPU time per file, folder of {count:,} texts of 9 kB", (seconds,), "ms")
        for count, seconds in zip(FOLDERS, result.cpu_seconds_per_file, strict=True)
    ]
    seconds = result.search_seconds
    return [
        *rates,
        *cpu_seconds,
        Measurement(f"database per document of 9 kB, {DOCUMENTS:,} documents", (result.bytes_per_document / 1e3,), "kB",
                    aim=Aim("at most 30 kB", at_most=30)),
        Measurement(f"search in {DOCUMENTS:,} documents, p50", (percentile(seconds, 0.5),), "ms"),
        Measurement(f"search in {DOCUMENTS:,} documents, p95", (percentile(seconds, 0.95),), "ms",
                    aim=Aim("at most 150 ms", at_most=0.15)),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a large document library.")
    parser.add_argument("--folders", type=int, nargs="*", default=FOLDERS, metavar="N", help="numbers of files")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, metavar="N", help="number of documents in the end")
    options = parser.parse_args()
    result = measure_library(options.folders, options.documents)
    p50, p95 = (percentile(result.search_seconds, share) * 1e3 for share in (0.5, 0.95))
    print(f"search p50 {p50:.1f} ms, p95 {p95:.1f} ms")
    print("\n".join(f"{size / 1e6:10.1f} MB {name}" for name, size in result.bytes_by_table.items()))


if __name__ == "__main__":
    main()

"""Search by vectors in a large library: the stored signatures and vectors, compared with pgvector.

    .venv/bin/python -m tests.bench vectors
    .venv/bin/python -m tests.bench.vectors [--texts N] [--no-hnsw]

The vectors are generated: each is the sum of one of `CLUSTERS` random directions and noise, and queries are passages
with further noise. All queries are made by the application's role under row-level security, in a Postgres of its own
with its default settings, except `maintenance_work_mem` for the HNSW index. Each is made over the whole library and
over every hundredth text. recall@50 is the share of the 50 most similar passages, computed with the vectors before
rounding, that are among the 50 results. CPU time is that of this process and of the server's process.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import psutil
import psycopg

from offing.storage import vector_search
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing.storage.search import list_texts_in_scope
from offing.storage.vector_search import QueryVector
from offing.storage.vectors import pack_floats, pack_signatures
from tests.bench.measurement import Aim, Measurement, percentile
from tests.bench.servers import open_migrated_servers

TEXTS = 50_000
PASSAGES_PER_TEXT = 9
DIMENSIONS = 384
CLUSTERS = 20_000
NOISE = 1.2
"""Length of the noise relative to the direction of the cluster."""
QUERY_NOISE = 0.6
QUERIES = 40
DEPTH = 50
MODEL_ID = 1
SCOPE_SHARE = 100
"""The small scope has every hundredth text."""
EF_SEARCH = 200

COPY_SNAPSHOTS = "copy app.snapshot (tenant_id, sha256, media_type) from stdin (format binary)"
COPY_TEXTS = """
    copy app.extracted_text (id, tenant_id, snapshot_sha256, extractor, sha256, body, length_chars, passage_count,
                             first_passage) from stdin (format binary)
"""
COPY_SOURCES = """
    copy app.source (id, tenant_id, collection, name, title, text_id, first_passage, passage_count)
    from stdin (format binary)
"""
COPY_VECTORS = """
    copy app.text_vector (tenant_id, model_id, text_id, first_passage, vectors, signatures) from stdin (format binary)
"""

PGVECTOR = """
    create extension vector;
    create table app.bench_vector (
      tenant_id uuid not null, first_passage integer not null, ordinal integer not null,
      embedding halfvec({dimensions}) not null, primary key (tenant_id, first_passage, ordinal));
    select app.protect_table('app.bench_vector');
    grant select on app.bench_vector to offing_app;
    grant usage on schema public to offing_app;
"""
COPY_HALFVEC = "copy app.bench_vector (tenant_id, first_passage, ordinal, embedding) from stdin"
HNSW = """
    set maintenance_work_mem = '1500MB';
    create index bench_vector_hnsw on app.bench_vector using hnsw (embedding public.halfvec_cosine_ops)
"""
NEAREST = """
    select v.first_passage, v.ordinal from app.bench_vector v
     where v.tenant_id = %(tenant)s
     order by v.embedding operator(public.<=>) %(query)s::public.halfvec limit 50
"""
NEAREST_IN_SCOPE = """
    select v.first_passage, v.ordinal from app.bench_vector v
     where v.tenant_id = %(tenant)s
       and v.first_passage in (select s.first_passage from source s where s.tenant_id = %(tenant)s
                                  and s.removed_at is null and s.collection = any(%(collections)s))
     order by v.embedding operator(public.<=>) %(query)s::public.halfvec limit 50
"""
SIZES = """
    select relname, pg_total_relation_size(oid) from pg_class
     where relname in ('text_vector', 'bench_vector', 'bench_vector_hnsw')
"""

Find = Callable[[Connection, Any, Sequence[str]], Awaitable[list[tuple[int, int]]]]
"""Returns the best passages for a vector in these collections, or in all if there are none."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way to search took, over the whole library or in a small scope."""

    name: str
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    recall: float

    def __str__(self) -> str:
        p50, p95 = (percentile(self.seconds, share) * 1e3 for share in (0.5, 0.95))
        cpu = percentile(self.cpu_seconds, 0.5) * 1e3
        return f"{self.name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, CPU p50 {cpu:.1f} ms, recall@50 {self.recall:.3f}"


def generate_vectors(count: int) -> tuple[Any, Any]:
    """Return the vectors of passages and of queries, of length 1."""
    dice = np.random.default_rng(0)
    centers = _normalize(dice.standard_normal((CLUSTERS, DIMENSIONS), np.float32))
    noise = dice.standard_normal((count, DIMENSIONS), np.float32) * np.float32(NOISE / DIMENSIONS**0.5)
    passages = _normalize(centers[dice.integers(0, CLUSTERS, count)] + noise)
    noise = dice.standard_normal((QUERIES, DIMENSIONS), np.float32) * np.float32(QUERY_NOISE / DIMENSIONS**0.5)
    return passages, _normalize(passages[dice.integers(0, count, QUERIES)] + noise)


def _normalize(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def store_vectors(owner_url: str, passages: Any) -> float:
    """Store texts without words, with their vectors, and return the seconds for the vectors."""
    count = len(passages) // PASSAGES_PER_TEXT
    ids = [UUID(int=number + 1) for number in range(count)]
    hashes = [id.bytes * 2 for id in ids]
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(
            "insert into app.embedding_model (tenant_id, id, key, dimensions) values (%s, %s, 'bench', %s)",
            (LOCAL_TENANT, MODEL_ID, DIMENSIONS),
        )
        _copy(connection, COPY_SNAPSHOTS, ["uuid", "bytea", "text"], ((LOCAL_TENANT, h, "text/plain") for h in hashes))
        _copy(
            connection, COPY_TEXTS, ["uuid", "uuid", "bytea", "text", "bytea", "text", "int4", "int4", "int4"],
            ((id, LOCAL_TENANT, h, "bench", h, "", 0, PASSAGES_PER_TEXT, n * PASSAGES_PER_TEXT)
             for n, (id, h) in enumerate(zip(ids, hashes, strict=True))),
        )  # fmt: skip
        _copy(
            connection, COPY_SOURCES, ["uuid", "uuid", "text", "text", "text", "uuid", "int4", "int4"],
            ((id, LOCAL_TENANT, "small" if n % SCOPE_SHARE == 0 else "", str(n), "", id, n * PASSAGES_PER_TEXT,
              PASSAGES_PER_TEXT) for n, id in enumerate(ids)),
        )  # fmt: skip
        began = time.perf_counter()
        _copy(connection, COPY_VECTORS, ["uuid", "int8", "uuid", "int4", "bytea", "bytea"], _vector_rows(ids, passages))
        seconds = time.perf_counter() - began
        connection.execute("vacuum analyze")
    return seconds


def _vector_rows(ids: Sequence[UUID], passages: Any) -> Iterator[tuple[Any, ...]]:
    for number, id in enumerate(ids):
        first = number * PASSAGES_PER_TEXT
        own = passages[first : first + PASSAGES_PER_TEXT]
        yield LOCAL_TENANT, MODEL_ID, id, first, pack_floats(own), pack_signatures(own)


def _copy(connection: psycopg.Connection, statement: str, types: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    with connection.cursor().copy(statement.encode()) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def store_in_pgvector(owner_url: str, passages: Any) -> float:
    """Store the same vectors in a column of pgvector, and return the seconds."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(PGVECTOR.format(dimensions=DIMENSIONS).encode())
        began = time.perf_counter()
        with connection.cursor().copy(COPY_HALFVEC) as copy:
            for number, vector in enumerate(passages):
                first, ordinal = number - number % PASSAGES_PER_TEXT, number % PASSAGES_PER_TEXT
                copy.write(f"{LOCAL_TENANT}\t{first}\t{ordinal}\t{_render(vector)}\n")
        seconds = time.perf_counter() - began
        connection.execute("vacuum analyze app.bench_vector")
    return seconds


def _render(vector: Any) -> str:
    return f"[{','.join(f'{x:.5f}' for x in vector.tolist())}]"


def build_hnsw(owner_url: str) -> float:
    """Build pgvector's HNSW index with its default parameters, and return the seconds."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        began = time.perf_counter()
        for statement in HNSW.split(";"):
            connection.execute(statement.encode())
        return time.perf_counter() - began


async def find_stored(connection: Connection, vector: Any, collections: Sequence[str]) -> list[tuple[int, int]]:
    """Search as the platform does, from the sources in scope to the best passages."""
    scope = {"tenant": LOCAL_TENANT, "collections": list(collections), "sources": []}
    texts = await list_texts_in_scope(connection, scope)
    best = await vector_search.rank_vectors(connection, LOCAL_TENANT, QueryVector(MODEL_ID, vector), texts, DEPTH)
    return list(zip(best.firsts, best.ordinals, strict=True))


async def find_with_pgvector(connection: Connection, vector: Any, collections: Sequence[str]) -> list[tuple[int, int]]:
    values = {"tenant": LOCAL_TENANT, "query": _render(vector), "collections": list(collections)}
    statement = NEAREST_IN_SCOPE if collections else NEAREST
    return [(first, ordinal) async for first, ordinal in await connection.execute(statement, values, prepare=False)]


async def find_with_hnsw(connection: Connection, vector: Any, collections: Sequence[str]) -> list[tuple[int, int]]:
    await connection.execute(f"set local hnsw.ef_search = {EF_SEARCH}".encode())
    await connection.execute(b"set local hnsw.iterative_scan = strict_order")
    await connection.execute(b"set local enable_seqscan = off")
    return await find_with_pgvector(connection, vector, collections)


async def measure_search(
    database: Database, name: str, find: Find, passages: Any, queries: Any, *, is_small: bool
) -> Figures:
    seconds, cpu_seconds, recalls = list[float](), list[float](), list[float]()
    await _measure_query(database, find, queries[0], is_small=is_small)  # fills the caches of the server
    for vector in queries:
        best, elapsed, cpu = await _measure_query(database, find, vector, is_small=is_small)
        seconds.append(elapsed)
        cpu_seconds.append(cpu)
        numbers = {first + ordinal for first, ordinal in best}
        recalls.append(len(numbers & _find_exactly(passages, vector, is_small=is_small)) / DEPTH)
    scope = "1 % of the texts" if is_small else "all texts"
    return Figures(f"{name}, {scope}", tuple(seconds), tuple(cpu_seconds), float(np.mean(recalls)))


async def _measure_query(
    database: Database, find: Find, vector: Any, *, is_small: bool
) -> tuple[list[tuple[int, int]], float, float]:
    async with database.transaction(LOCAL_TENANT) as connection:
        processes = psutil.Process(), psutil.Process(connection.info.backend_pid)
        began, cpu_before = time.perf_counter(), _cpu_seconds(processes)
        best = await find(connection, vector, ["small"] if is_small else [])
        return best, time.perf_counter() - began, _cpu_seconds(processes) - cpu_before


def _cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(one.user + one.system for one in times)


def _find_exactly(passages: Any, vector: Any, *, is_small: bool) -> set[int]:
    scores = passages @ vector
    if is_small:
        scores[np.arange(len(scores)) // PASSAGES_PER_TEXT % SCOPE_SHARE != 0] = -2
    return set(np.argpartition(-scores, DEPTH)[:DEPTH].tolist())


async def compare(app_url: str, owner_url: str, text_count: int = TEXTS, *, has_hnsw: bool = True) -> list[Figures]:
    """Measure all ways to search, and print what they take as soon as it is known."""
    passages, queries = generate_vectors(text_count * PASSAGES_PER_TEXT)
    print(f"stored in {store_vectors(owner_url, passages):.0f} s", flush=True)
    figures: list[Figures] = []
    async with Database(app_url, max_connections=1) as database:
        for is_small in (False, True):
            figures += [await measure_search(database, "stored", find_stored, passages, queries, is_small=is_small)]
            print(figures[-1], flush=True)
        print(f"stored in pgvector in {store_in_pgvector(owner_url, passages):.0f} s", flush=True)
        for is_small in (False, True):
            name, find = "pgvector halfvec, scan", find_with_pgvector
            figures += [await measure_search(database, name, find, passages, queries, is_small=is_small)]
            print(figures[-1], flush=True)
        if has_hnsw:
            print(f"HNSW built in {build_hnsw(owner_url):.0f} s", flush=True)
        for is_small in (False, True) if has_hnsw else ():
            name, find = "pgvector halfvec, HNSW", find_with_hnsw
            figures += [await measure_search(database, name, find, passages, queries, is_small=is_small)]
            print(figures[-1], flush=True)
    with psycopg.connect(owner_url) as connection:
        for name, size in connection.execute(SIZES).fetchall():
            print(f"{size / 1e6:.0f} MB {name}", flush=True)
    return figures


def measure_vectors(text_count: int = TEXTS, *, has_hnsw: bool = True) -> list[Figures]:
    with open_migrated_servers() as (servers, _):
        return asyncio.run(compare(servers.app_url, servers.owner_url, text_count, has_hnsw=has_hnsw))


def vector_search_speed() -> list[Measurement]:
    """Measure the part `vectors` of the benchmark."""
    measurements: list[Measurement] = []
    for one in measure_vectors():
        what = f"search by vectors in {TEXTS * PASSAGES_PER_TEXT:,} passages, {one.name}"
        aim = Aim("at most 100 ms", at_most=0.1) if one.name == "stored, all texts" else None
        measurements += [
            Measurement(f"{what}: CPU time, p50", (percentile(one.cpu_seconds, 0.5),), "ms", aim=aim),
            Measurement(f"{what}: time, p95", (percentile(one.seconds, 0.95),), "ms"),
            Measurement(f"{what}: recall@{DEPTH}", (one.recall,), "score"),
        ]
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure searches by vectors in a large library.")
    parser.add_argument("--texts", type=int, default=TEXTS, metavar="N", help="number of texts with 9 passages each")
    parser.add_argument("--no-hnsw", action="store_true", help="do not build pgvector's HNSW index")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    measure_vectors(options.texts, has_hnsw=not options.no_hnsw)


if __name__ == "__main__":
    main()

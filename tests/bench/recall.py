"""Measure retrieval: recall at ten of each way to rank, and the time of ingestion and of queries.

    .venv/bin/python -m tests.bench.recall [--docs FOLDER] [--misses]

The documents come from `deploy/fetch-demo-docs`, the questions from `questions.toml` in this folder. It runs on its own
Postgres in a temporary folder. The time of searches in a large library is measured by `python -m tests.bench library`.
"""

import argparse
import asyncio
import os
import re
import statistics
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from offing.core.tool import SourceSpan
from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, library
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.bench.candidates import CANDIDATES, Candidate, rank_with
from tests.bench.servers import open_migrated_servers

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / ".demo" / "docs"


@dataclass(frozen=True, slots=True)
class Question:
    ask: str
    kind: str
    gold: tuple[tuple[str, str], ...]
    """Document, and words that it contains."""


@dataclass(slots=True)
class Score:
    """The results of one candidate, question by question."""

    shares: list[float] = field(default_factory=list[float])
    """Share of the needed passages among the first ten."""
    documents: list[float] = field(default_factory=list[float])
    ranks: list[float] = field(default_factory=list[float])
    """1 / rank of the first needed passage. 0 means that it is not among the first ten."""
    seconds: list[float] = field(default_factory=list[float])
    by_kind: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    misses: list[str] = field(default_factory=list[str])


def questions() -> list[Question]:
    raw = tomllib.loads((HERE / "questions.toml").read_text())["question"]
    return [Question(q["ask"], q["kind"], tuple((d, w) for d, w in q["gold"])) for q in raw]


def locate(text: str, words: str) -> tuple[int, int]:
    """Return where the words are in the text. Raises ValueError if they are not in it."""
    match = re.search(r"\s+".join(map(re.escape, words.split())), text)
    if match is None:
        raise ValueError(f"not in the document: {words}")
    return match.span()


async def gold_spans(db: Database, docs: Path, requests: Sequence[Question]) -> dict[tuple[str, str], SourceSpan]:
    """Return each needed passage as a span of the stored text."""
    listed, _ = await library.list_sources(db, LOCAL_TENANT, limit=10_000)
    text_ids = {source.name: source.text_id for source in listed}
    spans: dict[tuple[str, str], SourceSpan] = {}
    for document, words in (gold for question in requests for gold in question.gold):
        start, end = locate((docs / document).read_text(), words)
        spans[document, words] = SourceSpan(text_ids[document], start, end)
    return spans


async def measured(
    db: Database, candidate: Candidate, requests: Sequence[Question], gold: dict[tuple[str, str], SourceSpan]
) -> Score:
    score = Score()
    for question in requests:
        expected = [gold[g] for g in question.gold]
        async with db.transaction(LOCAL_TENANT) as connection:
            await rank_with(candidate, connection, LOCAL_TENANT, question.ask)  # warms plans and pages
            began = time.perf_counter()
            result = await rank_with(candidate, connection, LOCAL_TENANT, question.ask)
            score.seconds.append(time.perf_counter() - began)
        _note(score, question, expected, result)
    return score


def _note(score: Score, question: Question, expected: Sequence[SourceSpan], results: Sequence[SourceSpan]) -> None:
    share = sum(any(_overlap(f, w) for f in results) for w in expected) / len(expected)
    score.shares.append(share)
    score.by_kind.setdefault(question.kind, []).append(share)
    score.documents.append(sum(any(f.text_id == w.text_id for f in results) for w in expected) / len(expected))
    first = next((n for n, f in enumerate(results, 1) if any(_overlap(f, w) for w in expected)), 0)
    score.ranks.append(1 / first if first else 0.0)
    if share < 1:
        score.misses.append(question.ask)


def _overlap(result: SourceSpan, expected: SourceSpan) -> bool:
    return result.text_id == expected.text_id and result.start < expected.end and expected.start < result.end


def row(name: str, score: Score, fill_seconds: float) -> str:
    kinds = " | ".join(f"{statistics.mean(score.by_kind[k]):.2f}" for k in KINDS)
    ms = sorted(s * 1000 for s in score.seconds)
    return (
        f"| {name} | {statistics.mean(score.shares):.3f} | {statistics.mean(score.documents):.3f} | "
        f"{statistics.mean(score.ranks):.3f} | {kinds} | {ms[len(ms) // 2]:.1f} | {ms[int(len(ms) * 0.95)]:.1f} | "
        f"{fill_seconds:.1f} |"
    )


KINDS = ("plain", "paraphrase", "identifier", "several")
HEAD = (
    "| ranking | recall@10 | documents@10 | MRR@10 | " + " | ".join(KINDS) + " | query p50 ms | p95 ms | index s |\n"
    "|---|---" + "|---" * (len(KINDS) + 5) + "|"
)


async def compare(app_url: str, owner_url: str, docs: Path, show_misses: bool) -> None:
    request = questions()
    async with Database(app_url) as db:
        ingested = await timed_ingestion(db, docs)
        gold = await gold_spans(db, docs, request)
        print(f"{len(request)} questions, {len(gold)} passages needed, {ingested} documents\n\n{HEAD}")
        for candidate in CANDIDATES:
            seconds = await filled(db, owner_url, candidate)
            score = await measured(db, candidate, request, gold)
            print(row(candidate.name, score, seconds), flush=True)
            for miss in score.misses if show_misses else ():
                print(f"    missed: {miss}")
        print(await describe_completed(db, request, gold))


async def describe_completed(
    db: Database, requests: Sequence[Question], gold: dict[tuple[str, str], SourceSpan]
) -> str:
    """Return how the passages that a run gets, completed by the text around them, differ from the ranked ones."""
    shares, chars, passages = list[float](), [0, 0], [0, 0]
    access = library.build_library_access(db, LOCAL_TENANT)
    for question in requests:
        hits = (await access.search(question.ask, 10)).passages
        ranked = await library.search_passages(db, LOCAL_TENANT, question.ask, 10)
        spans, expected = [SourceSpan(h.text_id, h.start, h.end) for h in hits], [gold[g] for g in question.gold]
        shares.append(sum(any(_overlap(s, e) for s in spans) for e in expected) / len(expected))
        chars = [chars[0] + sum(len(h.text) for h in ranked), chars[1] + sum(len(h.text) for h in hits)]
        passages = [passages[0] + len(ranked), passages[1] + len(hits)]
    count = len(requests)
    return (
        f"\nas a run gets them: recall@10 {statistics.mean(shares):.3f}; {passages[1] / count:.1f} passages instead of "
        f"{passages[0] / count:.1f}, and {chars[1] / count:.0f} characters instead of {chars[0] / count:.0f} per query"
    )


async def timed_ingestion(db: Database, docs: Path) -> int:
    began = time.perf_counter()
    async with DocumentReaderPool() as readers:
        cold = await ingestion.ingest_folder(db, LOCAL_TENANT, docs, readers=readers)
        middle = time.perf_counter()
        await ingestion.ingest_folder(db, LOCAL_TENANT, docs, readers=readers)
    print(
        f"{len(cold.files)} documents ingested: cold {middle - began:.2f} s, start of readers included; "
        f"warm {time.perf_counter() - middle:.3f} s; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )
    return len(cold.files)


async def filled(db: Database, owner_url: str, candidate: Candidate) -> float:
    """Build a candidate's index and return the seconds it took."""
    began = time.perf_counter()
    if candidate.tables:
        run_as_owner(owner_url, candidate.tables)
    if candidate.fill:
        async with db.transaction(LOCAL_TENANT) as connection:
            await connection.execute(candidate.fill, {"tenant": LOCAL_TENANT})
    seconds = time.perf_counter() - began
    run_as_owner(owner_url, "analyze")
    return seconds


def run_as_owner(owner_url: str, statement: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(statement.encode())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure retrieval on the demo documents.")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of documents (deploy/fetch-demo-docs)")
    parser.add_argument("--misses", action="store_true", help="list the questions that were not answered fully")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    if not chosen.docs.is_dir():
        raise SystemExit(f"{chosen.docs} is missing; run deploy/fetch-demo-docs first.")
    with open_migrated_servers() as (servers, _):
        asyncio.run(compare(servers.app_url, servers.owner_url, chosen.docs, chosen.misses))


if __name__ == "__main__":
    main()

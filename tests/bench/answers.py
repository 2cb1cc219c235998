"""Score the quotes of the engine without a model against the gold sentences of public question sets.

    .venv/bin/python -m tests.bench.answers --collections FOLDER [--split development|check] [--sample 250]
        [--graph NAME] [--misses]

FOLDER holds the repositories of the collections under these names: `xquad` (google-deepmind/xquad), `cmrc2018`
(ymcui/cmrc2018) and `clapnq` (primeqa/clapnq). They are not kept in this project; a collection that is missing is
named and left out. Every paragraph is a document, and the real graph runs over all paragraphs of its collection with
the in-memory context of `tests/graphs`. A question without an answer is an unanswerable one of CLAP NQ, or, in the
other collections, a question whose paragraph is taken away.

Precision, recall and F1 count characters without white space: those that are quoted as an answer, and those of the
gold sentences. The baseline quotes the best passage without its sentences that share no word with the question.
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from uuid import uuid5

from offing.core.report import Report
from offing.sdk import Graph
from offing.services.graphs import open_registry
from offing_graphs.extractive.text_units import split_units
from offing_graphs.extractive.word_forms import extract_stems, extract_terms
from tests.graphs.in_memory_context import NAMES, InMemoryContext, Library, carry_out

ANSWERED = "answered"
Ranges = Mapping[str, frozenset[int]]
"""Code points without white space, by document name."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold sentences."""

    id: str
    text: str
    document: str
    """Name of the document that answers it."""
    gold: frozenset[int]
    """Code points of the gold sentences in the document. Empty means that the question has no answer."""
    removed: bool = False
    """Whether the document is taken away."""


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    documents: Mapping[str, str]
    """Text by document name."""
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    question: Question
    answered: bool
    precision: float
    recall: float
    baseline_f1: float
    report: Report

    @property
    def f1(self) -> float:
        return _harmonic_mean(self.precision, self.recall)


def load_squad(name: str, path: Path) -> Collection:
    """Load a collection in the format of SQuAD. Every second question has its document taken away."""
    documents: dict[str, str] = {}
    questions: list[Question] = []
    for article in json.loads(path.read_text())["data"]:
        for paragraph in article["paragraphs"]:
            document = f"{len(documents):04} {article.get('title', '')}"
            documents[document] = f"# {article.get('title', '')}\n\n{paragraph['context']}"
            shift = len(documents[document]) - len(paragraph["context"])
            for raw in paragraph["qas"]:
                at = shift + raw["answers"][0]["answer_start"]
                gold = _find_sentence(documents[document], at)
                questions.append(Question(raw["id"], raw["question"], document, gold))
    ordered = sorted(questions, key=lambda q: _digest(q.id, "order"))
    marked = (replace(q, gold=frozenset(), removed=True) if n % 2 else q for n, q in enumerate(ordered))
    return Collection(name, documents, tuple(marked))


def load_clapnq(name: str, folder: Path) -> Collection:
    """Load CLAP NQ, whose sentences are separated by spaces."""
    documents: dict[str, str] = {}
    questions: list[Question] = []
    for kind in ("answerable", "unanswerable"):
        for line in (folder / f"clapnq_dev_{kind}.jsonl").open():
            raw = json.loads(line)
            passage = raw["passages"][0]
            document = f"{len(documents):04} {passage['title']}"
            documents[document] = text = f"# {passage['title']}\n\n{passage['text']}"
            selected: list[str] = raw["output"][0].get("selected_sentences") or [] if kind == "answerable" else []
            gold = frozenset[int]().union(*(_find_points(text, sentence) for sentence in selected))
            if gold or kind == "unanswerable":
                questions.append(Question(raw["id"], raw["input"], document, gold))
    return Collection(name, documents, tuple(sorted(questions, key=lambda q: _digest(q.id, "order"))))


LOADERS: Mapping[str, tuple[str, Callable[[str, Path], Collection]]] = {
    "CLAP NQ": ("clapnq/annotated_data/dev", load_clapnq),
    "XQuAD en": ("xquad/xquad.en.json", load_squad),
    "XQuAD zh": ("xquad/xquad.zh.json", load_squad),
    "CMRC 2018": ("cmrc2018/squad-style-data/cmrc2018_dev.json", load_squad),
}


def _find_sentence(text: str, at: int) -> frozenset[int]:
    unit = next((u for u in split_units(text) if u.start <= at < u.end), None)
    return _list_points(text, unit.start, unit.end) if unit else frozenset()


def _find_points(text: str, sentence: str) -> frozenset[int]:
    at = text.find(sentence.strip())
    return _list_points(text, at, at + len(sentence.strip())) if at >= 0 else frozenset()


def _list_points(text: str, start: int, end: int) -> frozenset[int]:
    return frozenset(n for n in range(start, end) if not text[n].isspace())


def _digest(identifier: str, purpose: str) -> int:
    return int(sha256(f"{purpose} {identifier}".encode()).hexdigest()[:8], 16)


def select_questions(collection: Collection, split: str, sample: int) -> list[Question]:
    """Select up to `sample` questions of one half of the collection: `development` or `check`."""
    half = 0 if split == "development" else 1
    return [q for q in collection.questions if _digest(q.id, "split") % 2 == half][:sample]


async def run_question(library: Library, question: Question, graph: Graph) -> Outcome:
    """Answer one question with the graph and compare what it quotes with the gold sentences."""
    scope = _Without(library, question.document) if question.removed else library
    context = InMemoryContext(scope, question.text)
    await carry_out(context, graph)
    answered = context.report.stop_reason == ANSWERED
    quoted: Ranges = _list_quoted(library, context.report) if answered else {}
    precision, recall = _compare(quoted, question)
    baseline = _harmonic_mean(*_compare(_quote_best_passage(scope, question.text), question))
    return Outcome(question, answered, precision, recall, baseline, context.report)


class _Without(Library):
    """The library without one document."""

    def __init__(self, library: Library, name: str) -> None:
        self.documents, self.held, self.mean = library.documents, library.held, library.mean
        self.passages = [p for p in library.passages if p[0].name != name]


def _list_quoted(library: Library, report: Report) -> Ranges:
    ranges: dict[str, frozenset[int]] = {}
    for citation in report.citations:
        document = library.documents[citation.source_id]
        for start, end in _find_all(document.text, citation.quote):
            ranges[document.name] = ranges.get(document.name, frozenset()) | _list_points(document.text, start, end)
    return ranges


def _find_all(text: str, quote: str) -> Iterator[tuple[int, int]]:
    at = text.find(quote)
    if quote and at >= 0:
        yield at, at + len(quote)


def _quote_best_passage(library: Library, question: str) -> Ranges:
    hits = library.search(question, 1)
    if not hits:
        return {}
    document, span, _ = hits[0]
    terms = extract_terms(question)
    passage = document.text[span.start : span.end]
    units = [u for u in split_units(passage) if any(t.match(extract_stems(passage[u.start : u.end])) for t in terms)]
    points = (_list_points(document.text, span.start + u.start, span.start + u.end) for u in units)
    return {document.name: frozenset[int]().union(*points)}


def _compare(quoted: Ranges, question: Question) -> tuple[float, float]:
    total = sum(map(len, quoted.values()))
    right = len(quoted.get(question.document, frozenset()) & question.gold)
    return (right / total if total else 0.0, right / len(question.gold) if question.gold else 0.0)


def _harmonic_mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def compute_metrics(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return shares from 0 to 1."""
    answerable = [o for o in outcomes if o.question.gold]
    others = [o for o in outcomes if not o.question.gold]
    return {
        "precision": _mean(o.precision for o in answerable if o.answered),
        "recall": _mean(o.recall for o in answerable),
        "F1": _mean(o.f1 for o in answerable),
        "F1 of the best passage": _mean(o.baseline_f1 for o in answerable),
        "answerable, said not found": _mean(not o.answered for o in answerable),
        "no answer, said answered": _mean(o.answered for o in others),
        "questions with an answer": float(len(answerable)),
        "questions without": float(len(others)),
    }


def _mean(values: Iterable[float]) -> float:
    results = [float(v) for v in values]
    return sum(results) / len(results) if results else 0.0


async def measure(collection: Collection, options: argparse.Namespace, graph: Graph) -> list[Outcome]:
    """Answer the selected questions of a collection."""
    library = Library(list(collection.documents.items()))
    known = {uuid5(NAMES, name) for name in collection.documents}
    assert known == set(library.documents), "two documents have the same name"
    questions = select_questions(collection, options.split, options.sample)
    return [await run_question(library, question, graph) for question in questions]


def _print_table(rows: Mapping[str, Sequence[Outcome]]) -> None:
    metrics = {name: compute_metrics(outcomes) for name, outcomes in rows.items()}
    print(f"{'':28}" + "".join(f"{name:>12}" for name in metrics))
    for key in next(iter(metrics.values())):
        print(f"{key:28}" + "".join(f"{m[key]:12.2f}" for m in metrics.values()))


def _print_misses(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.f1 < 0.3 if outcome.question.gold else outcome.answered:
            answer = outcome.report.answer.text if outcome.report.answer else "-"
            kind = "answerable" if outcome.question.gold else "no answer"
            print(f"[{kind}] {outcome.question.text}\n   {outcome.report.stop_reason}: {answer}")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Score the engine without a model on gold sentences.")
    parser.add_argument("--collections", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--split", choices=("development", "check"), default="check")
    parser.add_argument("--sample", type=int, default=250, help="Maximum number of questions per collection.")
    parser.add_argument("--only", default="", help="Measure only collections whose name contains this text.")
    parser.add_argument("--graph", default="agentflow")
    parser.add_argument("--misses", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Measure every collection in the folder."""
    options = _parse_arguments()
    graph = open_registry()[options.graph]
    rows: dict[str, list[Outcome]] = {}
    for name, (path, load) in LOADERS.items():
        if options.only not in name:
            continue
        if not (options.collections / path).exists():
            print(f"left out: {name}; {options.collections / path} does not exist")
            continue
        rows[name] = asyncio.run(measure(load(name, options.collections / path), options, graph))
    if not rows:
        raise SystemExit(f"no collection was found in {options.collections}")
    _print_table(rows)
    if options.misses:
        for outcomes in rows.values():
            _print_misses(outcomes)


if __name__ == "__main__":
    main()

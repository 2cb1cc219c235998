"""Score whole reports of the engine without a model, on questions whose good answers are known.

    .venv/bin/python -m tests.bench.extractive [--graph NAME] [--folder demo|readmes] [--misses] [--all-misses]
        [--show WORDS]

Documents: `deploy/fetch-demo-docs`, and the READMEs of `frontend/node_modules` (`make setup`). Questions:
`extractive.toml` in this folder. The real graph runs with the in-memory context of `tests/graphs`: without servers, and
with plain BM25 over the same passages as the platform. `--misses` lists the questions whose gold phrase is not quoted,
without the held-out ones unless `--all-misses` is set.
"""

import argparse
import asyncio
import statistics
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from offing.core.report import Citation, Report, Sentence
from offing.sdk import Graph
from offing.services.graphs import open_registry
from tests.graphs.in_memory_context import InMemoryContext, Library, carry_out

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ANSWERED = "answered"


@dataclass(frozen=True, slots=True)
class Question:
    ask: str
    gold: tuple[tuple[str, str], ...]
    """Document, and words that it contains. Empty means that the documents do not answer the question."""
    all: bool
    """Whether every gold phrase is needed, not only one."""
    unseen: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    question: Question
    report: Report
    quoted: float
    """Share of the needed phrases that the report quotes."""
    early: float
    """Share that is in the answer or the first section."""
    turns: int
    seconds: float


def questions(folder: str) -> tuple[Question, ...]:
    """In the order of the file. Every second question is held out."""
    raw = tomllib.loads((HERE / "extractive.toml").read_text())[folder]["question"]
    return tuple(
        Question(q["ask"], tuple((d, w) for d, w in q.get("gold", [])), q.get("all", False), n % 2 == 1)
        for n, q in enumerate(raw)
    )


def library(folder: str) -> Library:
    """Return the documents of the questions with this name."""
    if folder == "demo":
        docs = ROOT / ".demo" / "docs"
        return Library.folder(docs / "fastify", docs / "undici")
    modules = ROOT / "frontend" / "node_modules"
    results = sorted([*modules.glob("*/README.md"), *modules.glob("@*/*/README.md")])
    return Library([(f.relative_to(modules).as_posix(), f.read_text()) for f in results])


def checked(library: Library, requests: Iterable[Question]) -> None:
    """Check that every gold phrase is in its document. Otherwise the documents are not those of the questions."""
    texts = {d.name: _flat(d.text) for d in library.documents.values()}
    missing = [(name, words) for q in requests for name, words in q.gold if _flat(words) not in texts.get(name, "")]
    if missing:
        raise SystemExit("Not in the documents:\n" + "\n".join(f"  {name}: {words}" for name, words in missing))


def _flat(text: str) -> str:
    return " ".join(text.replace("\n>", "\n").split())


async def outcome(library: Library, question: Question, graph: Graph) -> Outcome:
    """Run a graph once and measure the time."""
    ctx = InMemoryContext(library, question.ask)
    start = time.perf_counter()
    await carry_out(ctx, graph)
    seconds = time.perf_counter() - start - ctx.searching
    holds = partial(_holds, library, ctx.report)
    first = ctx.report.sections[0].sentences if ctx.report.sections else ()
    early = [s for s in (ctx.report.answer, *first) if s]
    return Outcome(
        question,
        ctx.report,
        _share(question, holds, ctx.report.sentences()),
        _share(question, holds, early),
        ctx.turns,
        seconds,
    )


def _share(question: Question, holds: Any, sentences: Sequence[Sentence]) -> float:
    results = [holds(sentences, name, words) for name, words in question.gold]
    if not results:
        return 0.0
    return sum(results) / len(results) if question.all else float(any(results))


def _holds(library: Library, report: Report, sentences: Sequence[Sentence], name: str, words: str) -> bool:
    numbers = {n for s in sentences for n in s.citations}
    cited = [c for c in report.citations if c.number in numbers and _name(library, c) == name]
    return any(_flat(words) in _flat(c.quote) for c in cited)


def _name(library: Library, citation: Citation) -> str:
    return library.documents[citation.source_id].name


def compute_metrics(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the shares, from 0 to 1, and the time."""
    answerable = [o for o in outcomes if o.question.gold]
    others = [o for o in outcomes if not o.question.gold]
    right = [o for o in answerable if o.quoted]
    return {
        "quoted": _mean(o.quoted for o in answerable),
        "quoted early": _mean(o.early for o in answerable),
        "said answered, where it is": _mean(o.report.stop_reason == ANSWERED for o in right),
        "said answered, without gold": _mean(o.report.stop_reason == ANSWERED for o in answerable if not o.quoted),
        "false answered, unanswerable": _mean(o.report.stop_reason == ANSWERED for o in others),
        "quotes a report": _mean(len(o.report.citations) for o in outcomes),
        "turns": _mean(o.turns for o in outcomes),
        "median ms a run": 1_000 * statistics.median(o.seconds for o in outcomes) if outcomes else 0.0,
        "longest ms a turn": max((1_000 * o.seconds / max(o.turns, 1) for o in outcomes), default=0.0),
    }


def _mean(values: Iterable[float]) -> float:
    results = [float(v) for v in values]
    return sum(results) / len(results) if results else 0.0


def _print(folder: str, outcomes: Sequence[Outcome]) -> None:
    columns = {
        f"{folder}": outcomes,
        "seen": [o for o in outcomes if not o.question.unseen],
        "unseen": [o for o in outcomes if o.question.unseen],
    }
    rows = {name: compute_metrics(some) for name, some in columns.items()}
    print(f"{'':32}" + "".join(f"{name:>10}" for name in columns))
    for key in rows[folder]:
        print(f"{key:32}" + "".join(f"{rows[name][key]:10.2f}" for name in columns))
    print(f"{'questions':32}" + "".join(f"{len(some):10}" for some in columns.values()))


def _render(report: Report) -> str:
    by_number = {c.number: c.title for c in report.citations}
    lines = [f"  [{report.status}/{report.stop_reason}] ANSWER: {report.answer.text if report.answer else '-'}"]
    for section in report.sections:
        lines.append(f"  ## {section.heading}")
        lines += [f"   - {s.text}  {[by_number[n] for n in s.citations]}" for s in section.sentences]
    return "\n".join([*lines, f"  limits: {report.limits}"])


async def measure(folder: str, options: argparse.Namespace) -> None:
    requests = [q for q in questions(folder) if options.show.lower() in q.ask.lower()]
    documents = library(folder)
    checked(documents, requests)
    graph = open_registry()[options.graph]
    outcomes = [await outcome(documents, q, graph) for q in requests]
    for o in outcomes:
        wrong = o.quoted < 1 if o.question.gold else o.report.stop_reason == ANSWERED
        asked_for = options.all_misses or (options.misses and not o.question.unseen)
        if options.show or (wrong and asked_for):
            print(f"{o.question.ask}  (quoted {o.quoted:.1f}, early {o.early:.1f})\n{_render(o.report)}\n")
    _print(folder, outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="agentflow", choices=sorted(open_registry()))
    parser.add_argument("--folder", choices=("demo", "readmes"))
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--all-misses", action="store_true")
    parser.add_argument("--show", default="", metavar="WORDS", help="only these questions, with reports")
    options = parser.parse_args()
    for folder in [options.folder] if options.folder else ["demo", "readmes"]:
        asyncio.run(measure(folder, options))


if __name__ == "__main__":
    main()

"""Compare two reports on each of several questions with the judge of `offing evaluate`, each pair in both orders.

    .venv/bin/python -m tests.bench.report_pairs FOLDER --judge litellm:PROVIDER/MODEL [--names before after]

`offing evaluate` compares configurations of one version. This compares reports that different versions, or other
products, have written: every folder in FOLDER is a question, with `question.txt` and a Markdown file for each name. The
judge sees the question and the two texts, and neither the names nor the versions. A report wins a pair if both orders
prefer it, or one order prefers it and the other finds a tie.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from offing.core.model import EngineConfig, parse_engine
from offing.scorers.judge import MAX_REPORT_CHARS, check_judge_engine
from offing.scorers.pairwise_judge import PairJudgment, ReportPair, judge_pair
from tests.models.builders import Ledger


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the two reports that are compared."""

    name: str
    question: str
    reports: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both judgments of a pair."""

    case: Case
    judgments: tuple[PairJudgment, PairJudgment]
    """The judgment with the reports in their order, and that with the second report first."""


def read_cases(folder: Path, names: tuple[str, str]) -> list[Case]:
    """Read the questions of a folder in the order of their names. Raises FileNotFoundError if a text is missing."""
    return [
        Case(
            one.name,
            (one / "question.txt").read_text("utf-8").strip(),
            ((one / f"{names[0]}.md").read_text("utf-8"), (one / f"{names[1]}.md").read_text("utf-8")),
        )
        for one in sorted(folder.iterdir())
        if one.is_dir()
    ]


async def compare(case: Case, choice: EngineConfig) -> Comparison:
    first, second = (text[:MAX_REPORT_CHARS] for text in case.reports)
    pair = ReportPair(question=case.question, first=first, second=second)
    swapped = ReportPair(question=case.question, first=second, second=first)
    judgments = await asyncio.gather(*(judge_pair(one, choice, 0, Ledger()) for one in (pair, swapped)))
    return Comparison(case, (judgments[0], judgments[1]))


def find_winner(verdict: str | None, swapped_verdict: str | None) -> int | None:
    """Return the place of the better report, 0 or 1. `None` means a tie, or that a judgment failed."""
    if verdict is None or swapped_verdict is None:
        return None
    points = {"first": 1, "tie": 0, "second": -1}
    balance = points[verdict] - points[swapped_verdict]
    return None if balance == 0 else 0 if balance > 0 else 1


def render(comparisons: Iterable[Comparison], names: tuple[str, str]) -> str:
    """Return a Markdown table with a row for each question and the number of wins below it."""
    lines, wins = [f"| question | winner | {names[0]} first | {names[1]} first |", "|---|---|---|---|"], Counter[str]()
    for one in comparisons:
        winner = find_winner(*(judgment.verdict for judgment in one.judgments))
        name = "tie" if winner is None else names[winner]
        wins[name] += 1
        reasons = (f"{judgment.verdict or 'failed'}: {judgment.reason}" for judgment in one.judgments)
        lines.append(f"| {one.case.name} | {name} | {' | '.join(reasons)} |")
    return "\n".join([*lines, "", ", ".join(f"{name}: {wins[name]}" for name in (*names, "tie"))])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--judge", required=True, type=parse_engine)
    parser.add_argument("--names", nargs=2, default=("before", "after"))
    arguments = parser.parse_args()
    names = (arguments.names[0], arguments.names[1])
    check_judge_engine(arguments.judge, "--judge")
    cases = read_cases(arguments.folder, names)
    print(render(await asyncio.gather(*(compare(case, arguments.judge) for case in cases)), names))


if __name__ == "__main__":
    asyncio.run(main())

"""Compare two reports on each of several questions with the judge of `offing evaluate`, each pair in both orders.

    .venv/bin/python -m tests.bench.report_pairs FOLDER --judge litellm:PROVIDER/MODEL [--names before after]

`offing evaluate` compares configurations of one version. This compares reports that different versions, or other
products, have written: every folder in FOLDER is a question, with `question.txt` and a Markdown file for each name. The
judge sees the question and the two texts, and neither the names nor the versions. A win needs the same verdict in both
orders, as in `offing evaluate`; a pair with a failed judgment is counted apart.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from offing.core.model import EngineConfig, parse_engine
from offing.scorers.judge import MAX_REPORT_CHARS, check_judge_engine
from offing.scorers.pairwise_judge import PairJudgment, ReportPair, judge_pair
from offing.services.experiment_summary import JudgeSummary, summarize_judgments
from offing.storage.experiments import JudgmentRow
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


def list_rows(comparison: Comparison) -> tuple[JudgmentRow, ...]:
    """Return the judgments of a pair as `offing evaluate` stores them: the second report is the compared one."""
    task_id = uuid5(NAMESPACE_URL, comparison.case.name)
    return tuple(
        JudgmentRow(1, task_id, is_swapped, one.verdict, one.reason, one.model, one.usage.tokens, 0.0)
        for is_swapped, one in zip((False, True), comparison.judgments, strict=True)
    )


def describe_outcome(summary: JudgeSummary, names: tuple[str, str]) -> str:
    """Say which report of a single pair won."""
    outcomes = {names[0]: summary.losses, names[1]: summary.wins, "tie": summary.ties, "failed": summary.failed}
    return next(name for name, count in outcomes.items() if count)


def render(comparisons: Sequence[Comparison], names: tuple[str, str]) -> str:
    """Return a Markdown table with a row for each question and the number of wins below it."""
    lines = [f"| question | winner | {names[0]} first | {names[1]} first |", "|---|---|---|---|"]
    for one in comparisons:
        outcome = describe_outcome(summarize_judgments(names[1], list_rows(one)), names)
        reasons = (f"{judgment.verdict or 'failed'}: {judgment.reason}" for judgment in one.judgments)
        lines.append(f"| {one.case.name} | {outcome} | {' | '.join(reasons)} |")
    total = summarize_judgments(names[1], [row for one in comparisons for row in list_rows(one)])
    counts = f"{names[0]}: {total.losses}, {names[1]}: {total.wins}, tie: {total.ties}, failed: {total.failed}"
    return "\n".join([*lines, "", counts])


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

"""What the two orders of a pair of reports say together."""

from typing import Literal

import pytest

from offing.core.model import Usage
from offing.scorers.pairwise_judge import PairJudgment
from tests.bench.report_pairs import Case, Comparison, render

Word = Literal["first", "second", "tie"]


@pytest.mark.parametrize(
    ("verdict", "swapped", "winner"),
    [
        ("first", "second", "before"),
        ("second", "first", "after"),
        ("first", "tie", "tie"),
        ("tie", "first", "tie"),
        ("first", "first", "tie"),
        ("tie", "tie", "tie"),
        ("first", None, "failed"),
    ],
)
def test_a_report_wins_if_both_orders_prefer_it(verdict: Word, swapped: Word | None, winner: str) -> None:
    one, other = (PairJudgment(word, "", "m", Usage()) for word in (verdict, swapped))
    table = render([Comparison(Case("q", "Why?", ("", "")), (one, other))], ("before", "after"))
    assert f"| q | {winner} |" in table
    assert f"{winner}: 1" in table

"""What the two orders of a pair of reports say together."""

import pytest

from tests.bench.report_pairs import find_winner


@pytest.mark.parametrize(
    ("verdict", "swapped", "winner"),
    [
        ("first", "second", 0),
        ("second", "first", 1),
        ("first", "tie", 0),
        ("tie", "first", 1),
        ("first", "first", None),
        ("tie", "tie", None),
        ("first", None, None),
    ],
)
def test_a_report_wins_if_the_orders_together_prefer_it(verdict: str, swapped: str | None, winner: int | None) -> None:
    assert find_winner(verdict, swapped) == winner

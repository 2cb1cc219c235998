"""Usage over turns, and excerpts of matches."""

from decimal import Decimal

from offing.services.run_views import UsagePoint, accumulate_usage, thin_points
from offing.storage.run_usage import TurnUsage
from offing.storage.step_search import MAX_EXCERPT_CHARS, cut_excerpt


def test_usage_grows_from_turn_to_turn() -> None:
    turns = [TurnUsage(0, 10, Decimal("0.1")), TurnUsage(3, 5, Decimal("0.2"))]
    assert accumulate_usage(turns) == (UsagePoint(0, 10, Decimal("0.1")), UsagePoint(3, 15, Decimal("0.3")))
    assert accumulate_usage([]) == ()


def test_many_points_are_thinned_and_keep_both_ends() -> None:
    points = [UsagePoint(turn, turn, Decimal(0)) for turn in range(2048)]
    thinned = thin_points(points)
    assert len(thinned) == 200
    assert (thinned[0].turn, thinned[-1].turn) == (0, 2047)
    assert [p.turn for p in thinned] == sorted({p.turn for p in thinned})
    assert thin_points(points[:200]) == tuple(points[:200])


def test_an_excerpt_is_one_line_around_the_match() -> None:
    assert cut_excerpt("one\n  needle here", "Needle") == "one needle here"
    long = cut_excerpt("a " * 500 + "needle" + " b" * 500, "needle")
    assert long.startswith("…")
    assert long.endswith("…")
    assert "needle" in long
    assert len(long) == MAX_EXCERPT_CHARS + 2

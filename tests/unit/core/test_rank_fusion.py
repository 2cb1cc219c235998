"""Ranked lists are fused by their ranks alone."""

import pytest

from offing.core.rank_fusion import fuse_rankings


def test_agreement_of_two_rankings_outweighs_one_first_place() -> None:
    fused = fuse_rankings([["a", "b"], ["c", "b"]])
    assert [key for key, _ in fused] == ["b", "a", "c"]
    assert fused[0][1] == pytest.approx(2 / 62)


def test_a_key_that_a_ranking_repeats_counts_once_at_its_best_rank() -> None:
    assert fuse_rankings([["a", "a", "b"]]) == [("a", 1 / 61), ("b", 1 / 62)]


def test_a_weight_multiplies_the_part_of_its_ranking() -> None:
    assert fuse_rankings([["a"], ["b"]], [1, 2]) == [("b", 2 / 61), ("a", 1 / 61)]


def test_one_ranking_keeps_its_order_and_none_gives_nothing() -> None:
    assert [key for key, _ in fuse_rankings([["c", "a", "b"]])] == ["c", "a", "b"]
    assert fuse_rankings([]) == []

"""What is kept of finished requests, and when it is found."""

import torch

from offing_engine.kept import Kept, Layers


def layers(length: int, mark: float = 0.0) -> Layers:
    return [(torch.full((1, length, 4), mark), torch.zeros(1, length, 4))]


SIZE = 2 * 4 * 4
"""Bytes a token of `layers`."""


def test_the_longest_beginning_is_found_and_leaves_a_token_to_read():
    kept = Kept(10_000)
    kept.put([1, 2], layers(2))
    kept.put([1, 2, 3, 4], layers(4))
    found = kept.longest([1, 2, 3, 4, 5])
    assert found is not None
    assert found.length == 4
    shorter = kept.longest([1, 2, 3, 4])
    assert shorter is not None
    assert shorter.length == 2
    assert kept.longest([1]) is None


def test_other_ids_are_never_taken_for_these():
    kept = Kept(10_000)
    kept.put([1, 2, 3], layers(3))
    assert kept.longest([1, 2, 4, 5]) is None
    assert kept.longest([2, 1, 2, 3]) is None


def test_what_was_used_longest_ago_goes_first():
    kept = Kept(7 * SIZE)
    kept.put([1, 1, 1], layers(3))
    kept.put([2, 2, 2], layers(3))
    assert kept.longest([1, 1, 1, 9]) is not None
    kept.put([3, 3, 3], layers(3))
    assert kept.longest([2, 2, 2, 9]) is None
    assert kept.longest([1, 1, 1, 9]) is not None
    assert kept.longest([3, 3, 3, 9]) is not None


def test_the_same_ids_are_kept_once_and_what_is_too_large_not_at_all():
    kept = Kept(7 * SIZE)
    for mark in range(5):
        kept.put([1, 2, 3], layers(3, float(mark)))
    kept.put([4, 4, 4], layers(3))
    found = kept.longest([1, 2, 3, 4])
    assert found is not None
    assert found.layers[0][0].max() == 4
    kept.put(range(9), layers(9))
    assert kept.longest(range(10)) is None

"""What is kept of finished requests, and when it is found."""

import torch

from offing_engine.prefix_cache import LayerTensors, PrefixCache


def layers(length: int, mark: float = 0.0) -> LayerTensors:
    return [(torch.full((1, length, 4), mark), torch.zeros(1, length, 4))]


SIZE = 2 * 4 * 4
"""Bytes a token of `layers`."""


def test_the_longest_beginning_is_found_and_leaves_a_token_to_read():
    stored = PrefixCache(10_000)
    stored.put([1, 2], layers(2))
    stored.put([1, 2, 3, 4], layers(4))
    longest = stored.find_longest([1, 2, 3, 4, 5])
    assert longest is not None
    assert longest.length == 4
    shorter = stored.find_longest([1, 2, 3, 4])
    assert shorter is not None
    assert shorter.length == 2
    assert stored.find_longest([1]) is None


def test_other_ids_are_never_taken_for_these():
    stored = PrefixCache(10_000)
    stored.put([1, 2, 3], layers(3))
    assert stored.find_longest([1, 2, 4, 5]) is None
    assert stored.find_longest([2, 1, 2, 3]) is None


def test_what_was_used_longest_ago_goes_first():
    stored = PrefixCache(7 * SIZE)
    stored.put([1, 1, 1], layers(3))
    stored.put([2, 2, 2], layers(3))
    assert stored.find_longest([1, 1, 1, 9]) is not None
    stored.put([3, 3, 3], layers(3))
    assert stored.find_longest([2, 2, 2, 9]) is None
    assert stored.find_longest([1, 1, 1, 9]) is not None
    assert stored.find_longest([3, 3, 3, 9]) is not None


def test_the_same_ids_are_kept_once_and_what_is_too_large_not_at_all():
    stored = PrefixCache(7 * SIZE)
    for mark in range(5):
        stored.put([1, 2, 3], layers(3, float(mark)))
    stored.put([4, 4, 4], layers(3))
    longest = stored.find_longest([1, 2, 3, 4])
    assert longest is not None
    assert longest.layers[0][0].max() == 4
    stored.put(range(9), layers(9))
    assert stored.find_longest(range(10)) is None

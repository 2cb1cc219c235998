"""When a program that ended is started again."""

import pytest

from offing.local.supervisor import RESTARTS_A_MINUTE, restart_delay


def test_the_first_end_is_answered_at_once() -> None:
    assert restart_delay([100.0], now=100.0) == 0


@pytest.mark.parametrize(("ends", "delay"), [(2, 0.5), (3, 1.0), (4, 2.0), (5, 4.0)])
def test_each_further_end_within_a_minute_doubles_the_wait(ends: int, delay: float) -> None:
    assert restart_delay([100.0] * ends, now=100.0) == delay


def test_too_many_ends_within_a_minute_are_given_up() -> None:
    assert restart_delay([100.0] * (RESTARTS_A_MINUTE + 1), now=100.0) is None


def test_ends_longer_ago_than_a_minute_are_forgotten() -> None:
    assert restart_delay([0.0] * 20 + [100.0], now=100.0) == 0

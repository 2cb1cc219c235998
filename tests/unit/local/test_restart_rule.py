"""When a program that ended is started again."""

import pytest

from offing.local.supervisor import MAX_RESTARTS, restart_delay


def test_the_first_end_is_answered_at_once() -> None:
    assert restart_delay(1) == 0


@pytest.mark.parametrize(("ends", "delay"), [(2, 0.5), (3, 1.0), (4, 2.0), (5, 4.0)])
def test_each_further_end_in_a_row_doubles_the_wait(ends: int, delay: float) -> None:
    assert restart_delay(ends) == delay


def test_too_many_ends_in_a_row_are_given_up() -> None:
    assert restart_delay(MAX_RESTARTS + 1) is None

"""Estimates of the time that is left, and how a terminal says them."""

import pytest

from offing.core.time_left import describe_time_left, estimate_seconds_left


def test_the_remaining_steps_take_as_long_as_the_last_ones() -> None:
    assert estimate_seconds_left([10.0, 20.0], 6) == 90.0


def test_a_job_that_is_past_its_plan_has_no_time_left() -> None:
    assert estimate_seconds_left([10.0], -2) == 0.0


@pytest.mark.parametrize(("recent", "remaining"), [([], 5), ([3.0], None)])
def test_without_a_finished_step_or_a_plan_nothing_is_estimated(recent: list[float], remaining: int | None) -> None:
    assert estimate_seconds_left(recent, remaining) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *[(None, ""), (12, "less than a minute left"), (61, "about 1 minute left")],
        *[(360, "about 6 minutes left"), (9_000, "about 2.5 hours left")],
    ],
)
def test_the_time_left_is_said_in_words(seconds: float | None, text: str) -> None:
    assert describe_time_left(seconds) == text

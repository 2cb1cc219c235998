"""Times of schedules: their fields, time zones, clock changes and ends."""

from datetime import UTC, datetime, timedelta

import pytest

from offing.core.cron_schedule import find_next_time
from offing.core.errors import InvalidInput

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""A Monday."""


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", NOON + timedelta(minutes=1)),
        ("*/15 * * * *", NOON + timedelta(minutes=15)),
        ("0 12 * * *", NOON + timedelta(days=1)),
        ("30 9 * * MON", datetime(2026, 3, 9, 9, 30, tzinfo=UTC)),
        ("0 0 1 1 *", datetime(2027, 1, 1, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2028, 2, 29, tzinfo=UTC)),
    ],
)
def test_the_next_time_is_after_the_moment(schedule: str, expected: datetime) -> None:
    assert find_next_time(schedule, None, NOON) == expected


def test_a_schedule_is_read_in_its_time_zone() -> None:
    assert find_next_time("0 9 * * *", "Europe/Oslo", NOON) == datetime(2026, 3, 3, 8, tzinfo=UTC)
    summer = datetime(2026, 7, 1, tzinfo=UTC)
    assert find_next_time("0 9 * * *", "Europe/Oslo", summer) == datetime(2026, 7, 1, 7, tzinfo=UTC)


def test_a_time_that_the_clock_skips_comes_after_the_change_and_one_that_it_repeats_comes_once() -> None:
    skipped = find_next_time("30 2 * * *", "Europe/Oslo", datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert skipped == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    repeated = find_next_time("30 2 * * *", "Europe/Oslo", datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert repeated is not None
    following = find_next_time("30 2 * * *", "Europe/Oslo", repeated)
    assert following is not None
    assert following - repeated > timedelta(hours=23)


def test_no_time_is_left_after_the_end() -> None:
    assert find_next_time("0 * * * *", None, NOON, NOON + timedelta(minutes=59)) is None
    assert find_next_time("0 * * * *", None, NOON, NOON + timedelta(minutes=60)) == NOON + timedelta(hours=1)


@pytest.mark.parametrize(
    "schedule", ["", "* * * *", "* * * * * *", "61 * * * *", "@daily", "0 0 30 2 *", "a b c d e", "*/0 * * * *"]
)
def test_other_schedules_are_rejected_by_their_name(schedule: str) -> None:
    with pytest.raises(InvalidInput, match="schedule"):
        find_next_time(schedule, None, NOON)


@pytest.mark.parametrize("timezone", ["", "Mars/Base", "../etc/passwd", "Europe", "\0"])
def test_an_unknown_time_zone_is_rejected_by_its_name(timezone: str) -> None:
    with pytest.raises(InvalidInput, match="timezone"):
        find_next_time("* * * * *", timezone, NOON)

"""The back-off policy, number by number."""

from datetime import UTC, datetime

import pytest

from offing.core.model import RETRYABLE_FAILURES, FailureKind
from offing.models.retry import RetryPolicy, parse_retry_after

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
POLICY = RetryPolicy(max_attempts=5, base_seconds=1.0, max_wait_seconds=4.0, max_retry_after_seconds=30.0)


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in RETRYABLE_FAILURES])
def test_permanent_failures_get_no_second_try(kind: FailureKind) -> None:
    assert POLICY.next_wait_seconds(kind, 1, None, 0.5) is None


def test_waits_double_up_to_the_cap_and_end() -> None:
    waits = [POLICY.next_wait_seconds(FailureKind.OVERLOADED, failed, None, 0.5) for failed in range(1, 6)]
    assert waits == [0.5, 1.0, 2.0, 2.0, None]


def test_jitter_is_full() -> None:
    assert POLICY.next_wait_seconds(FailureKind.TIMEOUT, 3, None, 0.0) == 0.0
    assert POLICY.next_wait_seconds(FailureKind.TIMEOUT, 3, None, 0.999) == pytest.approx(3.996)


def test_a_provider_s_word_is_a_lower_bound_and_too_long_a_one_ends_it() -> None:
    assert POLICY.next_wait_seconds(FailureKind.RATE_LIMITED, 1, 7.0, 0.25) == 7.25
    assert POLICY.next_wait_seconds(FailureKind.RATE_LIMITED, 1, 31.0, 0.25) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds

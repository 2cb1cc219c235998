"""Limits of readers without an account, and what keeps their tokens out of logs."""

import pytest

from offing.api.problems import ProblemError
from offing.api.public_limits import MAX_TRACKED_ADDRESSES, PublicLimits
from offing.api.shared_headers import hide_token


def test_an_allowance_refills() -> None:
    now = [0.0]
    limits = PublicLimits(burst=2, per_second=0.5, clock=lambda: now[0])
    for _ in range(2):
        with limits.admit("192.0.2.1"):
            pass
    with pytest.raises(ProblemError) as rejected, limits.admit("192.0.2.1"):
        pass
    assert rejected.value.status_code == 429
    with limits.admit("192.0.2.2"):
        pass  # another reader
    now[0] = 2.0
    with limits.admit("192.0.2.1"):
        pass


def test_a_network_of_ipv6_has_one_allowance() -> None:
    limits = PublicLimits(burst=1, per_second=0.001)
    with limits.admit("2001:db8::1"):
        pass
    with pytest.raises(ProblemError), limits.admit("2001:db8::ffff"):
        pass


def test_few_requests_run_at_the_same_time() -> None:
    limits = PublicLimits(max_concurrent=1)
    with limits.admit("a"), pytest.raises(ProblemError), limits.admit("b"):
        pass
    with limits.admit("b"):
        pass


def test_the_memory_of_the_limits_is_bounded() -> None:
    limits = PublicLimits()
    for number in range(MAX_TRACKED_ADDRESSES + 100):
        with limits.admit(f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"):
            pass
    assert len(limits._allowances) <= MAX_TRACKED_ADDRESSES  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        ("/api/v1/shared/ofs_x", "/api/v1/shared/[token]"),
        ("/api/v1/shared/ofs_x/export", "/api/v1/shared/[token]/export"),
        ("/shared/ofs_x", "/shared/[token]"),
        ("/api/v1/shares", "/api/v1/shares"),
        ("/runs/shared/x", "/runs/shared/x"),
    ],
)
def test_a_log_has_no_token(path: str, logged: str) -> None:
    assert hide_token(path) == logged

"""Limit the requests of readers without an account, per network address and at the same time.

The counts are kept in this process. Behind a proxy all readers have the proxy's address and share its allowance, which
is large enough for people and too small to load the database. A token cannot be guessed at any rate.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address, ip_network

from offing.api.problems import ProblemError

MAX_TRACKED_ADDRESSES = 10_000


class PublicLimits:
    """An allowance of requests per address, which refills steadily, and a maximum of requests at the same time."""

    def __init__(
        self,
        *,
        burst: int = 60,
        per_second: float = 4.0,
        max_concurrent: int = 16,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst, self._per_second, self._max_concurrent, self._clock = burst, per_second, max_concurrent, clock
        self._allowances: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left of each address, and when it was computed, least recently used first."""
        self._running = 0

    @contextmanager
    def admit(self, address: str, cost: int = 1) -> Generator[None]:
        """Let one request in. Raises ProblemError with status 429 beyond the limits."""
        self._spend(_group_address(address), cost)
        if self._running >= self._max_concurrent:
            raise _too_many_requests_error(1)
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    def _spend(self, key: str, cost: int) -> None:
        now = self._clock()
        left, since = self._allowances.pop(key, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._per_second)
        if len(self._allowances) >= MAX_TRACKED_ADDRESSES:
            self._allowances.popitem(last=False)
        self._allowances[key] = (left - cost if left >= cost else left, now)
        if left < cost:
            raise _too_many_requests_error(int((cost - left) / self._per_second) + 1)


def _group_address(text: str) -> str:
    """Return the network that one reader controls: an IPv4 address, or the first 64 bits of an IPv6 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return text
    return str(ip_network((address, 64), strict=False)) if isinstance(address, IPv6Address) else text


def _too_many_requests_error(seconds: int) -> ProblemError:
    return ProblemError(
        429,
        "too_many_requests",
        "There are too many requests for shared reports.",
        "Try again in a few seconds.",
        headers={"Retry-After": str(seconds)},
    )

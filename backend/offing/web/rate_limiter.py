"""Limit the concurrent requests and the requests per minute of this process to each site, and respect Retry-After.

A request beyond the limit is rejected with the time to wait, so that a run can do something else.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import ceil
from typing import TypeVar

from offing.web.url import InvalidUrl

T = TypeVar("T")

WINDOW_SECONDS = 60.0
MAX_RETRY_AFTER_SECONDS = 3_600.0
"""Maximum seconds of a Retry-After that are respected."""
MAX_TRACKED_SITES = 1_000
"""Maximum number of sites that are tracked at once."""


@dataclass(slots=True)
class _SiteState:
    slots: asyncio.Semaphore
    request_times: deque[float] = field(default_factory=deque[float])
    """Times of requests within the last minute."""
    not_before: float = 0.0


@dataclass(slots=True)
class SiteRateLimiter:
    """A rate limiter per site. Use one per process."""

    max_concurrent: int = 4
    max_per_minute: int = 60
    exempt_sites: frozenset[str] = frozenset()
    """`host:port` of sites without limits."""
    clock: Callable[[], float] = time.monotonic
    _sites: dict[str, _SiteState] = field(default_factory=dict[str, _SiteState], init=False)

    async def run(self, authority: str, request: Callable[[], Awaitable[T]]) -> T | InvalidUrl:
        """Run `request` within the limits of the site (`host:port`).

        It waits only for a concurrent request to end.
        """
        if authority in self.exempt_sites:
            return await request()
        site = self._get_state(authority)
        async with site.slots:
            if problem := self._find_problem(site):
                return InvalidUrl(problem)
            site.request_times.append(self.clock())
            return await request()

    def set_retry_after(self, authority: str, retry_after: str) -> None:
        """Record a site's Retry-After in seconds. Dates are ignored."""
        if retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 10:
            self._get_state(authority).not_before = self.clock() + min(float(retry_after), MAX_RETRY_AFTER_SECONDS)

    def _get_state(self, authority: str) -> _SiteState:
        if authority not in self._sites:
            if len(self._sites) >= MAX_TRACKED_SITES:
                self._sites.pop(next(iter(self._sites)))
            self._sites[authority] = _SiteState(asyncio.Semaphore(self.max_concurrent))
        return self._sites[authority]

    def _find_problem(self, state: _SiteState) -> str:
        """Return why the site may not be requested now. Empty if it may."""
        now = self.clock()
        while state.request_times and state.request_times[0] <= now - WINDOW_SECONDS:
            state.request_times.popleft()
        if state.not_before > now:
            return f"The site asks to be left alone for {ceil(state.not_before - now)} more seconds."
        if len(state.request_times) >= self.max_per_minute:
            wait = ceil(state.request_times[0] + WINDOW_SECONDS - now)
            return (
                f"The site was asked {self.max_per_minute} times within a minute. Wait {wait} seconds, or read "
                f"elsewhere."
            )
        return ""

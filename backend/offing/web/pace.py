"""How often one site is asked by this process: so many requests at once, so many a minute, and not before it says.

The only home of these limits. What is too much is refused with how long to wait, so that a run does something else.
Knows no HTTP but the seconds of a Retry-After.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import ceil
from typing import TypeVar

from offing.web.url import Refused

T = TypeVar("T")

MINUTE = 60.0
LONGEST_WAIT = 3_600.0
"""Seconds of a Retry-After that are believed."""
MOST_SITES = 1_000
"""That are remembered at once."""


@dataclass(slots=True)
class _Site:
    room: asyncio.Semaphore
    asked: deque[float] = field(default_factory=deque[float])
    """When, within the last minute."""
    not_before: float = 0.0


@dataclass(slots=True)
class Pace:
    """Use one for a process."""

    at_once: int = 4
    a_minute: int = 60
    exempt: frozenset[str] = frozenset()
    """`host:port` of places that may be asked as often as one likes."""
    clock: Callable[[], float] = time.monotonic
    _sites: dict[str, _Site] = field(default_factory=dict[str, _Site], init=False)

    async def paced(self, place: str, work: Callable[[], Awaitable[T]]) -> T | Refused:
        """`work`, when it is this place's turn (`host:port`). Waits for room, and for nothing else."""
        if place in self.exempt:
            return await work()
        site = self._site(place)
        async with site.room:
            if problem := self._problem(site):
                return Refused(problem)
            site.asked.append(self.clock())
            return await work()

    def told(self, place: str, retry_after: str) -> None:
        """A site has said that it is to be left alone for so many seconds. Dates are not read."""
        if retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 10:
            self._site(place).not_before = self.clock() + min(float(retry_after), LONGEST_WAIT)

    def _site(self, place: str) -> _Site:
        if place not in self._sites:
            if len(self._sites) >= MOST_SITES:
                self._sites.pop(next(iter(self._sites)))
            self._sites[place] = _Site(asyncio.Semaphore(self.at_once))
        return self._sites[place]

    def _problem(self, site: _Site) -> str:
        """Why it may not be asked now. Empty: it may."""
        now = self.clock()
        while site.asked and site.asked[0] <= now - MINUTE:
            site.asked.popleft()
        if site.not_before > now:
            return f"The site asks to be left alone for {ceil(site.not_before - now)} more seconds."
        if len(site.asked) >= self.a_minute:
            wait = ceil(site.asked[0] + MINUTE - now)
            return f"The site was asked {self.a_minute} times within a minute. Wait {wait} seconds, or read elsewhere."
        return ""

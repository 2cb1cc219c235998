"""How often a site is asked: a maximum at once, a maximum a minute, and not before it says."""

import asyncio

import pytest

from offing.web.rate_limiter import MAX_TRACKED_SITES, SiteRateLimiter
from offing.web.url import InvalidUrl


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def page() -> str:
    return "page"


async def test_a_site_gets_a_maximum_of_requests_per_minute_and_others_are_not_delayed() -> None:
    clock = Clock()
    pace = SiteRateLimiter(max_per_minute=2, clock=clock)
    assert [await pace.run("a:443", page) for _ in range(2)] == ["page", "page"]
    clock.now += 20
    assert await pace.run("a:443", page) == InvalidUrl(
        "The site was asked 2 times within a minute. Wait 40 seconds, or read elsewhere."
    )
    assert await pace.run("b:443", page) == "page"
    clock.now += 40
    assert await pace.run("a:443", page) == "page"


async def test_the_number_of_concurrent_requests_is_limited() -> None:
    inside, most, go = 0, 0, asyncio.Event()

    async def work() -> str:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await go.wait()
        inside -= 1
        return "page"

    pace = SiteRateLimiter(max_concurrent=3)
    calls = [asyncio.create_task(pace.run("a:443", work)) for _ in range(9)]
    while inside < 3:  # noqa: ASYNC110  # others count it
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert most == 3
    go.set()
    assert await asyncio.gather(*calls) == ["page"] * 9
    assert most == 3


@pytest.mark.parametrize(
    ("message", "seconds"), [("30", 30), ("999999", 3600), ("0", 0), ("-5", 0), ("soon", 0), ("9" * 40, 0), ("", 0)]
)
async def test_a_site_that_asks_to_be_left_alone_is(message: str, seconds: int) -> None:
    clock = Clock()
    pace = SiteRateLimiter(clock=clock)
    pace.set_retry_after("a:443", message)
    expected = InvalidUrl(f"The site asks to be left alone for {seconds} more seconds.") if seconds else "page"
    assert await pace.run("a:443", page) == expected
    clock.now += seconds
    assert await pace.run("a:443", page) == "page"


async def test_what_the_operator_exempts_is_asked_as_often_as_one_likes() -> None:
    pace = SiteRateLimiter(max_per_minute=1, exempt_sites=frozenset({"wiki:443"}))
    assert [await pace.run("wiki:443", page) for _ in range(3)] == ["page"] * 3


async def test_it_does_not_remember_without_end() -> None:
    pace = SiteRateLimiter(max_per_minute=1)
    for number in range(MAX_TRACKED_SITES + 1):
        await pace.run(f"{number}:443", page)
    assert await pace.run("0:443", page) == "page"
    assert isinstance(await pace.run(f"{MAX_TRACKED_SITES}:443", page), InvalidUrl)

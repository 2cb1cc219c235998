"""How often a site is asked: so many at once, so many a minute, and not before it says."""

import asyncio

import pytest

from offing.web.pace import MOST_SITES, Pace
from offing.web.url import Refused


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def page() -> str:
    return "page"


async def test_a_site_is_asked_so_many_times_a_minute_and_others_are_not_held_up() -> None:
    clock = Clock()
    pace = Pace(a_minute=2, clock=clock)
    assert [await pace.paced("a:443", page) for _ in range(2)] == ["page", "page"]
    clock.now += 20
    assert await pace.paced("a:443", page) == Refused(
        "The site was asked 2 times within a minute. Wait 40 seconds, or read elsewhere."
    )
    assert await pace.paced("b:443", page) == "page"
    clock.now += 40
    assert await pace.paced("a:443", page) == "page"


async def test_so_many_at_once() -> None:
    inside, most, go = 0, 0, asyncio.Event()

    async def work() -> str:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await go.wait()
        inside -= 1
        return "page"

    pace = Pace(at_once=3)
    calls = [asyncio.create_task(pace.paced("a:443", work)) for _ in range(9)]
    while inside < 3:  # noqa: ASYNC110  # others count it
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert most == 3
    go.set()
    assert await asyncio.gather(*calls) == ["page"] * 9
    assert most == 3


@pytest.mark.parametrize(
    ("said", "seconds"), [("30", 30), ("999999", 3600), ("0", 0), ("-5", 0), ("soon", 0), ("9" * 40, 0), ("", 0)]
)
async def test_a_site_that_asks_to_be_left_alone_is(said: str, seconds: int) -> None:
    clock = Clock()
    pace = Pace(clock=clock)
    pace.told("a:443", said)
    wanted = Refused(f"The site asks to be left alone for {seconds} more seconds.") if seconds else "page"
    assert await pace.paced("a:443", page) == wanted
    clock.now += seconds
    assert await pace.paced("a:443", page) == "page"


async def test_what_the_operator_exempts_is_asked_as_often_as_one_likes() -> None:
    pace = Pace(a_minute=1, exempt=frozenset({"wiki:443"}))
    assert [await pace.paced("wiki:443", page) for _ in range(3)] == ["page"] * 3


async def test_it_does_not_remember_without_end() -> None:
    pace = Pace(a_minute=1)
    for number in range(MOST_SITES + 1):
        await pace.paced(f"{number}:443", page)
    assert await pace.paced("0:443", page) == "page"
    assert isinstance(await pace.paced(f"{MOST_SITES}:443", page), Refused)

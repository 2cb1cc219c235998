"""A site that asks to be left alone, over a real socket."""

from dataclasses import replace

from offing.web.fetch import Fetched
from offing.web.pace import Pace
from offing.web.url import Refused
from tests.web.site import Reply, running


async def test_a_site_that_says_retry_after_is_not_asked_before() -> None:
    async with running() as site, replace(site.fetcher(), pace=Pace()) as web:
        site.pages = {
            "/": Reply(b"<p>here</p>"),
            "/busy": Reply(status="429 Too Many Requests", headers={"Retry-After": "120"}),
        }
        assert isinstance(await web.fetch(f"{site.url}/"), Fetched)
        assert await web.fetch(f"{site.url}/busy") == Refused("The server answers with status 429.")
        refused = await web.fetch(f"{site.url}/")
        assert isinstance(refused, Refused)
        assert refused.problem.startswith("The site asks to be left alone for 1")
        assert len(site.asked) == 2

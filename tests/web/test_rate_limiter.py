"""A site that asks to be left alone, over a real socket."""

from dataclasses import replace

from offing.web.fetch import FetchedPage
from offing.web.rate_limiter import SiteRateLimiter
from offing.web.url import InvalidUrl
from tests.web.site import Reply, running


async def test_a_site_that_says_retry_after_is_not_asked_before() -> None:
    async with running() as site, replace(site.fetcher(), rate_limiter=SiteRateLimiter()) as web:
        site.pages = {
            "/": Reply(b"<p>here</p>"),
            "/busy": Reply(status="429 Too Many Requests", headers={"Retry-After": "120"}),
        }
        assert isinstance(await web.fetch(f"{site.url}/"), FetchedPage)
        assert await web.fetch(f"{site.url}/busy") == InvalidUrl("The server answers with status 429.")
        rejected = await web.fetch(f"{site.url}/")
        assert isinstance(rejected, InvalidUrl)
        assert rejected.problem.startswith("The site asks to be left alone for 1")
        assert len(site.requests) == 2

"""Fetching over real sockets: what arrives, what is rejected, and that nobody reaches what is not public."""

import gzip
from collections.abc import AsyncGenerator

import pytest

from offing.web.fetch import FetchedPage, FetchLimits
from offing.web.url import InvalidUrl
from tests.unit.web.addresses import GOOD, LITERALS, METADATA, PARSERS, SMUGGLES
from tests.web.site import NAME, Reply, Site, redirect, running

_CANARY = """
    http://127.0.0.1:{port}/ http://127.1:{port}/ http://2130706433:{port}/ http://0x7f000001:{port}/
    http://0177.0.0.1:{port}/ http://0:{port}/ http://0.0.0.0:{port}/ http://[::ffff:127.0.0.1]:{port}/
    http://[::127.0.0.1]:{port}/ http://[64:ff9b::7f00:1]:{port}/ http://localhost:{port}/ http://localhost.:{port}/
    http://loopback.example:{port}/ http://user@127.0.0.1:{port}/ //127.0.0.1:{port}/ http://127.0.0.1.:{port}/
    http:////127.0.0.1:{port}/ \\\\127.0.0.1:{port}/ http://\u2460\u2461\u2466.0.0.1:{port}/ HTTP://127.0.0.1:{port}/
    http://127.0.0.1:{port}#x http://127.0.0.1:{port}?x http://[::1]:{port}/ https://127.0.0.1:{port}/
    gopher://127.0.0.1:{port}/_x
"""
CANARY = tuple(_CANARY.split())
"""Ways to send a fetcher to the listener that nobody may reach."""


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    async with running() as site:
        yield site


async def fetched(site: Site, path: str, limits: FetchLimits | None = None) -> FetchedPage | InvalidUrl:
    async with site.fetcher(limits) as web:
        return await web.fetch(path if "://" in path else site.url + path)


async def test_a_page_arrives_with_its_type_and_final_address(site: Site) -> None:
    site.pages = {"/a": redirect("/b?x=1", "308 Permanent Redirect"), "/b": Reply(b"<p>Hello</p>")}
    assert await fetched(site, "/a") == FetchedPage(f"{site.url}/b?x=1", "text/html", "utf-8", b"<p>Hello</p>")


async def test_what_is_sent_names_the_site_and_no_user_s_credentials(site: Site) -> None:
    site.pages = {"/": Reply(b"x", headers={"Content-Type": "text/plain", "Set-Cookie": "a=b"})}
    async with site.fetcher() as web:
        await web.fetch(f"{site.url}/")
        await web.fetch(f"{site.url}/")
    for head in site.requests:
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:] if line}
        assert names == {"host", "user-agent", "accept", "accept-encoding"}
        assert f"Host: {NAME}:{site.port}" in head


@pytest.mark.parametrize("spelling", CANARY)
async def test_neither_an_address_nor_a_redirect_reaches_what_is_not_public(site: Site, spelling: str) -> None:
    hostile = spelling.format(port=site.canary)
    site.pages = {"/": redirect("/next"), "/next": redirect(hostile, "307 Temporary Redirect")}
    assert isinstance(await fetched(site, hostile if "://" in hostile else f"http:{hostile}"), InvalidUrl)
    assert isinstance(await fetched(site, "/"), InvalidUrl)
    assert site.touched == []


async def test_no_hostile_address_opens_a_connection(site: Site) -> None:
    async with site.fetcher(FetchLimits(timeout_seconds=2)) as web:
        for text in (*LITERALS, *METADATA, *PARSERS, *SMUGGLES):
            assert isinstance(await web.fetch(text), InvalidUrl), text
    assert (site.touched, site.requests) == ([], [])


async def test_a_name_that_changes_its_answer_is_looked_up_once_for_a_connection(site: Site) -> None:
    site.pages = {"/": Reply(b"first")}
    site.answers = [("127.0.0.1",), ("10.0.0.1",)]
    assert isinstance(await fetched(site, "/"), FetchedPage)
    assert site.answers == [("10.0.0.1",)]


@pytest.mark.parametrize("answers", [("::1", "127.0.0.1"), ("127.0.0.1", "::1")])
async def test_the_first_address_that_answers_is_taken(site: Site, answers: tuple[str, ...]) -> None:
    site.pages = {"/": Reply(b"there")}
    site.answers = [answers]
    assert isinstance(await fetched(site, "/"), FetchedPage)


async def test_redirects_without_end_are_rejected(site: Site) -> None:
    site.pages = {"/": redirect("/")}
    result = await fetched(site, "/")
    assert result == InvalidUrl("It redirects more than 5 times.")
    assert len(site.requests) == 6


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(b"x" * 2001), "The page is larger than 2,000 bytes."),
        (Reply(b"x", headers={"Content-Type": "image/png"}), "It is image/png, which cannot be read here."),
        (Reply(b"x", headers={}), "It is of no named type, which cannot be read here."),
        (Reply(b"x", "500 Server Error"), "The server answers with status 500."),
        (redirect(""), "It redirects more than 5 times."),
        (Reply(b"late", wait=30.0), "The page did not arrive within 0.5 seconds."),
    ],
)
async def test_what_is_too_much_or_unreadable_is_rejected(site: Site, reply: Reply, problem: str) -> None:
    site.pages = {"/": reply}
    assert await fetched(
        site, "/", FetchLimits(max_body_bytes=2000, timeout_seconds=0.5 if reply.wait else 60)
    ) == InvalidUrl(problem)


def packed(body: bytes) -> Reply:
    return Reply(gzip.compress(body), headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"})


async def test_a_packed_page_is_unpacked_within_its_limits(site: Site) -> None:
    varied = " ".join(str(n) for n in range(300)).encode()
    site.pages = {"/fine": packed(varied), "/bomb": packed(b"0" * 3_000_000), "/cut": packed(varied)}
    site.pages["/cut"] = Reply(site.pages["/cut"].body[:-20], headers=site.pages["/cut"].headers)
    site.pages["/broken"] = Reply(b"not packed", headers=site.pages["/cut"].headers)
    assert await fetched(site, "/fine") == FetchedPage(f"{site.url}/fine", "text/plain", "", varied)
    assert await fetched(site, "/bomb") == InvalidUrl("The page unpacks to more than 100 times its size.")
    assert await fetched(site, "/cut") == InvalidUrl("The page ends before its end.")
    assert isinstance(await fetched(site, "/broken"), InvalidUrl)


async def test_a_server_that_is_not_there_or_speaks_nonsense_is_a_rejection(site: Site) -> None:
    site.pages = {"/": Reply(b"x", "200 OK\r\nBroken header without colon")}
    assert await fetched(site, "/") == InvalidUrl("The server does not speak HTTP as it should.")
    site.port = 1
    assert await fetched(site, "/") == InvalidUrl("The server cannot be reached.")


async def test_proxies_of_the_environment_are_not_taken(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{site.canary}")
    site.pages = {"/": Reply(b"direct")}
    assert isinstance(await fetched(site, "/"), FetchedPage)
    assert site.touched == []
    assert len(GOOD) >= 30

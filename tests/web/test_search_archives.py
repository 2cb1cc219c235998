"""Archives and web search engines over their own wires: answers, quotas and malformed answers of each."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx
import orjson
import pytest

from offing.web.fetch import USER_AGENT
from offing.web.provider import SearchHit, SearchProvider, list_words
from offing.web.providers.arxiv import ArxivProvider
from offing.web.providers.crossref import CrossrefProvider, render_date
from offing.web.providers.europe_pmc import EuropePmcProvider
from offing.web.providers.exa import ExaProvider
from offing.web.providers.google_pse import GooglePseProvider
from offing.web.providers.openalex import OpenAlexProvider, restore_abstract
from offing.web.providers.semantic_scholar import SemanticScholarProvider
from offing.web.providers.serper import SerperProvider
from offing.web.providers.wikipedia import WikipediaProvider
from offing.web.rate_limiter import SiteRateLimiter
from offing.web.search import SearchResults, merge_hits, search_web
from tests.web.site import Reply, Site, redirect, running

KEY = "key-that-nobody-may-see"
UNREADABLE = "Its answer cannot be read."
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Wire:
    """How one engine speaks."""

    path: str
    answer: Any
    hits: Sequence[SearchHit]
    request: str
    """How its first line goes on after the path, for the query `tides`."""
    empty: Any
    malformed: Sequence[Any]
    header: str = ""
    body: Any = None


WIRES: dict[str, Wire] = {
    "wikipedia": Wire(
        "/w/api.php",
        {
            "batchcomplete": True,
            "continue": {"sroffset": 2, "continue": "-||"},
            "query": {
                "searchinfo": {"totalhits": 9},
                "search": [
                    {
                        "ns": 0,
                        "title": "Tide",
                        "pageid": 1,
                        "snippet": 'The <span class="searchmatch">sea</span> rises',
                    },
                    {"ns": 0, "title": "Bay of Fundy (K\u00fcste)", "pageid": 2},
                ],
            },
        },
        [
            SearchHit("{at}/wiki/Tide", "Tide", "The sea rises"),
            SearchHit("{at}/wiki/Bay_of_Fundy_(K%C3%BCste)", "Bay of Fundy (K\u00fcste)"),
        ],
        "?action=query&list=search&srsearch=tides&srlimit=20&srprop=snippet&format=json&formatversion=2",
        {"batchcomplete": True, "query": {"search": []}},
        [{"error": {"code": "maxlag", "info": "Waiting"}}, {"query": {"search": [{"pageid": 1}]}}],
    ),
    "openalex": Wire(
        "/works",
        {
            "meta": {"count": 2, "page": 1, "per_page": 20, "next_cursor": "x"},
            "results": [
                {
                    "id": "https://openalex.org/W1",
                    "doi": "https://doi.org/10.1000/Tides.1",
                    "display_name": "How the <i>tides</i> rise",
                    "publication_date": "2020-02-03",
                    "abstract_inverted_index": {"rise": [1, 3], "They": [0], "and": [2]},
                    "best_oa_location": {
                        "landing_page_url": "https://a.example/1",
                        "pdf_url": "https://a.example/1.pdf",
                    },
                    "primary_location": {"landing_page_url": "https://doi.org/10.1000/Tides.1"},
                },
                {
                    "id": "https://openalex.org/W2",
                    "doi": None,
                    "display_name": None,
                    "publication_date": None,
                    "abstract_inverted_index": None,
                    "best_oa_location": None,
                    "primary_location": None,
                },
                {"id": "https://openalex.org/W3"},
            ],
        },
        [
            SearchHit(
                "https://a.example/1",
                "How the tides rise",
                "They rise and rise",
                "2020-02-03",
                ("doi:10.1000/tides.1", "title:how the tides rise"),
            ),
            SearchHit("https://openalex.org/W2", ""),
            SearchHit("https://openalex.org/W3", ""),
        ],
        "?search=tides&per_page=20&select=id%2Cdoi%2Cdisplay_name%2Cpublication_date%2Cabstract_inverted_index",
        {"meta": {"count": 0}, "results": []},
        [
            {"error": "Invalid", "message": "no"},
            {"results": [{"display_name": "no id"}]},
            {"results": [{"id": "https://openalex.org/W1", "abstract_inverted_index": [1]}]},
            {"results": [{"id": "https://openalex.org/W1", "best_oa_location": "x"}]},
        ],
    ),
    "crossref": Wire(
        "/works",
        {
            "status": "ok",
            "message": {
                "total-results": 2,
                "items": [
                    {
                        "DOI": "10.1000/Tides<1>",
                        "title": ["How the tides rise"],
                        "abstract": "<jats:p>They <jats:italic>rise</jats:italic>.</jats:p>",
                        "issued": {"date-parts": [[2020, 2]]},
                    },
                    {"DOI": "10.1000/2", "title": [], "issued": {"date-parts": [[None]]}},
                    {"DOI": "10.1000/3"},
                ],
            },
        },
        [
            SearchHit(
                "https://doi.org/10.1000/Tides%3C1%3E",
                "How the tides rise",
                "They rise.",
                "2020-02",
                ("doi:10.1000/tides<1>", "title:how the tides rise"),
            ),
            SearchHit("https://doi.org/10.1000/2", "", identifiers=("doi:10.1000/2",)),
            SearchHit("https://doi.org/10.1000/3", "", identifiers=("doi:10.1000/3",)),
        ],
        "?query.bibliographic=tides&rows=20&select=DOI%2Ctitle%2Cabstract%2Cissued ",
        {"status": "ok", "message": {"items": []}},
        [
            {"status": "failed", "message": [{"type": "validation-failure"}]},
            {"message": {"items": [{"title": ["no DOI"]}]}},
            {"message": {"items": [{"DOI": "10.1000/1", "title": 7}]}},
            {"message": {"items": [{"DOI": "10.1000/1", "issued": {"date-parts": [["x"]]}}]}},
        ],
    ),
    "europe_pmc": Wire(
        "/search",
        {
            "hitCount": 4,
            "nextCursorMark": "abc",
            "resultList": {
                "result": [
                    {
                        "id": "1",
                        "source": "MED",
                        "doi": "10.1000/1",
                        "title": "How the tides rise.",
                        "abstractText": "<h4>Aim</h4> They rise.",
                        "firstPublicationDate": "2020-02-03",
                        "fullTextUrlList": {
                            "fullTextUrl": [
                                {"availabilityCode": "S", "documentStyle": "pdf", "url": "https://a.example/paid.pdf"},
                                {"availabilityCode": "OA", "documentStyle": "html", "url": "https://a.example/app"},
                                {"availabilityCode": "OA", "documentStyle": "pdf", "url": "https://a.example/1.pdf"},
                            ]
                        },
                    },
                    {"id": "2", "source": "MED", "title": "Two"},
                    {"id": "PPR3", "source": "PPR", "doi": "10.1000/3"},
                    {"id": "C4", "source": "AGR"},
                ]
            },
        },
        [
            SearchHit(
                "https://a.example/1.pdf",
                "How the tides rise.",
                "Aim They rise.",
                "2020-02-03",
                ("doi:10.1000/1", "title:how the tides rise"),
            ),
            SearchHit("https://pubmed.ncbi.nlm.nih.gov/2/", "Two"),
            SearchHit("https://doi.org/10.1000/3", "", identifiers=("doi:10.1000/3",)),
            SearchHit("https://europepmc.org/article/AGR/C4", ""),
        ],
        "?query=tides&format=json&resultType=core&pageSize=20 ",
        {"hitCount": 0, "resultList": {"result": []}},
        [
            {"errCode": 404, "errMsg": "no"},
            {"resultList": {"result": [{"title": "no id"}]}},
            {"resultList": {"result": [{"id": "1", "source": "MED", "fullTextUrlList": []}]}},
        ],
    ),
    "semantic_scholar": Wire(
        "/graph/v1/paper/search",
        {
            "total": 900,
            "offset": 0,
            "next": 20,
            "data": [
                {
                    "paperId": "a",
                    "url": "https://www.semanticscholar.org/paper/a",
                    "title": "How the tides rise",
                    "abstract": "They rise.",
                    "externalIds": {"DOI": "10.1000/1", "ArXiv": "2601.00001"},
                    "openAccessPdf": {"url": "https://a.example/1.pdf", "status": "GREEN"},
                    "publicationDate": "2020-02-03",
                    "year": 2020,
                },
                {
                    "url": "https://www.semanticscholar.org/paper/b",
                    "title": "Two",
                    "externalIds": {"ArXiv": "2601.00001", "DOI": "10.1000/2"},
                    "openAccessPdf": {"url": "", "status": None},
                },
                {"url": "https://www.semanticscholar.org/paper/c", "externalIds": {"DOI": "10.1000/3"}, "year": 2019},
                {
                    "url": "https://www.semanticscholar.org/paper/d",
                    "title": None,
                    "abstract": None,
                    "externalIds": None,
                    "openAccessPdf": None,
                    "publicationDate": None,
                    "year": None,
                },
            ],
        },
        [
            SearchHit(
                "https://a.example/1.pdf",
                "How the tides rise",
                "They rise.",
                "2020-02-03",
                ("doi:10.1000/1", "title:how the tides rise"),
            ),
            SearchHit("https://arxiv.org/abs/2601.00001", "Two", identifiers=("doi:10.1000/2",)),
            SearchHit("https://doi.org/10.1000/3", "", published="2019", identifiers=("doi:10.1000/3",)),
            SearchHit("https://www.semanticscholar.org/paper/d", ""),
        ],
        "?query=tides&limit=20&fields=title%2Cabstract%2Curl%2CexternalIds%2CopenAccessPdf",
        {"total": 0, "offset": 0},
        [{"message": "no"}, {"total": 2, "data": [{"title": "no url"}]}, {"total": 2}],
    ),
    "serper": Wire(
        "/search",
        {
            "searchParameters": {"q": "tides"},
            "organic": [
                {"title": "A", "link": "https://a.example/1", "snippet": "rise", "date": "2 Jan 2026", "position": 1},
                {"link": "https://a.example/2"},
            ],
            "credits": 1,
        },
        [SearchHit("https://a.example/1", "A", "rise", "2 Jan 2026"), SearchHit("https://a.example/2", "")],
        " ",
        {"organic": []},
        [{"message": "Unauthorized."}, {"organic": [{"title": "no link"}]}],
        f"X-API-KEY: {KEY}",
        {"q": "tides", "num": 20},
    ),
    "exa": Wire(
        "/search",
        {
            "requestId": "r",
            "results": [
                {
                    "id": "1",
                    "url": "https://a.example/1",
                    "title": "A",
                    "text": "# A\nThey  rise",
                    "publishedDate": "2026-01-02T00:00:00.000Z",
                },
                {"url": "https://a.example/2", "title": None, "publishedDate": None},
            ],
        },
        [SearchHit("https://a.example/1", "A", "# A They rise", "2026-01-02"), SearchHit("https://a.example/2", "")],
        " ",
        {"results": []},
        [{"error": "no"}, {"results": [{"title": "no url"}]}],
        f"x-api-key: {KEY}",
        {"query": "tides", "numResults": 20, "contents": {"text": {"maxCharacters": 600}}},
    ),
    "google_pse": Wire(
        "/customsearch/v1",
        {
            "kind": "customsearch#search",
            "queries": {"nextPage": [{"startIndex": 11}]},
            "items": [
                {"title": "A", "link": "https://a.example/1", "snippet": "rise"},
                {"link": "https://a.example/2"},
            ],
        },
        [SearchHit("https://a.example/1", "A", "rise"), SearchHit("https://a.example/2", "")],
        "?cx=engine-1&q=tides&num=10 ",
        {"kind": "customsearch#search", "searchInformation": {"totalResults": "0"}},
        [{"error": {"code": 400}}, {"kind": "customsearch#search", "items": [{"title": "no link"}]}],
        f"X-Goog-Api-Key: {KEY}",
    ),
}
NAMES = sorted(WIRES)


def provider(name: str, base: str) -> SearchProvider:
    return {
        "wikipedia": lambda: WikipediaProvider(base),
        "openalex": lambda: OpenAlexProvider(base=base),
        "crossref": lambda: CrossrefProvider(base),
        "europe_pmc": lambda: EuropePmcProvider(base),
        "semantic_scholar": lambda: SemanticScholarProvider(base=base),
        "serper": lambda: SerperProvider(KEY, base),
        "exa": lambda: ExaProvider(KEY, base),
        "google_pse": lambda: GooglePseProvider(KEY, "engine-1", base),
    }[name]()


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    async with running() as site:
        yield site


def at(site: Site) -> str:
    return f"http://127.0.0.1:{site.port}"


def serve(site: Site, name: str, answer: Any) -> SearchProvider:
    site.pages = {WIRES[name].path: Reply(orjson.dumps(answer), headers=JSON)}
    return provider(name, at(site))


async def search_with(
    *engines: SearchProvider, query: str = "tides", limit: int = 50, limiter: SiteRateLimiter | None = None
) -> SearchResults:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await search_web(client, engines, query, limit, limiter)


@pytest.mark.parametrize("name", NAMES)
async def test_its_answer_is_read_with_fields_that_are_missing(site: Site, name: str) -> None:
    wire = WIRES[name]
    engine = serve(site, name, wire.answer)
    parsed = engine.parse_response(orjson.dumps(wire.answer))
    assert list(parsed) == [replace(one, url=one.url.replace("{at}", at(site))) for one in wire.hits]
    searched = await search_with(engine)
    assert searched.failed == {}
    assert {one.hit.url for one in searched.hits} <= {one.url for one in parsed}
    assert searched.hits[0].engines == (name,)


@pytest.mark.parametrize("name", NAMES)
async def test_it_is_asked_for_one_small_page_and_told_who_asks(site: Site, name: str) -> None:
    wire = WIRES[name]
    await search_with(serve(site, name, wire.answer))
    (request,) = site.requests
    head, _, body = request.partition("\r\n\r\n")
    assert head.startswith(f"{'GET' if wire.body is None else 'POST'} {wire.path}{wire.request}")
    assert f"User-Agent: {USER_AGENT}" in head
    assert wire.header in head
    assert KEY not in head.partition("\r\n")[0]
    assert (orjson.loads(body) if body else None) == wire.body


@pytest.mark.parametrize("name", NAMES)
async def test_no_results_are_no_failure(site: Site, name: str) -> None:
    assert await search_with(serve(site, name, WIRES[name].empty)) == SearchResults((), {})


@pytest.mark.parametrize("name", NAMES)
async def test_another_shape_is_a_failure_and_not_a_crash(site: Site, name: str) -> None:
    path = WIRES[name].path
    answers: list[Any] = [*WIRES[name].malformed, [], {}, 7, None, "text"]
    for answer in answers:
        assert await search_with(serve(site, name, answer)) == SearchResults((), {name: UNREADABLE}), answer
    for body in (b"", b"<html>", b'{"results": [', b"\xff"):
        site.pages = {path: Reply(body, headers=JSON)}
        assert await search_with(provider(name, at(site))) == SearchResults((), {name: UNREADABLE}), body


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ("401 Unauthorized", "It does not accept the key."),
        ("429 Too Many Requests", "It asks to wait; its limit is reached."),
        ("503 Service Unavailable", "It answers with status 503."),
    ],
)
async def test_its_status_is_reported(site: Site, name: str, status: str, problem: str) -> None:
    site.pages = {WIRES[name].path: Reply(b"{}", status=status)}
    assert (await search_with(provider(name, at(site)))).failed == {name: problem}


@pytest.mark.parametrize("name", NAMES)
async def test_its_redirect_reaches_nobody(site: Site, name: str) -> None:
    async with running() as other:
        site.pages = {WIRES[name].path: redirect(f"http://127.0.0.1:{other.port}/", "307 Temporary Redirect")}
        assert "redirect" in (await search_with(provider(name, at(site)))).failed[name]
    assert other.requests == []


@pytest.mark.parametrize("name", NAMES)
async def test_its_retry_after_is_waited_for_and_reported(site: Site, name: str) -> None:
    now = 0.0
    limiter = SiteRateLimiter(clock=lambda: now)
    headers = {"Retry-After": "30"}
    site.pages = {WIRES[name].path: Reply(b"{}", status="429 Too Many Requests", headers=headers)}
    engine = provider(name, at(site))
    await search_with(engine, limiter=limiter)
    assert "30 more seconds" in (await search_with(engine, limiter=limiter)).failed[name]
    assert len(site.requests) == 1
    now = 31.0
    serve(site, name, WIRES[name].answer)
    assert (await search_with(engine, limiter=limiter)).failed == {}


async def test_an_engine_is_asked_only_so_often_per_minute(site: Site) -> None:
    engine = serve(site, "wikipedia", WIRES["wikipedia"].answer)
    limiter = SiteRateLimiter(max_per_minute=2, clock=lambda: 0.0)
    results = [await search_with(engine, limiter=limiter) for _ in range(3)]
    assert [set(one.failed) for one in results] == [set(), set(), {"wikipedia"}]
    assert len(site.requests) == 2


async def test_a_slow_engine_does_not_delay_the_others_beyond_its_timeout(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offing.web.search.TIMEOUT_SECONDS", 0.3)
    serve(site, "wikipedia", WIRES["wikipedia"].answer)
    site.pages["/works"] = Reply(orjson.dumps(WIRES["crossref"].answer), headers=JSON, wait=5.0)
    searched = await search_with(provider("wikipedia", at(site)), provider("crossref", at(site)))
    assert len(searched.hits) == 2
    assert searched.failed == {"crossref": "It did not answer within 0.3 seconds."}


async def test_one_publication_of_several_archives_is_one_result(site: Site) -> None:
    names = ["openalex", "europe_pmc", "semantic_scholar", "crossref"]
    lists = {name: provider(name, "").parse_response(orjson.dumps(WIRES[name].answer))[:1] for name in names}
    (merged,) = merge_hits(lists, 10)
    assert merged.engines == tuple(names)
    assert merged.hit.url == "https://a.example/1"


async def test_a_failed_archive_leaves_the_results_of_the_others(site: Site) -> None:
    site.pages = {
        "/search": Reply(orjson.dumps(WIRES["europe_pmc"].answer), headers=JSON),
        "/works": Reply(status="429 Too Many Requests"),
        "/w/api.php": Reply(orjson.dumps(WIRES["wikipedia"].answer), headers=JSON),
        "/api/query": Reply(b"<no feed"),
    }
    names = ("europe_pmc", "openalex", "wikipedia", "semantic_scholar")
    engines = [provider(name, at(site)) for name in names]
    searched = await search_with(*engines, ArxivProvider(at(site)), limit=3)
    assert [one.engines for one in searched.hits] == [("europe_pmc",), ("wikipedia",), ("europe_pmc",)]
    assert searched.failed == {
        "openalex": "It asks to wait; its limit is reached.",
        "semantic_scholar": "It answers with status 404.",
        "arxiv": UNREADABLE,
    }


def publication(url: str, *identifiers: str, snippet: str = "") -> SearchHit:
    return SearchHit(url, url, snippet, identifiers=identifiers)


def test_a_publication_is_recognized_across_two_dois_by_its_title() -> None:
    lists = {
        "one": [publication("https://a.example/", "doi:1")],
        "two": [publication("https://b.example/", "doi:2", "title:t")],
        "three": [publication("https://c.example/", "doi:1", "title:t", snippet="They rise.")],
    }
    (merged,) = merge_hits(lists, 10)
    assert merged.engines == ("one", "two", "three")
    assert (merged.hit.url, merged.hit.snippet) == ("https://a.example/", "They rise.")


def test_pages_with_the_same_title_stay_apart_unless_they_are_publications() -> None:
    pages = [
        SearchHit("https://a.example/", "The same long title"),
        SearchHit("https://b.example/", "The same long title"),
    ]
    assert len(merge_hits({"one": pages}, 10)) == 2


def test_a_query_has_no_operators_left() -> None:
    assert list_words('title:"Moon\u2019s" AND -tides* (x-ray)') == ["title", "moon", "and", "tides", "x-ray"]
    assert len(list_words("word " * 50)) == 20
    request = SemanticScholarProvider().build_request("x-ray tides", 3)
    assert request.params["query"] == "x ray tides"


def test_an_optional_key_is_sent_if_there_is_one_and_no_repr_shows_it() -> None:
    openalex, scholar = OpenAlexProvider(KEY), SemanticScholarProvider(KEY)
    assert openalex.build_request("q", 1).params["api_key"] == KEY
    assert "api_key" not in OpenAlexProvider().build_request("q", 1).params
    assert scholar.build_request("q", 1).headers == {"x-api-key": KEY}
    assert SemanticScholarProvider().build_request("q", 1).headers == {}
    for one in (openalex, scholar, SerperProvider(KEY), ExaProvider(KEY), GooglePseProvider(KEY, "engine-1")):
        assert KEY not in f"{one!r}{one.build_request('q', 1)!r}"


def test_parts_of_records_are_read() -> None:
    assert restore_abstract({"b": [1], "a": [0, 2]}) == "a b a"
    assert restore_abstract(None) == ""
    dates: list[Any] = [None, {}, {"date-parts": []}, {"date-parts": [[2020, 1, 9]]}]
    assert [render_date(one) for one in dates] == ["", "", "", "2020-01-09"]

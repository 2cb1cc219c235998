"""Query several search engines at once and merge their hits into one list.

The lists are merged by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009), which needs no
scores that are comparable between engines. Engines that fail are listed together with the hits of the others.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

import httpx

from offing.core.rank_fusion import compute_fused_score
from offing.telemetry.redaction import remove_secrets
from offing.web.fetch import USER_AGENT
from offing.web.provider import PagedSearchProvider, SearchHit, SearchProvider, SearchRequest
from offing.web.rate_limiter import SiteRateLimiter
from offing.web.url import InvalidUrl, ParsedUrl, parse_url

TIMEOUT_SECONDS = 15.0
"""Timeout of one engine."""
MAX_RESPONSE_BYTES = 2_000_000
"""Maximum bytes of a response."""
MAX_PAGES = 3
"""Maximum number of pages of results that one search requests from an engine."""

_TRACKING = ("utm_", "fbclid", "gclid", "mc_cid", "mc_eid")


@dataclass(frozen=True, slots=True)
class MergedHit:
    """A page that one or several engines found."""

    hit: SearchHit
    """The hit of the engine that ranks the page highest."""
    engines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchResults:
    hits: tuple[MergedHit, ...]
    """Merged hits, best first."""
    failed: Mapping[str, str]
    """Engines that failed, with the reason. The hits of the pages before the failure are among `hits`."""


@dataclass(slots=True)
class _EngineAnswer:
    """The hits of one engine so far, and why there are no further ones."""

    hits: list[SearchHit] = field(default_factory=list[SearchHit])
    problem: str = ""
    """Empty if the engine did not fail."""


@dataclass(frozen=True, slots=True)
class _RankedHit:
    """A hit with its rank in the list of one engine."""

    rank: int
    engine: str
    hit: SearchHit


async def search_web(
    client: httpx.AsyncClient,
    providers: Sequence[SearchProvider],
    query: str,
    limit: int,
    rate_limiter: SiteRateLimiter | None = None,
) -> SearchResults:
    """Return at most `limit` pages from all engines.

    The rate limiter limits the requests to each engine by its name. `None` means no limit.
    """
    answers = await asyncio.gather(*(_query_provider(client, one, query, limit, rate_limiter) for one in providers))
    named = {provider.name: answer for provider, answer in zip(providers, answers, strict=True)}
    failed = {name: answer.problem for name, answer in named.items() if answer.problem}
    return SearchResults(merge_hits({name: answer.hits for name, answer in named.items()}, limit), failed)


def merge_hits(lists: Mapping[str, Sequence[SearchHit]], limit: int) -> tuple[MergedHit, ...]:
    """Return each page and each publication once, ordered by the sum of 1 / (60 + rank).

    Equal sums keep their original order.
    """
    roots = _link_keys(hit for hits in lists.values() for hit in hits)
    pages: dict[str, list[_RankedHit]] = {}
    for engine, hits in lists.items():
        for page, ranked in _rank_pages(engine, hits, roots).items():
            pages.setdefault(page, []).append(ranked)
    best = sorted(pages.values(), key=lambda ranked: -compute_fused_score(one.rank for one in ranked))
    return tuple(_merge_page(ranked) for ranked in best[:limit])


def _rank_pages(engine: str, hits: Sequence[SearchHit], roots: Mapping[str, str]) -> Mapping[str, _RankedHit]:
    """Return the best hit of an engine for each page."""
    pages: dict[str, _RankedHit] = {}
    for rank, hit in enumerate(hits, 1):
        if keys := _list_keys(hit):
            pages.setdefault(_find_root(roots, keys[0]), _RankedHit(rank, engine, hit))
    return pages


def _merge_page(ranked: Sequence[_RankedHit]) -> MergedHit:
    """Merge the hits of one page. The snippet is that of another engine if the best hit has none."""
    hit = min(ranked, key=lambda one: one.rank).hit
    snippet = next((one.hit.snippet for one in ranked if one.hit.snippet), "")
    return MergedHit(replace(hit, snippet=hit.snippet or snippet), tuple(one.engine for one in ranked))


def _link_keys(hits: Iterable[SearchHit]) -> Mapping[str, str]:
    """Return a union-find forest of keys: keys of one page or publication have the same root."""
    roots: dict[str, str] = {}
    for hit in hits:
        first, *others = [_find_root(roots, key) for key in _list_keys(hit)] or [""]
        for other in others:
            roots[other] = first
    return roots


def _find_root(roots: Mapping[str, str], key: str) -> str:
    while (parent := roots.get(key, key)) != key:
        key = parent
    return key


def _list_keys(hit: SearchHit) -> Sequence[str]:
    """Return the keys that identify the page of a hit. Empty if its URL cannot be fetched."""
    page = page_identity(hit.url)
    return () if page is None else (page, *hit.identifiers)


def page_identity(url: str) -> str | None:
    """Return a key that two URLs of the same page have in common, or `None` for a URL that cannot be fetched."""
    target = parse_url(url)
    if not isinstance(target, ParsedUrl):
        return None
    path, _, query = target.path.partition("?")
    parameters = [(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if not k.startswith(_TRACKING)]
    host = target.host.removeprefix("www.")
    return f"{host}:{target.port if target.port not in (80, 443) else ''}{path.rstrip('/')}?{urlencode(parameters)}"


async def _query_provider(
    client: httpx.AsyncClient, provider: SearchProvider, query: str, limit: int, rate_limiter: SiteRateLimiter | None
) -> _EngineAnswer:
    """Return the hits of one engine, and the reason if it failed. Waiting for the rate limiter counts as time."""
    answer = _EngineAnswer()
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await _read_pages(client, provider, query, limit, rate_limiter, answer)
    except (TimeoutError, httpx.TimeoutException):
        answer.problem = f"It did not answer within {TIMEOUT_SECONDS:g} seconds."
    except httpx.HTTPError:
        answer.problem = "It cannot be reached."
    return answer


async def _read_pages(
    client: httpx.AsyncClient,
    provider: SearchProvider,
    query: str,
    limit: int,
    rate_limiter: SiteRateLimiter | None,
    answer: _EngineAnswer,
) -> None:
    """Add the hits of one page after another until there are `limit` hits, a page adds none, or a request fails."""
    request: SearchRequest | None = provider.build_request(query, limit)
    page = 1
    while request is not None:
        send = partial(_send_request, client, provider, request, rate_limiter)
        hits = await (send() if rate_limiter is None else rate_limiter.run(provider.name, send))
        if isinstance(hits, InvalidUrl):
            answer.problem = hits.problem
            return
        answer.hits += hits
        page += 1
        request = None
        if hits and len(answer.hits) < limit and page <= MAX_PAGES and isinstance(provider, PagedSearchProvider):
            request = provider.build_next_request(query, limit, page, len(answer.hits))


async def _send_request(
    client: httpx.AsyncClient, provider: SearchProvider, parts: SearchRequest, rate_limiter: SiteRateLimiter | None
) -> Sequence[SearchHit] | InvalidUrl:
    """Send a request and read the response. A Retry-After is recorded for later requests."""
    answer = await client.send(_build_http_request(client, parts), stream=True, follow_redirects=False)
    try:
        if rate_limiter is not None and answer.status_code in _RETRY_LATER:
            rate_limiter.set_retry_after(provider.name, answer.headers.get("Retry-After", ""))
        return await _read_response(provider, answer)
    finally:
        await answer.aclose()


def _build_http_request(client: httpx.AsyncClient, parts: SearchRequest) -> httpx.Request:
    """Build the HTTP request. It identifies Offing as the fetcher of pages does."""
    method, headers = "GET" if parts.json is None else "POST", {"User-Agent": USER_AGENT, **parts.headers}
    return client.build_request(method, parts.url, params=dict(parts.params) or None, headers=headers, json=parts.json)


async def _read_response(provider: SearchProvider, response: httpx.Response) -> Sequence[SearchHit] | InvalidUrl:
    if response.is_redirect:
        return InvalidUrl("It answers with a redirect, which is not followed; set the address that answers itself.")
    if response.status_code != HTTPStatus.OK:
        return InvalidUrl(_PROBLEMS.get(response.status_code, f"It answers with status {response.status_code}."))
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_RESPONSE_BYTES:
            return InvalidUrl(f"Its answer is larger than {MAX_RESPONSE_BYTES:,} bytes.")
    try:
        return provider.parse_response(_remove_secrets(bytes(body)))
    except (ValueError, KeyError, TypeError):
        return InvalidUrl("Its answer cannot be read.")


def _remove_secrets(body: bytes) -> bytes:
    """Return the body without the API key, which an engine may repeat.

    This comes before the text is shortened.
    """
    text: str = remove_secrets(body.decode(errors="surrogateescape"))
    return text.encode(errors="surrogateescape")


_RETRY_LATER = frozenset((HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE))
"""Statuses that may have a Retry-After."""

_PROBLEMS = {
    401: "It does not accept the key.",
    403: "It does not allow this request. If it is a SearXNG, add json to its formats.",
    429: "It asks to wait; its limit is reached.",
}

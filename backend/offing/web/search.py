"""Query several search engines at once and merge their hits into one list.

The lists are merged by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009), which needs no
scores that are comparable between engines. Engines that fail are listed together with the hits of the others.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

import httpx

from offing.telemetry.redaction import remove_secrets
from offing.web.provider import SearchHit, SearchProvider
from offing.web.url import InvalidUrl, ParsedUrl, parse_url

TIMEOUT_SECONDS = 15.0
"""Timeout of one engine."""
MAX_RESPONSE_BYTES = 2_000_000
"""Maximum bytes of a response."""
RRF_CONSTANT = 60
"""The constant of reciprocal rank fusion. The higher it is, the more agreement of several engines counts
against top ranks.
"""

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
    """Engines that failed, with the reason."""


async def search_web(
    client: httpx.AsyncClient, providers: Sequence[SearchProvider], query: str, limit: int
) -> SearchResults:
    """Return at most `limit` pages from all engines."""
    answers = await asyncio.gather(*(_query_provider(client, one, query, limit) for one in providers))
    lists: dict[str, Sequence[SearchHit]] = {}
    failed: dict[str, str] = {}
    for provider, answer in zip(providers, answers, strict=True):
        if isinstance(answer, InvalidUrl):
            failed[provider.name] = answer.problem
        else:
            lists[provider.name] = answer
    return SearchResults(merge_hits(lists, limit), failed)


def merge_hits(lists: Mapping[str, Sequence[SearchHit]], limit: int) -> tuple[MergedHit, ...]:
    """Return each page once, ordered by the sum of 1 / (60 + rank). Equal sums keep their original order."""
    score, first, engines = dict[str, float](), dict[str, tuple[int, SearchHit]](), dict[str, list[str]]()
    for engine, hits in lists.items():
        urls = set[str]()
        for rank, hit in enumerate(hits, 1):
            page = page_identity(hit.url)
            if page is None or page in urls:
                continue
            urls.add(page)
            score[page] = score.get(page, 0.0) + 1 / (RRF_CONSTANT + rank)
            first[page] = min(first.get(page, (rank, hit)), (rank, hit), key=lambda ranked: ranked[0])
            engines.setdefault(page, []).append(engine)
    best = sorted(score, key=lambda page: -score[page])[:limit]
    return tuple(MergedHit(first[page][1], tuple(engines[page])) for page in best)


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
    client: httpx.AsyncClient, provider: SearchProvider, query: str, limit: int
) -> Sequence[SearchHit] | InvalidUrl:
    parts = provider.build_request(query, limit)
    method = "GET" if parts.json is None else "POST"
    request = client.build_request(
        method, parts.url, params=dict(parts.params) or None, headers=dict(parts.headers), json=parts.json
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            answer = await client.send(request, stream=True, follow_redirects=False)
            try:
                return await _read_response(provider, answer)
            finally:
                await answer.aclose()
    except (TimeoutError, httpx.TimeoutException):
        return InvalidUrl(f"It did not answer within {TIMEOUT_SECONDS:g} seconds.")
    except httpx.HTTPError:
        return InvalidUrl("It cannot be reached.")


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


_PROBLEMS = {
    401: "It does not accept the key.",
    403: "It does not allow this; a SearXNG must have json among its formats.",
    429: "It asks to wait; its limit is reached.",
}

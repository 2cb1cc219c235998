"""Several search engines asked at once, and their answers as one list.

The only home of how engines are asked and of how their lists are merged: reciprocal rank fusion (Cormack, Clarke and
Buettcher, SIGIR 2009), which needs no scores that compare between engines. An engine that fails is named beside what
the others found.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

import httpx

from offing.telemetry.redaction import without_secrets
from offing.web.provider import Hit, Provider
from offing.web.url import Refused, Target, target_of

SECONDS = 15.0
"""For one engine."""
LARGEST = 2_000_000
"""Bytes of an answer."""
STEADY = 60
"""The constant of reciprocal rank fusion: how little the first places of one engine outweigh agreement of several."""

_TRACKING = ("utm_", "fbclid", "gclid", "mc_cid", "mc_eid")


@dataclass(frozen=True, slots=True)
class Found:
    """A page that one engine or several found."""

    hit: Hit
    """As the engine says it that has it highest."""
    engines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Searched:
    found: tuple[Found, ...]
    """Best first."""
    failed: Mapping[str, str]
    """Engines that gave nothing, with why."""


async def search(client: httpx.AsyncClient, providers: Sequence[Provider], query: str, limit: int) -> Searched:
    """At most `limit` pages, from all engines."""
    answers = await asyncio.gather(*(_asked(client, one, query, limit) for one in providers))
    lists: dict[str, Sequence[Hit]] = {}
    failed: dict[str, str] = {}
    for provider, answer in zip(providers, answers, strict=True):
        if isinstance(answer, Refused):
            failed[provider.name] = answer.problem
        else:
            lists[provider.name] = answer
    return Searched(merged(lists, limit), failed)


def merged(lists: Mapping[str, Sequence[Hit]], limit: int) -> tuple[Found, ...]:
    """Each page once, by the sum of 1 / (60 + rank); equal sums in the order in which they came."""
    score, first, engines = dict[str, float](), dict[str, tuple[int, Hit]](), dict[str, list[str]]()
    for engine, hits in lists.items():
        known = set[str]()
        for rank, hit in enumerate(hits, 1):
            page = same_page(hit.url)
            if page is None or page in known:
                continue
            known.add(page)
            score[page] = score.get(page, 0.0) + 1 / (STEADY + rank)
            first[page] = min(first.get(page, (rank, hit)), (rank, hit), key=lambda placed: placed[0])
            engines.setdefault(page, []).append(engine)
    best = sorted(score, key=lambda page: -score[page])[:limit]
    return tuple(Found(first[page][1], tuple(engines[page])) for page in best)


def same_page(url: str) -> str | None:
    """What two addresses of one page have in common. None: it is no address that could be fetched."""
    target = target_of(url)
    if not isinstance(target, Target):
        return None
    path, _, query = target.path.partition("?")
    kept = [(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if not k.startswith(_TRACKING)]
    host = target.host.removeprefix("www.")
    return f"{host}:{target.port if target.port not in (80, 443) else ''}{path.rstrip('/')}?{urlencode(kept)}"


async def _asked(client: httpx.AsyncClient, provider: Provider, query: str, limit: int) -> Sequence[Hit] | Refused:
    asked = provider.ask(query, limit)
    method = "GET" if asked.json is None else "POST"
    request = client.build_request(
        method, asked.url, params=dict(asked.params) or None, headers=dict(asked.headers), json=asked.json
    )
    try:
        async with asyncio.timeout(SECONDS):
            answer = await client.send(request, stream=True, follow_redirects=False)
            try:
                return await _read(provider, answer)
            finally:
                await answer.aclose()
    except (TimeoutError, httpx.TimeoutException):
        return Refused(f"It did not answer within {SECONDS:g} seconds.")
    except httpx.HTTPError:
        return Refused("It cannot be reached.")


async def _read(provider: Provider, answer: httpx.Response) -> Sequence[Hit] | Refused:
    if answer.is_redirect:
        return Refused("It answers with a redirect, which is not followed; set the address that answers itself.")
    if answer.status_code != HTTPStatus.OK:
        return Refused(_PROBLEMS.get(answer.status_code, f"It answers with status {answer.status_code}."))
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > LARGEST:
            return Refused(f"Its answer is larger than {LARGEST:,} bytes.")
    try:
        return provider.read(_clean(bytes(body)))
    except (ValueError, KeyError, TypeError):
        return Refused("Its answer cannot be read.")


def _clean(body: bytes) -> bytes:
    """Without the key, which an engine may repeat: before anything of it is cut where only a part would be left."""
    text: str = without_secrets(body.decode(errors="surrogateescape"))
    return text.encode(errors="surrogateescape")


_PROBLEMS = {
    401: "It does not accept the key.",
    403: "It does not allow this; a SearXNG must have json among its formats.",
    429: "It asks to wait; its limit is reached.",
}

"""The operator's own SearXNG. Its settings must allow the format `json`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_hit

MIN_PAGE_HITS = 10
"""Number of hits below which a page is the last one. The size of a page depends on the engines that the server queries.
"""


@dataclass(frozen=True, slots=True)
class SearxngProvider:
    base: str
    """Base URL, such as http://127.0.0.1:8888."""
    name: str = "searxng"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        return self._build_page_request(query, {})

    def build_next_request(self, query: str, limit: int, page: int, hit_count: int) -> SearchRequest | None:
        if hit_count < MIN_PAGE_HITS * (page - 1):
            return None
        return self._build_page_request(query, {"pageno": page})

    def _build_page_request(self, query: str, page: Mapping[str, int]) -> SearchRequest:
        return SearchRequest(f"{self.base.rstrip('/')}/search", params={"q": query, "format": "json", **page})

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        results = orjson.loads(body)["results"]
        return [
            build_hit(one["url"], one.get("title"), one.get("content"), one.get("publishedDate")) for one in results
        ]


ENGINE = SearchEngine(
    "SEARXNG_URL",
    SearxngProvider,
    covers="the engines that your SearXNG queries",
    cost="your own server",
)

"""The operator's own SearXNG. Its settings must allow the format `json`."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_hit


@dataclass(frozen=True, slots=True)
class SearxngProvider:
    base: str
    """Base URL, such as http://127.0.0.1:8888."""
    name: str = "searxng"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        return SearchRequest(f"{self.base.rstrip('/')}/search", params={"q": query, "format": "json"})

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        results = orjson.loads(body)["results"]
        return [
            build_hit(one["url"], one.get("title"), one.get("content"), one.get("publishedDate")) for one in results
        ]


ENGINE = SearchEngine("SEARXNG_URL", SearxngProvider)

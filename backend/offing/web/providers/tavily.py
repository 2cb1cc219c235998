"""Tavily Search."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_hit


@dataclass(frozen=True, slots=True)
class TavilyProvider:
    api_key: str = field(repr=False)
    base: str = "https://api.tavily.com"
    name: str = "tavily"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return SearchRequest(
            f"{self.base}/search", headers=headers, json={"query": query, "max_results": min(limit, 20)}
        )

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        results = orjson.loads(body)["results"]
        return [
            build_hit(one["url"], one.get("title"), one.get("content"), one.get("published_date")) for one in results
        ]


ENGINE = SearchEngine(
    "TAVILY_API_KEY",
    TavilyProvider,
    covers="the web",
    cost="see the provider",
)

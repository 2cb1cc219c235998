"""Brave Search."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_hit


@dataclass(frozen=True, slots=True)
class BraveProvider:
    api_key: str = field(repr=False)
    base: str = "https://api.search.brave.com"
    name: str = "brave"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        headers = {"X-Subscription-Token": self.api_key, "Accept": "application/json"}
        params: dict[str, str | int] = {"q": query[:400], "count": min(limit, 20)}
        return SearchRequest(f"{self.base}/res/v1/web/search", params, headers)

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        answer = orjson.loads(body)
        results = answer["web"]["results"] if answer["type"] == "search" and "web" in answer else ()
        return [build_hit(one["url"], one.get("title"), one.get("description"), one.get("page_age")) for one in results]


ENGINE = SearchEngine(
    "BRAVE_API_KEY",
    BraveProvider,
    covers="the web",
    cost="see the provider",
)

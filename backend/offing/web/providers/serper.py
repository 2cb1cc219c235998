"""Serper: results of Google Search."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_hit


@dataclass(frozen=True, slots=True)
class SerperProvider:
    api_key: str = field(repr=False)
    base: str = "https://google.serper.dev"
    name: str = "serper"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        headers = {"X-API-KEY": self.api_key}
        return SearchRequest(f"{self.base}/search", headers=headers, json={"q": query, "num": min(limit, 20)})

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        results = orjson.loads(body)["organic"]
        return [build_hit(one["link"], one.get("title"), one.get("snippet"), one.get("date")) for one in results]


ENGINE = SearchEngine(
    "SERPER_API_KEY",
    SerperProvider,
    covers="results of Google Search",
    cost="see the provider",
)

"""Exa: search by meaning. The snippet is the beginning of the page's text."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from offing.web.provider import MAX_SNIPPET_CHARS, SearchEngine, SearchHit, SearchRequest, build_hit


@dataclass(frozen=True, slots=True)
class ExaProvider:
    api_key: str = field(repr=False)
    base: str = "https://api.exa.ai"
    name: str = "exa"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        """Build a request for pages with no more of their text than a snippet shows."""
        contents = {"text": {"maxCharacters": MAX_SNIPPET_CHARS}}
        body = {"query": query, "numResults": min(limit, 20), "contents": contents}
        return SearchRequest(f"{self.base}/search", headers={"x-api-key": self.api_key}, json=body)

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        results = orjson.loads(body)["results"]
        return [
            build_hit(one["url"], one.get("title"), one.get("text"), (one.get("publishedDate") or "")[:10])
            for one in results
        ]


ENGINE = SearchEngine(
    "EXA_API_KEY",
    ExaProvider,
    covers="the web, searched by meaning",
    cost="see the provider",
)

"""Google Programmable Search Engine, through the Custom Search JSON API. A request returns at most 10 pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_hit

PAGE_SIZE = 10
"""Maximum number of hits of one request."""


@dataclass(frozen=True, slots=True)
class GooglePseProvider:
    api_key: str = field(repr=False)
    engine_id: str
    """The id of the Programmable Search Engine, which the API calls `cx`."""
    base: str = "https://www.googleapis.com"
    name: str = "google_pse"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        """Build a request with the key in a header, so that no log of URLs contains it."""
        return self._build_page_request(query, {"num": min(limit, PAGE_SIZE)})

    def build_next_request(self, query: str, limit: int, page: int, hit_count: int) -> SearchRequest | None:
        first = (page - 1) * PAGE_SIZE
        if hit_count < first:
            return None
        return self._build_page_request(query, {"num": min(limit - first, PAGE_SIZE), "start": first + 1})

    def _build_page_request(self, query: str, window: Mapping[str, int]) -> SearchRequest:
        params: dict[str, str | int] = {"cx": self.engine_id, "q": query, **window}
        return SearchRequest(f"{self.base}/customsearch/v1", params, {"X-Goog-Api-Key": self.api_key})

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        """Return the pages. An answer without results has no field `items`."""
        answer = orjson.loads(body)
        results = answer["items"] if "items" in answer or answer["kind"] != "customsearch#search" else ()
        return [build_hit(one["link"], one.get("title"), one.get("snippet")) for one in results]


ENGINE = SearchEngine(
    "GOOGLE_PSE_API_KEY",
    GooglePseProvider,
    more_variables=("GOOGLE_PSE_ID",),
    covers="the sites of a Google Programmable Search Engine",
    cost="see the provider",
)

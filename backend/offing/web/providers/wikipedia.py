"""Wikipedia: encyclopedia articles, without an API key. Other sites that run MediaWiki answer in the same way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_hit, list_words

ENGLISH_URL = "https://en.wikipedia.org"


@dataclass(frozen=True, slots=True)
class WikipediaProvider:
    base: str = ENGLISH_URL
    """Base URL, such as https://de.wikipedia.org."""
    name: str = "wikipedia"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        """Build a request of the action API for articles that contain the words of the query."""
        params: dict[str, str | int] = {
            "action": "query",
            "list": "search",
            "srsearch": " ".join(list_words(query)),
            "srlimit": min(limit, 20),
            "srprop": "snippet",
            "format": "json",
            "formatversion": 2,
        }
        return SearchRequest(f"{self.base.rstrip('/')}/w/api.php", params)

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        """Return the articles. The API reports an error with status 200 and without the field `query`."""
        return [self._build_hit(one) for one in orjson.loads(body)["query"]["search"]]

    def _build_hit(self, article: Any) -> SearchHit:
        path = quote(article["title"].replace(" ", "_"), safe="/:(),")
        return build_hit(f"{self.base.rstrip('/')}/wiki/{path}", article["title"], article.get("snippet"))


ENGINE = SearchEngine(
    "WIKIPEDIA_URL",
    lambda url: WikipediaProvider(url or ENGLISH_URL),
    is_optional=True,
    covers="encyclopedia articles",
    cost="free",
)

"""Brave's web search."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from offing.web.provider import Asked, Hit, hit


@dataclass(frozen=True, slots=True)
class Brave:
    key: str = field(repr=False)
    base: str = "https://api.search.brave.com"
    name: str = "brave"

    def ask(self, query: str, limit: int) -> Asked:
        headers = {"X-Subscription-Token": self.key, "Accept": "application/json"}
        params: dict[str, str | int] = {"q": query[:400], "count": min(limit, 20)}
        return Asked(f"{self.base}/res/v1/web/search", params, headers)

    def read(self, body: bytes) -> Sequence[Hit]:
        answer = orjson.loads(body)
        found = answer["web"]["results"] if answer["type"] == "search" and "web" in answer else ()
        return [hit(one["url"], one.get("title"), one.get("description"), one.get("page_age")) for one in found]

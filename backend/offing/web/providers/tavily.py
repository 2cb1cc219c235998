"""Tavily's search."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from offing.web.provider import Asked, Hit, hit


@dataclass(frozen=True, slots=True)
class Tavily:
    key: str = field(repr=False)
    base: str = "https://api.tavily.com"
    name: str = "tavily"

    def ask(self, query: str, limit: int) -> Asked:
        headers = {"Authorization": f"Bearer {self.key}"}
        return Asked(f"{self.base}/search", headers=headers, json={"query": query, "max_results": min(limit, 20)})

    def read(self, body: bytes) -> Sequence[Hit]:
        found = orjson.loads(body)["results"]
        return [hit(one["url"], one.get("title"), one.get("content"), one.get("published_date")) for one in found]

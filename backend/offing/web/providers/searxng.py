"""A SearXNG of the operator's own. Its settings must allow the format `json`."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from offing.web.provider import Asked, Hit, hit


@dataclass(frozen=True, slots=True)
class SearXNG:
    base: str
    """Where it listens, such as http://127.0.0.1:8888."""
    name: str = "searxng"

    def ask(self, query: str, limit: int) -> Asked:
        return Asked(f"{self.base.rstrip('/')}/search", params={"q": query, "format": "json"})

    def read(self, body: bytes) -> Sequence[Hit]:
        found = orjson.loads(body)["results"]
        return [hit(one["url"], one.get("title"), one.get("content"), one.get("publishedDate")) for one in found]

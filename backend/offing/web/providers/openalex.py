"""OpenAlex: publications of all fields. An API key is optional and raises the daily allowance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from offing.web.provider import (
    SearchEngine,
    SearchHit,
    SearchRequest,
    build_publication,
    list_words,
    read_optional_object,
)

_FIELDS = "id,doi,display_name,publication_date,abstract_inverted_index,best_oa_location,primary_location"


@dataclass(frozen=True, slots=True)
class OpenAlexProvider:
    api_key: str = field(default="", repr=False)
    """API key. Empty means the smaller allowance without a key."""
    base: str = "https://api.openalex.org"
    name: str = "openalex"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        """Build a request for the words of the query, without the engine's operators."""
        words = " ".join(list_words(query))
        params: dict[str, str | int] = {"search": words, "per_page": min(limit, 20), "select": _FIELDS}
        return SearchRequest(f"{self.base}/works", params | ({"api_key": self.api_key} if self.api_key else {}))

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        return [_build_work(one) for one in orjson.loads(body)["results"]]


ENGINE = SearchEngine(
    "OPENALEX_API_KEY",
    OpenAlexProvider,
    is_optional=True,
    covers="publications in all fields",
    cost="a daily allowance, which is larger with a free key",
)


def _build_work(work: Any) -> SearchHit:
    """Build a hit that refers to an open access copy if there is one."""
    url = _find_url(work.get("best_oa_location")) or _find_url(work.get("primary_location"))
    address = url or work.get("doi") or work["id"]
    abstract = restore_abstract(work.get("abstract_inverted_index"))
    return build_publication(
        address, work.get("display_name"), abstract, work.get("publication_date"), doi=work.get("doi")
    )


def _find_url(location: object) -> str:
    """Return the page or else the PDF of a location. Empty if there is neither."""
    place = read_optional_object(location)
    return place.get("landing_page_url") or place.get("pdf_url") or ""


def restore_abstract(index: object) -> str:
    """Return the text of an inverted index, which maps each word to its positions. Empty for `None`."""
    positions = read_optional_object(index).items()
    return " ".join(word for _, word in sorted((number, word) for word, numbers in positions for number in numbers))

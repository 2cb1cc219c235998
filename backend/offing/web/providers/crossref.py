"""Crossref: publications with a DOI, without an API key. Many records have no abstract."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from offing.web.provider import (
    SearchEngine,
    SearchHit,
    SearchRequest,
    build_doi_url,
    build_publication,
    list_words,
    read_optional_object,
)

_FIELDS = "DOI,title,abstract,issued"


@dataclass(frozen=True, slots=True)
class CrossrefProvider:
    base: str = "https://api.crossref.org"
    name: str = "crossref"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        params: dict[str, str | int] = {
            "query.bibliographic": " ".join(list_words(query)),
            "rows": min(limit, 20),
            "select": _FIELDS,
        }
        return SearchRequest(f"{self.base}/works", params)

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        return [_build_work(one) for one in orjson.loads(body)["message"]["items"]]


ENGINE = SearchEngine(
    "",
    lambda _: CrossrefProvider(),
    covers="publications with a DOI, in all fields",
    cost="free",
)


def _build_work(work: Any) -> SearchHit:
    """Build a hit from a record, whose title is a list of texts."""
    doi, titles = work["DOI"], work.get("title") or ("",)
    return build_publication(
        build_doi_url(doi), titles[0], work.get("abstract"), render_date(work.get("issued")), doi=doi
    )


def render_date(issued: object) -> str:
    """Return a date such as 2026-01-02, or its year or month alone. Empty if the record has none."""
    first = next(iter(read_optional_object(issued).get("date-parts") or ()), None) or ()
    return "-".join(f"{part:02d}" for part in first if part is not None)

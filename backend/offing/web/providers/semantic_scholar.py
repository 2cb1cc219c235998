"""Semantic Scholar: publications of all fields. An API key is optional; without one, all users share a limit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
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

_FIELDS = "title,abstract,url,externalIds,openAccessPdf,publicationDate,year"


@dataclass(frozen=True, slots=True)
class SemanticScholarProvider:
    api_key: str = field(default="", repr=False)
    """API key. Empty means the limit that all users without a key share."""
    base: str = "https://api.semanticscholar.org"
    name: str = "semantic_scholar"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        """Build a request for the words of the query. Hyphens become spaces, because the API matches no others."""
        words = " ".join(list_words(query)).replace("-", " ")
        params: dict[str, str | int] = {"query": words, "limit": min(limit, 20), "fields": _FIELDS}
        headers = {"x-api-key": self.api_key} if self.api_key else {}
        return SearchRequest(f"{self.base}/graph/v1/paper/search", params, headers)

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        """Return the papers. An answer without results has no field `data`."""
        answer = orjson.loads(body)
        return [] if answer["total"] == 0 else [_build_paper(one) for one in answer["data"]]


ENGINE = SearchEngine(
    "SEMANTIC_SCHOLAR_API_KEY",
    SemanticScholarProvider,
    is_optional=True,
    covers="publications in all fields",
    cost="free; without a key, all users share one limit",
)


def _build_paper(paper: Any) -> SearchHit:
    published = paper.get("publicationDate") or str(paper.get("year") or "")
    doi = read_optional_object(paper.get("externalIds")).get("DOI")
    return build_publication(_select_url(paper), paper.get("title"), paper.get("abstract"), published, doi=doi)


def _select_url(paper: Any) -> str:
    """Return the open access PDF, or else arXiv's page, the DOI or the page of Semantic Scholar, in this order."""
    page, identifiers = paper["url"], read_optional_object(paper.get("externalIds"))
    if pdf := read_optional_object(paper.get("openAccessPdf")).get("url"):
        return pdf
    if arxiv := identifiers.get("ArXiv"):
        return f"https://arxiv.org/abs/{arxiv}"
    return build_doi_url(identifiers["DOI"]) if identifiers.get("DOI") else page

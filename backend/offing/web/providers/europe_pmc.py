"""Europe PMC: publications of the life sciences, including PubMed and preprints, without an API key."""

from collections.abc import Iterator, Sequence
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
    parse_doi,
    read_optional_object,
)

_OPEN = frozenset(("OA", "F"))
"""Availability codes of full texts that can be read: open access and free."""


@dataclass(frozen=True, slots=True)
class EuropePmcProvider:
    base: str = "https://www.ebi.ac.uk/europepmc/webservices/rest"
    name: str = "europe_pmc"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        """Build a request for publications that contain all words of the query."""
        params: dict[str, str | int] = {
            "query": " ".join(list_words(query)),
            "format": "json",
            "resultType": "core",
            "pageSize": min(limit, 20),
        }
        return SearchRequest(f"{self.base}/search", params)

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        return [_build_article(one) for one in orjson.loads(body)["resultList"]["result"]]


ENGINE = SearchEngine(
    "",
    lambda _: EuropePmcProvider(),
    covers="life sciences: PubMed, preprints and open full texts",
    cost="free",
)


def _build_article(article: Any) -> SearchHit:
    return build_publication(
        _select_url(article),
        article.get("title"),
        article.get("abstractText"),
        article.get("firstPublicationDate"),
        doi=article.get("doi"),
    )


def _select_url(article: Any) -> str:
    """Return an open full text, or else the abstract in PubMed, the DOI or the record, in this order."""
    source, record = article["source"], article["id"]
    if url := next(_iter_open_urls(article), ""):
        return url
    if source == "MED":
        return f"https://pubmed.ncbi.nlm.nih.gov/{record}/"
    doi = parse_doi(article.get("doi"))
    return build_doi_url(doi) if doi else f"https://europepmc.org/article/{source}/{record}"


def _iter_open_urls(article: Any) -> Iterator[str]:
    """Yield the PDFs that can be read. The pages of Europe PMC need a browser to show their text."""
    for text in read_optional_object(article.get("fullTextUrlList")).get("fullTextUrl") or ():
        if text["availabilityCode"] in _OPEN and text["documentStyle"] == "pdf":
            yield text["url"]

"""The sources of a report and the words that describe them."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from offing.core.report import Citation, Report, ReportStatus, SourceDetails, TextPosition
from offing.core.report_labels.english import ENGLISH
from offing.core.report_sources import (
    describe_date,
    describe_position,
    describe_source,
    list_report_sources,
    map_source_labels,
    sources_to_json,
)
from offing.core.tool import SourceSpan

GUIDE, NOTES = UUID(int=1), UUID(int=2)
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def citation(
    number: int,
    source_id: UUID = GUIDE,
    position: TextPosition | None = None,
    details: SourceDetails | None = None,
) -> Citation:
    return Citation(number, SourceSpan(UUID(int=9), number, number + 4), "word", source_id, "Guide", position, details)


def report(*citations: Citation) -> Report:
    return Report("Title", ReportStatus.COMPLETE, "answered", None, (), citations)


def described(details: SourceDetails) -> str:
    return describe_source(list_report_sources(report(citation(1, details=details)))[0])


def positioned(position: TextPosition | None) -> str:
    return describe_position(citation(1, position=position))


def test_citations_of_a_source_share_its_short_id() -> None:
    cited = report(citation(1, NOTES), citation(2, GUIDE), citation(3, NOTES))
    assert [(s.id, s.source_id) for s in list_report_sources(cited)] == [("S1", NOTES), ("S2", GUIDE)]
    assert map_source_labels(cited) == {1: "S1", 2: "S2", 3: "S1"}
    assert [s["citations"] for s in sources_to_json(cited)] == [[1, 3], [2]]


@pytest.mark.parametrize(
    ("position", "words"),
    [
        (None, ""),
        (TextPosition("Pools \u203a Limits", 0, 12, 14), "section \u201cPools \u203a Limits\u201d, lines 12 to 14"),
        (TextPosition("Guide \u203a Limits"), "section \u201cLimits\u201d"),
        (TextPosition("Guide", 0, 2, 2), "line 2"),
        (TextPosition("", 3, 0, 0), "page 3"),
        (TextPosition("", 0, 7, 7), "line 7"),
        (TextPosition(fraction=0.41), "about 40 % of the way through"),
        (TextPosition(fraction=0.02), "near the beginning"),
        (TextPosition(fraction=0.97), "near the end"),
        (TextPosition("Pools", 3, 7, 7, is_erased=True), "The source was deleted from the library."),
    ],
)
def test_a_position_is_said_in_words(position: TextPosition | None, words: str) -> None:
    assert positioned(position) == words


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (SourceDetails(), ""),
        (
            SourceDetails("https://www.example.org/pools", True, "Ann Lee", "2024-05", MARCH),
            "by Ann Lee \u00b7 example.org \u00b7 https://www.example.org/pools \u00b7 dated May 2024 \u00b7 "
            "retrieved 1 March 2026",
        ),
        (SourceDetails("docs/pool.md", retrieved_at=MARCH), "docs/pool.md \u00b7 added to the library 1 March 2026"),
        (SourceDetails("Guide"), ""),
        (SourceDetails("https://[broken", True), "https://[broken"),
    ],
)
def test_a_source_is_described_by_what_is_known(details: SourceDetails, words: str) -> None:
    assert described(details) == words


@pytest.mark.parametrize(
    ("published", "words"), [("2024", "2024"), ("2024-05", "May 2024"), ("2024-05-07", "7 May 2024")]
)
def test_a_date_is_as_exact_as_it_is_known(published: str, words: str) -> None:
    assert describe_date(published, ENGLISH) == words

"""Claims and conflicts are computed once for a version that is shown, and not once for each part of it."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import pytest

from offing.api.serializers import serialize_report
from offing.core.conflicts import find_conflicts
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.report_document import build_report_document
from offing.core.report_formats import render_html, render_markdown, report_to_json
from offing.core.tool import SourceSpan
from offing.services.reports import analyze_report
from offing.storage.reports import VerifiedReport

READS: Counter[int] = Counter()
"""How often the quote of each citation was read, by its number."""


class CountedCitation(Citation):
    """A citation that counts how often its quote is read. The search for conflicts reads each quote once."""

    __slots__ = ()

    @property
    def quote(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        READS[self.number] += 1
        return Citation.quote.__get__(self)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]

    @quote.setter
    def quote(self, text: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        Citation.quote.__set__(self, text)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


QUOTES = ("The Heron carries 40 cars.", "The Heron carries 50 cars.")


@pytest.fixture
def report() -> Report:
    citations = tuple(
        CountedCitation(n, SourceSpan(UUID(int=7), 100 * n, 100 * n + len(q)), q, UUID(int=n), "Ferries")
        for n, q in enumerate(QUOTES, 1)
    )
    sentences = tuple(Sentence(f"s{one.number}", QUOTES[one.number - 1], (one.number,)) for one in citations)
    READS.clear()
    return Report("Ferries", ReportStatus.COMPLETE, "answered", None, (Section("", sentences),), citations)


def test_the_search_for_conflicts_reads_each_quote_once(report: Report) -> None:
    assert find_conflicts(report.citations)
    assert READS == {1: 1, 2: 1}


async def test_a_response_reads_each_quote_once_to_compare_it_and_once_to_return_it(report: Report) -> None:
    stored = VerifiedReport(1, report, frozenset(), frozenset(), datetime(2026, 1, 1, tzinfo=UTC), 1)
    served = serialize_report(UUID(int=1), await analyze_report(stored))
    assert len(served.conflicts) == 1
    assert "Conflicts between sources" in served.conflict_search
    assert READS == {1: 2, 2: 2}


def test_each_file_compares_the_quotes_once(report: Report) -> None:
    created_at = datetime(2026, 1, 1, tzinfo=UTC)
    build = partial(build_report_document, created_at=created_at)
    writers: tuple[Callable[[Report], object], ...] = (render_markdown, render_html, report_to_json, build)
    for write in writers:
        READS.clear()
        assert "Conflicts between sources" in str(write(report)) or write is report_to_json
        # Once to compare it, once for the line of the conflict, and once in the list of sources.
        assert READS == {1: 3, 2: 3}, write

"""What of a report leaves with a share link."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from offing.core.report import Citation, Report, ReportRevision, ReportStatus, SourceDetails
from offing.core.report_sources import describe_source, list_report_sources
from offing.core.shared_report import PRIVATE_PAGE_TITLE, build_shared_report
from offing.core.tool import SourceSpan

AT = datetime(2026, 11, 21, tzinfo=UTC)


def report_on(title: str, details: SourceDetails) -> Report:
    citation = Citation(1, SourceSpan(uuid4(), 3, 9), "Quote", uuid4(), title, source=details)
    revision = ReportRevision(2, 0)
    return Report("T", ReportStatus.COMPLETE, "answered", None, (), (citation,), revision=revision)


def shared(title: str, details: SourceDetails) -> tuple[str, str, str]:
    """Title, name and description of the only source of a shared report."""
    (source,) = list_report_sources(build_shared_report(report_on(title, details)))
    return source.title, source.details.name, describe_source(source)


def test_a_file_has_its_title_and_no_folder() -> None:
    details = SourceDetails("clients/secret/plan.pdf", False, "Ada Lee", "2026-03", AT)
    assert shared("Plan", details) == ("Plan", "", "by Ada Lee \u00b7 dated March 2026")
    assert shared("clients/secret/plan.pdf", details)[0] == "plan.pdf"


def test_a_public_page_keeps_its_address_and_date() -> None:
    title, name, description = shared("Pool", SourceDetails("https://nodejs.org/pool", True, "", "", AT))
    assert (title, name) == ("Pool", "https://nodejs.org/pool")
    assert "nodejs.org" in description
    assert "retrieved 21 November 2026" in description


@pytest.mark.parametrize(
    "address",
    [
        "http://10.1.2.3/wiki",
        "http://127.0.0.1:8080/",
        "http://[fd00::1]/",
        "http://wiki/secret",
        "https://wiki.corp/secret",
        "https://wiki.internal/secret",
        "http://printer.local/",
        "javascript:alert(1)",
        "https://user:password@host.example/",
    ],
)
def test_an_address_of_a_private_network_is_left_out(address: str) -> None:
    details = SourceDetails(address, True, "", "", AT)
    assert shared("Wiki", details) == ("Wiki", "", "")
    assert shared(address, details) == (PRIVATE_PAGE_TITLE, "", "")


def test_ids_and_the_history_of_a_report_are_left_out() -> None:
    report = build_shared_report(report_on("Plan", SourceDetails("plan.md")))
    (citation,) = report.citations
    assert (citation.source_id, citation.span.text_id) == (UUID(int=1), UUID(int=0))
    assert (report.follow_up, report.revision) == (None, None)

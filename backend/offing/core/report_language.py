"""The language of a report, as it is known."""

from offing.core.report import Report
from offing.core.text_direction import guess_language


def find_report_language(report: Report, requested: str | None) -> str:
    """Return the tag of the language that was requested for a report, otherwise of the script that it is written in.

    `requested` is `None` if the request named no language. `und` means undetermined.
    """
    return requested or guess_language(" ".join([report.title, *(sentence.text for sentence in report.sentences())]))

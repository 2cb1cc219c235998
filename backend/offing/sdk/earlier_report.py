"""The earlier report that a follow-up is about, as its run sees it."""

from dataclasses import dataclass
from uuid import UUID

from offing.core.follow_up import FollowUpKind, KindChooser
from offing.core.report import Report, ReportDraft

EARLIER_REPORT = "earlier_report"
"""Tool name in the step that loads the report. It cannot be called."""


@dataclass(frozen=True, slots=True)
class EarlierReport:
    """The earlier report. Its text was made from documents and is untrusted."""

    run_id: UUID
    version: int
    question: str
    """Question of the earlier run."""
    report: Report
    """The report as it was stored, with its own numbers of citations."""
    draft: ReportDraft
    """The same report as a draft, whose citations name passages of this run. Those of deleted texts are left out."""
    deleted_sources: tuple[str, ...] = ()
    """Titles of documents that the report cites and that were deleted since."""


@dataclass(frozen=True, slots=True)
class FollowUpResult:
    """What a submitted report has to do with an earlier one."""

    kind: FollowUpKind
    chosen_by: KindChooser
    earlier: EarlierReport
    unchanged_because: str = ""
    """Why the report could not be changed as requested. Empty means that it could."""

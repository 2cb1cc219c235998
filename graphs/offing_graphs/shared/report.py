"""Reports of quotes, which need no model, and the parts of reports that all graphs share."""

from offing.sdk import Evidence, ReportDraft, RunInfo, shorten_line
from offing_graphs.extractive import report as extractive_report
from offing_graphs.extractive.analysis import analyze_task
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.schemas import MemoryRecord, RetrievedPassage, TaskContext, WriterInput
from offing_graphs.shared.task import task_from_run

MAX_TITLE_CHARS = 120


def build_quote_report(
    task: TaskContext,
    evidence: tuple[RetrievedPassage, ...],
    memory: tuple[MemoryRecord, ...] = (),
    reason: str = "",
) -> ReportDraft:
    """Build a report of quotes. It works for any stop reason and any evidence, including none.

    `reason` is a `StopReason`, whose limit the report states. Empty means that it states none.
    """
    inputs = WriterInput(
        question=task.question,
        earlier=task.earlier,
        user_messages=task.user_messages,
        report_style=task.report_style,
        analysis=analyze_task(task),
        memory=memory,
        evidence=evidence,
        reason=reason,
    )
    return extractive_report.build_report(inputs)


def build_fallback_report(run: RunInfo, evidence: tuple[Evidence, ...]) -> ReportDraft:
    """Build a report of the retrieved evidence for a run that ended before it could write one."""
    return build_quote_report(task_from_run(run), passages_from_evidence(evidence))


def add_title(draft: ReportDraft, question: str) -> ReportDraft:
    """Return the draft with a title. A draft without one gets the question."""
    return draft if draft.title.strip() else draft.model_copy(update={"title": shorten_line(question, MAX_TITLE_CHARS)})

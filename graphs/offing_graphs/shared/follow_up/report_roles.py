"""Roles that write a report from an earlier one: an answer to a question on it, an edit, and a merged report."""

from collections.abc import Callable
from typing import Any, TypeVar

from offing.sdk import (
    REPORT_ANSWER_TOKENS,
    Headline,
    InvalidOutput,
    Message,
    PromptFormat,
    ReportDraft,
    Role,
    SpanKind,
    StepKind,
    shorten_line,
)
from offing_graphs.shared.report_repairs import repair_draft
from offing_graphs.shared.schemas import EvidenceInput, RetrievedPassage, TaskContext
from offing_graphs.shared.tagged_text import build_text_format, parse_whole
from offing_graphs.shared.text_repairs import repair_report
from offing_graphs.shared.text_reports import parse_report, render_report


class ReportInput(TaskContext, EvidenceInput):
    """The input of a role that writes a report from an earlier one."""

    report: ReportDraft
    """The earlier report. Its citations name passages of this run."""
    evidence: tuple[RetrievedPassage, ...] = ()
    """Passages that the report may cite."""


InputT = TypeVar("InputT", bound=ReportInput)


def build_report_role(
    writer: Role[Any, Any],
    inputs: type[InputT],
    label: str,
    render: Callable[[InputT], tuple[Message, ...]],
    format_rule: str,
) -> Role[InputT, ReportDraft]:
    """Return a role with which the engine of a graph's writer writes a report from an earlier one."""
    return Role(
        writer.name,
        inputs,
        ReportDraft,
        render,
        lambda output: Headline(shorten_line(output.title), shorten_line(output.answer)),
        step_kind=StepKind.ROLE_CALL,
        label=label,
        prompt_formats=(_build_format(render, format_rule),),
        answer_tokens=REPORT_ANSWER_TOKENS,
        default_format="text",
        repair_output=lambda draft, source: repair_draft(draft, source.evidence),
    )


def _build_format(
    render: Callable[[InputT], tuple[Message, ...]], format_rule: str
) -> PromptFormat[InputT, ReportDraft]:
    def parse(text: str, inputs: InputT) -> ReportDraft | InvalidOutput:
        block = parse_whole(text)
        return parse_report(block.text, inputs.report.title) if block else InvalidOutput("The report is empty.")

    return build_text_format(
        render,
        format_rule,
        parse,
        lambda output, _inputs: render_report(output),
        SpanKind.ANSWER,
        lambda text, inputs: repair_report(text, inputs.evidence),
    )

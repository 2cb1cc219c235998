"""Text formats of the calls that write a report section by section."""

import re
from collections.abc import Sequence
from typing import Any

from offing.sdk import DraftSection, InvalidOutput, RepairedText, ReportDraft, SpanKind
from offing_graphs.shared.findings import extract_evidence_ids
from offing_graphs.shared.report_blocks import HEADING, collapse_white_space, parse_sections, render_section
from offing_graphs.shared.report_repairs import repair_draft
from offing_graphs.shared.schemas import WriterInput
from offing_graphs.shared.section_prompts import render_opening_prompt, render_outline_prompt, render_section_prompt
from offing_graphs.shared.section_schemas import Opening, OpeningInput, Outline, SectionInput, WrittenSection
from offing_graphs.shared.tagged_text import build_text_format, parse_whole, validate_output
from offing_graphs.shared.text_repairs import repair_report
from offing_graphs.shared.text_reports import SECTION_BODY_RULE, parse_report, render_report, split_limits

OUTLINE_FORMAT_RULE = """# A title
## The heading of the first section
Answers: what it answers, in one sentence
Evidence: E1, E4, E12
## The heading of the next section
Answers: what it answers, in one sentence
Evidence: E2, E4"""
SECTION_FORMAT_RULE = f"""## The heading of the section
{SECTION_BODY_RULE}

Limits: what could not be established for this section. Leave this line out when there is nothing."""
OPENING_FORMAT_RULE = """# A title
The short answer in one paragraph, with the ids of the passages that support it, like [E3].

Limits: what could not be established. Leave this line out when there is nothing."""

_FIELD = re.compile(r"[-*\s]*\**(Answers|Evidence)\**\s*:\**\s*(.*)", re.IGNORECASE)


def parse_text_outline(text: str, inputs: WriterInput) -> Outline | InvalidOutput:
    """Parse a title and sections with their fields. Lines beside them are ignored."""
    title, sections = "", list[dict[str, Any]]()
    block = parse_whole(text)
    for line in map(str.strip, block.text.splitlines() if block else ()):
        if line.startswith("# "):
            title = title or line[2:].strip()
        elif heading := HEADING.fullmatch(line):
            sections.append({"heading": heading.group(1).strip()})
        elif (field := _FIELD.fullmatch(line)) and sections:
            name, value = field.group(1).lower(), field.group(2).strip()
            sections[-1][name] = value if name == "answers" else extract_evidence_ids(value)
    if not sections:
        return InvalidOutput('There is no section. Begin each with a line "## A heading".')
    return validate_output(Outline, {"title": title or inputs.question[:120], "sections": sections})


def render_text_outline(output: Outline, _inputs: WriterInput) -> str:
    lines = [f"# {collapse_white_space(output.title)}"]
    for one in output.sections:
        lines += [f"## {one.heading}", f"Answers: {one.answers}", f"Evidence: {', '.join(one.evidence)}"]
    return "\n".join(lines)


def parse_text_section(text: str, inputs: SectionInput) -> WrittenSection | InvalidOutput:
    """Parse the section. It keeps the heading of the outline; further headings in it begin further parts."""
    block = parse_whole(text)
    lines: Sequence[str] = block.text.splitlines() if block else ()
    while lines and (not lines[0].strip() or lines[0].startswith("# ") or HEADING.fullmatch(lines[0].strip())):
        lines = lines[1:]
    body, limits = split_limits(lines)
    parts = parse_sections([f"## {inputs.heading}", *body])
    if not parts:
        return InvalidOutput("The section is empty. Write its paragraphs below its heading.")
    return WrittenSection(parts=parts, limits=limits)


def render_text_section(output: WrittenSection, _inputs: SectionInput) -> str:
    limits = [f"Limits: {collapse_white_space(output.limits)}"] if output.limits.strip() else []
    return "\n".join([*(line for part in output.parts for line in render_section(part)), *limits])


def parse_text_opening(text: str, inputs: OpeningInput) -> Opening | InvalidOutput:
    """Parse title, short answer and limits. Sections that the model repeats are ignored."""
    block = parse_whole(text)
    draft = parse_report(block.text if block else "", inputs.title)
    if isinstance(draft, InvalidOutput):
        return draft
    fields = {"title": draft.title, "answer": draft.answer, "limits": draft.limits}
    return validate_output(Opening, fields | {"answer_citations": draft.answer_citations})


def render_text_opening(output: Opening, _inputs: OpeningInput) -> str:
    return render_report(
        ReportDraft(
            title=output.title,
            answer=output.answer,
            answer_citations=output.answer_citations,
            sections=(),
            limits=output.limits,
        )
    )


def repair_section(output: WrittenSection, inputs: SectionInput) -> tuple[WrittenSection, tuple[str, ...]]:
    """Repair the citations of a parsed section, and give it the heading of the outline."""
    draft, repairs = repair_draft(ReportDraft(title="", sections=output.parts), inputs.passages)
    return output.model_copy(update={"parts": rename_first(draft.sections, inputs.heading)}), repairs


def rename_first(parts: Sequence[DraftSection], heading: str) -> tuple[DraftSection, ...]:
    """Return the parts of a section under its heading in the outline."""
    return (parts[0].model_copy(update={"heading": heading}), *parts[1:])


def _repair_section_text(text: str, inputs: SectionInput) -> RepairedText:
    return repair_report(text, inputs.passages)


OUTLINE_TEXT_FORMAT = build_text_format(
    render_outline_prompt, OUTLINE_FORMAT_RULE, parse_text_outline, render_text_outline, SpanKind.PLAN
)
SECTION_TEXT_FORMAT = build_text_format(
    render_section_prompt,
    SECTION_FORMAT_RULE,
    parse_text_section,
    render_text_section,
    SpanKind.ANSWER,
    _repair_section_text,
)
OPENING_TEXT_FORMAT = build_text_format(
    render_opening_prompt,
    OPENING_FORMAT_RULE,
    parse_text_opening,
    render_text_opening,
    SpanKind.ANSWER,
    lambda text, _inputs: repair_report(text),
)

"""Tool calls and reports as plain text, for the text formats of all graphs."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from offing.sdk import InvalidOutput, ReportDraft, shorten_line
from offing_graphs.shared.prompt_parts import render_json
from offing_graphs.shared.report_blocks import (
    collapse_white_space,
    extract_citations,
    is_row,
    parse_sections,
    render_cited,
    render_section,
)

CALL_FORMAT_RULE = "the tool's name, a space, and its arguments as one JSON object on the same line"
SECTION_BODY_RULE = """\
Connected prose. Each statement of fact is followed by its citation. [E3: "words copied letter by letter from \
passage E3"] The next sentence goes on in the same paragraph. [E3: "other words"] [E5: "words of passage E5"]

An empty line begins the next paragraph.
- An item, where a list serves. [E5: "words"]

| A table | where it serves |
| --- | --- |
| a cell | a cell [E7: "words"] |"""
"""How the body of a section is written, with all that may stand in it."""
REPORT_FORMAT_RULE = f"""# A title
The short answer in a sentence or two, with the ids of the passages it stands on, like [E3].

## A heading
{SECTION_BODY_RULE}

Limits: what could not be established. Leave this line out when there is nothing."""
REPORT_EXAMPLE = (
    'Write it like this: a line "# A title", the short answer, then sections that begin with "## A heading".'
)

_CALL = re.compile(r"([\w.\-]+)\s*(\{.*\})?", re.DOTALL)
_BEGINS_BODY = re.compile(r"#|[-*+\u2022]\s|\d{1,3}[.)]\s")


def render_call(tool: str, args: Mapping[str, Any]) -> str:
    return f"{tool} {render_json(dict(args))}"


def parse_call(text: str) -> tuple[str, dict[str, Any]] | InvalidOutput:
    """Parse a tool name and its arguments.

    Without a JSON object after the name there are no arguments.
    """
    match = _CALL.fullmatch(text.strip())
    if match is None:
        return InvalidOutput(f"A call is {CALL_FORMAT_RULE}, and not: {shorten_line(text, 80)!r}")
    try:
        args = json.loads(match.group(2) or "{}")
    except ValueError as error:
        return InvalidOutput(f"The arguments of {match.group(1)} are no JSON object: {shorten_line(str(error), 120)}")
    return match.group(1), args


def render_report(draft: ReportDraft) -> str:
    """Render a draft as text. White space within sentences and quotes becomes single spaces."""
    sections = [line for section in draft.sections for line in render_section(section)]
    limits = [f"Limits: {collapse_white_space(draft.limits)}"] if draft.limits.strip() else []
    lead = render_cited(draft.answer, draft.answer_citations)
    return "\n".join([f"# {collapse_white_space(draft.title)}", *([lead] if lead else []), *sections, *limits])


def parse_report(text: str, title: str) -> ReportDraft | InvalidOutput:
    """Parse a draft from text.

    `title` is used if the text has none. What stands before the first section is the short answer; a
    text without headings is one, too, up to its first empty line.
    """
    lines = text.strip().splitlines()
    if not text.strip():
        return InvalidOutput("The report is empty. " + REPORT_EXAMPLE)
    if lines[0].startswith("# "):
        title, lines = lines[0][2:].strip(), lines[1:]
    body, limits = split_limits(lines)
    lead, rest = _split_lead(body)
    answer, citations = extract_citations(" ".join(line.strip() for line in lead))
    return ReportDraft(
        title=title, answer=answer, answer_citations=citations, sections=parse_sections(rest), limits=limits
    )


def split_limits(lines: Sequence[str]) -> tuple[Sequence[str], str]:
    """Return the lines without those of the limits, and the limits. Empty limits mean that there are none."""
    limits = next((line.strip().partition(":")[2].strip() for line in lines if _is_limits(line)), "")
    return [line for line in lines if not _is_limits(line)], limits


def _is_limits(line: str) -> bool:
    return line.strip().startswith("Limits:")


def _split_lead(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the first paragraph before any section, list or table, and the lines after it."""
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    end = start
    while end < len(lines) and (line := lines[end].strip()) and not _BEGINS_BODY.match(line) and not is_row(line):
        end += 1
    return lines[start:end], lines[end:]

"""Tool calls and reports as plain text, for the text formats of all graphs."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from offing.sdk import DraftCitation, DraftSection, DraftSentence, InvalidOutput, ReportDraft, shorten_line
from offing_graphs.shared.prompt_parts import render_json

CALL_FORMAT_RULE = "the tool's name, a space, and its arguments as one JSON object on the same line"
REPORT_FORMAT_RULE = """# A title
The short answer in a sentence or two, with the ids of the passages it stands on, like [E3].
## A heading
- One statement of fact. [E3: "words copied letter by letter from passage E3"]
- Another one. [E3: "other words"] [E5: "words of passage E5"]
Limits: what could not be established. Leave this line out when there is nothing."""

_CALL = re.compile(r"([\w.\-]+)\s*(\{.*\})?", re.DOTALL)
_CITED = re.compile(r"\s*\[(E\d+):\s*\"(.*?)(?<!\\)\"\]", re.DOTALL)


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
    sections = [
        line
        for s in draft.sections
        for line in (f"## {_collapse_white_space(s.heading)}", *map(_render_bullet, s.sentences))
    ]
    limits = [f"Limits: {_collapse_white_space(draft.limits)}"] if draft.limits.strip() else []
    answer = [_collapse_white_space(draft.answer)] if draft.answer.strip() else []
    return "\n".join([f"# {_collapse_white_space(draft.title)}", *answer, *sections, *limits])


def parse_report(text: str, title: str) -> ReportDraft | InvalidOutput:
    """Parse a draft from text.

    `title` is used if the text has none. A text without headings is a short answer.
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return InvalidOutput("The report is empty.")
    if lines[0].startswith("# "):
        title, lines = lines[0][2:].strip(), lines[1:]
    limits = next((line.partition(":")[2].strip() for line in lines if line.startswith("Limits:")), "")
    body = [line for line in lines if not line.startswith("Limits:")]
    first = next((n for n, line in enumerate(body) if line.startswith(("##", "- "))), len(body))
    return ReportDraft(
        title=title, answer=" ".join(body[:first]), sections=_parse_sections(body[first:]), limits=limits
    )


def _parse_sections(lines: Iterable[str]) -> tuple[DraftSection, ...]:
    sections: list[tuple[str, list[DraftSentence]]] = []
    for line in lines:
        if line.startswith("##"):
            sections.append((line[2:].strip(), []))
            continue
        if not sections:
            sections.append(("", []))
        sections[-1][1].append(_parse_sentence(line.removeprefix("- ")))
    return tuple(DraftSection(heading=h, sentences=tuple(s)) for h, s in sections if s)


def _parse_sentence(line: str) -> DraftSentence:
    citations = tuple(DraftCitation(evidence=id, quote=_unescape(quote)) for id, quote in _CITED.findall(line))
    return DraftSentence(text=_CITED.sub("", line).strip(), citations=citations)


def _render_bullet(sentence: DraftSentence) -> str:
    marks = [
        f"[{c.evidence}: {json.dumps(_collapse_white_space(c.quote), ensure_ascii=False)}]" for c in sentence.citations
    ]
    return " ".join(["-", _collapse_white_space(sentence.text), *marks])


def _unescape(quote: str) -> str:
    """Remove JSON escapes from a quote.

    Models often copy words without escapes; a quote that is no JSON string is returned
    unchanged.
    """
    try:
        return str(json.loads(f'"{quote}"'))
    except ValueError:
        return quote


def _collapse_white_space(text: str) -> str:
    return " ".join(text.split())

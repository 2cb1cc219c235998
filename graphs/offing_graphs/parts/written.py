"""Tool calls and reports as plain text, written and read back: the same for every flow's plain forms."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from offing.sdk import DraftCitation, DraftSection, DraftSentence, ReportDraft, Unusable, shortened
from offing_graphs.parts.prompting import compact_json

CALL_RULE = "the tool's name, a space, and its arguments as one JSON object on the same line"
REPORT_RULE = """# A title
The short answer in a sentence or two, with the ids of the passages it stands on, like [E3].
## A heading
- One statement of fact. [E3: "words copied letter by letter from passage E3"]
- Another one. [E3: "other words"] [E5: "words of passage E5"]
Limits: what could not be established. Leave this line out when there is nothing."""

_CALL = re.compile(r"([\w.\-]+)\s*(\{.*\})?", re.DOTALL)
_CITED = re.compile(r"\s*\[(E\d+):\s*\"(.*?)(?<!\\)\"\]", re.DOTALL)


def write_call(tool: str, args: Mapping[str, Any]) -> str:
    return f"{tool} {compact_json(dict(args))}"


def read_call(text: str) -> tuple[str, dict[str, Any]] | Unusable:
    """The tool's name and its arguments; none where no object follows the name."""
    match = _CALL.fullmatch(text.strip())
    if match is None:
        return Unusable(f"A call is {CALL_RULE}, and not: {shortened(text, 80)!r}")
    try:
        args = json.loads(match.group(2) or "{}")
    except ValueError as error:
        return Unusable(f"The arguments of {match.group(1)} are no JSON object: {shortened(str(error), 120)}")
    return match.group(1), args


def write_report(draft: ReportDraft) -> str:
    """The draft as text; white space within its sentences and quotes becomes single spaces."""
    sections = [line for s in draft.sections for line in (f"## {_line(s.heading)}", *map(_bullet, s.sentences))]
    limits = [f"Limits: {_line(draft.limits)}"] if draft.limits.strip() else []
    answer = [_line(draft.answer)] if draft.answer.strip() else []
    return "\n".join([f"# {_line(draft.title)}", *answer, *sections, *limits])


def read_report(text: str, title: str) -> ReportDraft | Unusable:
    """The draft that a text holds; `title` is for one that names none. A text without headings is a short answer."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return Unusable("The report is empty.")
    if lines[0].startswith("# "):
        title, lines = lines[0][2:].strip(), lines[1:]
    limits = next((line.partition(":")[2].strip() for line in lines if line.startswith("Limits:")), "")
    body = [line for line in lines if not line.startswith("Limits:")]
    first = next((n for n, line in enumerate(body) if line.startswith(("##", "- "))), len(body))
    return ReportDraft(title=title, answer=" ".join(body[:first]), sections=_sections(body[first:]), limits=limits)


def _sections(lines: Iterable[str]) -> tuple[DraftSection, ...]:
    sections: list[tuple[str, list[DraftSentence]]] = []
    for line in lines:
        if line.startswith("##"):
            sections.append((line[2:].strip(), []))
            continue
        if not sections:
            sections.append(("", []))
        sections[-1][1].append(_sentence(line.removeprefix("- ")))
    return tuple(DraftSection(heading=h, sentences=tuple(s)) for h, s in sections if s)


def _sentence(line: str) -> DraftSentence:
    citations = tuple(DraftCitation(evidence=id, quote=_unescaped(quote)) for id, quote in _CITED.findall(line))
    return DraftSentence(text=_CITED.sub("", line).strip(), citations=citations)


def _bullet(sentence: DraftSentence) -> str:
    marks = [f"[{c.evidence}: {json.dumps(_line(c.quote), ensure_ascii=False)}]" for c in sentence.citations]
    return " ".join(["-", _line(sentence.text), *marks])


def _unescaped(quote: str) -> str:
    """Models copy words as they are, without the escapes of JSON."""
    try:
        return str(json.loads(f'"{quote}"'))
    except ValueError:
        return quote


def _line(text: str) -> str:
    return " ".join(text.split())

"""How a checked report reads as a file: Markdown, a page of HTML that stands alone, and JSON.

The only home of these forms. Every word of a report may come from a document or a model, so each is escaped: no link,
image, heading or tag can come out of content. Pure.
"""

import html
import re
from typing import Any

from offing.core.report import Citation, Report, ReportScore, ReportStatus, Section, Sentence
from offing.core.run import StopReason

ENDINGS: dict[str, str] = {
    StopReason.ANSWERED: "The evidence was judged sufficient.",
    StopReason.NOTHING_FOUND: "No source was found that answers the question.",
    StopReason.TURN_LIMIT: "The limit on turns was reached.",
    StopReason.TOKEN_LIMIT: "The limit on tokens was reached.",
    StopReason.SPEND_LIMIT: "The run's money was spent.",
    StopReason.TENANT_SPEND_LIMIT: "The spending cap of the day was reached.",
    StopReason.TIME_LIMIT: "The time was over.",
    StopReason.CONTEXT_LIMIT: "The work outgrew the space that its flow allows.",
    StopReason.PROVIDER_DOWN: "The model's provider gave no usable answer.",
    StopReason.INVALID_OUTPUT: "The model did not answer in the form that was needed.",
    StopReason.ASKED_TO_WRITE: "A person asked for what there was.",
    StopReason.CANCELLED: "A person cancelled the run.",
    StopReason.GRAPH_ERROR: "The graph failed.",
    StopReason.NO_PROGRESS: "Several workers took the run and none got further.",
}
"""Each reason to stop as a sentence."""

UNSUPPORTED = "no source"

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ACTIVE = re.compile(
    r"[\\`*\[\]<~$]|(?<!\w)_|_(?!\w)|&(?=[#\w])|:(?=//)|@(?=\w)"  # where they can mean anything, and only there
)
_OPENING = re.compile(r"^(\d{1,9})([.)])|^([-+=#>:|])")
_ADDRESS = re.compile(r"\bwww(?=\.)", re.IGNORECASE)


def to_markdown(report: Report) -> str:
    """CommonMark: markers such as [1] in the text, and under it each citation with source, span and quote."""
    blocks = [f"# {_md(report.title)}", f"*{_md(standing(report))}*"]
    if report.answer:
        blocks.append(_md_sentence(report.answer))
    for section in report.sections:
        blocks += [f"## {_md(section.heading)}", *(_md_sentence(s) for s in section.sentences)]
    if report.limits:
        blocks += ["## Limits", _md(report.limits)]
    if report.citations:
        blocks += ["## Sources", *(_md_citation(c) for c in report.citations)]
    if report.written_by:
        blocks.append(f"*Written by {_md(report.written_by)}.*")
    return "\n\n".join(blocks) + "\n"


def to_html(report: Report) -> str:
    """A page that needs nothing else and runs nothing."""
    answer = [f'<p class="answer" dir="auto">{_html_sentence(report.answer)}</p>'] if report.answer else []
    limits = [f'<h2>Limits</h2><p dir="auto">{_text(report.limits)}</p>'] if report.limits else []
    by = [f"<p><small>Written by {_text(report.written_by)}.</small></p>"] if report.written_by else []
    sources = "".join(map(_html_citation, report.citations))
    body = [
        f'<h1 dir="auto">{_text(report.title)}</h1>',
        f'<p class="state">{_text(standing(report))}</p>',
        *answer,
        *map(_html_section, report.sections),
        *limits,
        *([f"<h2>Sources</h2><ol>{sources}</ol>"] if sources else []),
        *by,
    ]
    return HEAD.format(title=_text(report.title), style=STYLE) + "\n".join(body) + "\n</main></body></html>\n"


def to_json(report: Report) -> dict[str, Any]:
    """Everything, with the evidence: quotes exactly as they are stored, spans in code points, end excluded."""
    return {
        "title": report.title,
        "status": report.status.value,
        "reason": report.reason,
        "answer": _json_sentence(report.answer) if report.answer else None,
        "sections": [
            {"heading": s.heading, "sentences": [_json_sentence(one) for one in s.sentences]} for s in report.sections
        ],
        "citations": [_json_citation(c) for c in report.citations],
        "limits": report.limits,
        "written_by": report.written_by,
        "score": score(report).model_dump(),
    }


def score(report: Report) -> ReportScore:
    """How much of the report stands on sources."""
    sentences = report.sentences()
    supported = sum(s.supported for s in sentences)
    return ReportScore(sentences=len(sentences), supported=supported, citations=len(report.citations))


def standing(report: Report) -> str:
    """Whether the report is complete, and why the run ended, in words."""
    ending = ENDINGS.get(report.reason, f"The run ended: {report.reason}.")
    return f"{'Complete' if report.status is ReportStatus.COMPLETE else 'Partial'} report. {ending}"


def _line(text: str) -> str:
    """On one line, without control characters and marks that turn the writing's direction."""
    return " ".join(_CONTROL.sub("", text).split())


def _md(text: str) -> str:
    escaped = _ACTIVE.sub(lambda m: "\\" + m.group(), _line(text))
    escaped = _ADDRESS.sub(lambda m: m.group() + "\\", escaped)
    return _OPENING.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", escaped)


def _md_sentence(sentence: Sentence) -> str:
    marks = "".join(f"[{number}]" for number in sentence.citations)
    return f"{_md(sentence.text)} {marks or f'*({_md(_unsupported(sentence))})*'}"


def _unsupported(sentence: Sentence) -> str:
    return f"{UNSUPPORTED}: {' '.join(sentence.rejected)}" if sentence.rejected else UNSUPPORTED


def _md_citation(citation: Citation) -> str:
    where = f"characters {citation.span.start} to {citation.span.end}"
    ids = f"source {citation.source}, text {citation.span.artefact}"
    return f"{citation.number}. **{_md(citation.title)}**, {where} ({ids})\n   > {_md(citation.quote)}"


def _text(text: str) -> str:
    return html.escape(_CONTROL.sub("", text), quote=True)


def _html_section(section: Section) -> str:
    sentences = "".join(f'<p dir="auto">{_html_sentence(s)}</p>' for s in section.sentences)
    return f'<section><h2 dir="auto">{_text(section.heading)}</h2>{sentences}</section>'


def _html_sentence(sentence: Sentence) -> str:
    marks = "".join(f'<sup><a href="#c{n}">[{n}]</a></sup>' for n in sentence.citations)
    return f'<span id="{_text(sentence.id)}">{_text(sentence.text)}</span> ' + (
        marks or f'<em class="unsupported">({_text(_unsupported(sentence))})</em>'
    )


def _html_citation(citation: Citation) -> str:
    where = f"characters {citation.span.start} to {citation.span.end}"
    ids = f"source {citation.source}, text {citation.span.artefact}"
    return (
        f'<li id="c{citation.number}" value="{citation.number}"><b dir="auto">{_text(citation.title)}</b>, {where} '
        f'<small>{ids}</small><blockquote dir="auto">{_text(citation.quote)}</blockquote></li>'
    )


def _json_sentence(sentence: Sentence) -> dict[str, Any]:
    return {
        "id": sentence.id,
        "text": sentence.text,
        "citations": list(sentence.citations),
        "supported": sentence.supported,
        "rejected": list(sentence.rejected),
    }


def _json_citation(citation: Citation) -> dict[str, Any]:
    return {
        "number": citation.number,
        "source_id": str(citation.source),
        "artefact_id": str(citation.span.artefact),
        "title": citation.title,
        "start": citation.span.start,
        "end": citation.span.end,
        "quote": citation.quote,
    }


STYLE = (
    "body{margin:0;background:#fbfaf7;color:#1d2433;font:17px/1.6 Georgia,serif}"
    "main{max-width:44rem;margin:3rem auto;padding:0 1.25rem}"
    "h1,h2{line-height:1.25;font-weight:600}h1{font-size:1.7rem}h2{font-size:1.15rem;margin-top:2rem}"
    ".state{color:#5b6475}.answer{font-size:1.1rem}.unsupported{color:#8a5a00}small{color:#5b6475}"
    "blockquote{margin:.4rem 0 1rem;padding-left:.9rem;border-left:3px solid #c9d3e0;white-space:pre-wrap}"
    "a{color:#1f5f8b}@media(prefers-color-scheme:dark){body{background:#10151d;color:#e4e8ef}a{color:#8fc1e6}"
    ".state,small{color:#9aa5b5}.unsupported{color:#e0b060}blockquote{border-color:#37445a}}"
)
HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width"><title>{title}</title><style>{style}</style></head>'
    "<body><main>\n"
)

"""Renderers of a verified report as Markdown, a self-contained HTML page, and JSON.

Every word of a report may come from a document or a model, so all text is escaped. Content cannot
create a link, image, heading or tag. The functions are pure.
"""

import html
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from offing.core.change_formats import describe_follow_up, list_changes
from offing.core.claim_table import (
    ClaimAnalysis,
    analyze_claims,
    claims_to_json,
    conflicts_to_json,
    describe_marks,
)
from offing.core.follow_up import outcome_to_json
from offing.core.report import (
    Citation,
    ClaimVerdict,
    Layout,
    Report,
    ReportScore,
    Section,
    Sentence,
    split_cells,
)
from offing.core.report_image import NO_IMAGES, ImageSelection, describe_left_out
from offing.core.report_labels.labels import ReportLabels
from offing.core.report_labels.languages import find_labels
from offing.core.report_record import origin_to_json
from offing.core.report_sources import (
    ReportSource,
    describe_position,
    describe_source,
    list_report_sources,
    map_source_labels,
    sources_to_json,
)
from offing.core.report_texts import (
    CONTROL_CHARS,
    TABLE_LAYOUTS,
    describe_author,
    describe_completion,
    describe_state,
    group_sentences,
    join_lines,
    list_claim_cells,
    list_conflict_lines,
    list_notes,
)

MAX_QUOTE_CHARS = 600
"""Maximum number of code points of a quote in Markdown. HTML, JSON and files for print have the whole quote."""
_ACTIVE = re.compile(
    r"[\\`*\[\]<~$]|(?<!\w)_|_(?!\w)|&(?=[#\w])|:(?=//)|@(?=\w)"  # only where the characters have a meaning
)
_OPENING = re.compile(r"^(\d{1,9})([.)])|^([-+=#>:|])")
_CODE_SPAN = re.compile(r"(?<!`)(`[^`\s](?:[^`]*[^`\s])?`)(?!`)")
_ADDRESS = re.compile(r"\bwww(?=\.)", re.IGNORECASE)


def render_markdown(report: Report, analysis: ClaimAnalysis | None = None, language: str = "en") -> str:
    """Render the report as CommonMark. If the analysis of its claims is `None`, it is computed.

    Headings, verdicts and notes are in the language of this tag, or in English if it has no labels.

    Markers such as [1] are in the text. The sources follow, each once, with the position and quote of each citation.
    """
    analysis, labels = analysis or analyze_claims(report), find_labels(language)
    state = describe_state(report, analysis, labels)
    blocks = [f"# {_escape_markdown(report.title)}", f"*{_escape_markdown(state)}*"]
    if report.follow_up:
        blocks.append(f"*{_escape_markdown(describe_follow_up(report.follow_up, labels))}*")
    if report.answer:
        blocks.append(_render_md_sentence(report.answer, labels))
    for section in report.sections:
        heading = [f"## {_escape_markdown(section.heading)}"] if section.heading else []
        blocks += [*heading, *(_render_md_block(group, labels) for group in group_sentences(section.sentences))]
    if report.limits:
        blocks += [f"## {labels.limits}", _escape_markdown(report.limits)]
    if report.follow_up and report.follow_up.changes:
        lines = list_changes(report.follow_up.changes, labels)
        listed = "\n".join(f"{'  ' * line.level}- {_escape_markdown(line.text)}" for line in lines)
        blocks += [f"## {labels.changes}", listed]
    blocks += [*_render_md_conflicts(report, analysis, labels), *_render_md_claims(report, analysis, labels)]
    if report.citations:
        listed = (block for source in list_report_sources(report) for block in _render_md_source(source, labels))
        blocks += [f"## {labels.sources}", *listed]
    notes = [describe_author(report, labels), *list_notes(report, analysis, labels)]
    if any(notes):
        blocks.append(f"*{_escape_markdown(labels.between_sentences.join(filter(None, notes)))}*")
    return "\n\n".join(blocks) + "\n"


def render_html(
    report: Report,
    images: ImageSelection = NO_IMAGES,
    analysis: ClaimAnalysis | None = None,
    language: str = "en",
) -> str:
    """Render the report as a self-contained HTML page without scripts, with the images of its run.

    If the analysis of its claims is `None`, it is computed. Headings, verdicts and notes are in the language of this
    tag, or in English if it has no labels.
    """
    analysis, labels = analysis or analyze_claims(report), find_labels(language)
    answer = _render_html_sentence(report.answer, labels) if report.answer else ""
    limits = [f'<h2>{labels.limits}</h2><p dir="auto">{_escape_html(report.limits)}</p>'] if report.limits else []
    notes = (*list_notes(report, analysis, labels), describe_author(report, labels))
    sources = "".join(_render_html_source(source, labels) for source in list_report_sources(report))
    body = [
        f'<h1 dir="auto">{_escape_html(report.title)}</h1>',
        f'<p class="state">{_escape_html(describe_completion(report, labels))}</p>',
        *_render_html_follow_up(report, labels),
        *([f'<p class="answer" dir="auto">{answer}</p>'] if answer else []),
        *(_render_html_section(section, labels) for section in report.sections),
        *limits,
        *_render_html_images(images, labels),
        *_render_html_changes(report, labels),
        *_render_html_conflicts(report, analysis, labels),
        *([f"<h2>{labels.sources}</h2>{sources}"] if sources else []),
        *_render_html_claims(analysis, labels),
        *(f"<p><small>{_escape_html(note)}</small></p>" for note in notes if note),
    ]
    return (
        HTML_HEAD.format(language=_escape_html(language), title=_escape_html(report.title), style=HTML_STYLE)
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def _render_html_images(selection: ImageSelection, labels: ReportLabels) -> Iterator[str]:
    if selection.images or selection.left_out:
        yield f"<h2>{labels.images}</h2>"
    for image in selection.images:
        data, name = b64encode(image.data).decode(), _escape_html(image.name)
        source = f'<img src="data:image/png;base64,{data}" alt="{name}">'
        yield f'<figure>{source}<figcaption dir="auto">{name}</figcaption></figure>'
    if selection.left_out:
        yield f'<p dir="auto">{_escape_html(describe_left_out(selection.left_out, labels))}</p>'


def report_to_json(report: Report, analysis: ClaimAnalysis | None = None) -> dict[str, Any]:
    """Return the whole report with its evidence as JSON. If the analysis of its claims is `None`, it is computed.

    Quotes are exactly as stored. Spans are in code points with an exclusive end.
    """
    labels, analysis = map_source_labels(report), analysis or analyze_claims(report)
    return {
        "title": report.title,
        "status": report.status.value,
        "reason": report.stop_reason,
        "answer": _sentence_to_json(report.answer) if report.answer else None,
        "sections": [
            {"heading": s.heading, "sentences": [_sentence_to_json(one) for one in s.sentences]}
            for s in report.sections
        ],
        "citations": [_citation_to_json(c, labels[c.number]) for c in report.citations],
        "sources": sources_to_json(report),
        "claims": claims_to_json(analysis.claims),
        "judged_by": analysis.judged_by,
        "check": asdict(report.check) if report.check else None,
        "conflicts": conflicts_to_json(report, analysis.conflicts),
        "conflict_search": analysis.conflict_search,
        "revision": asdict(report.revision) if report.revision else None,
        **({"edit": origin_to_json(report.edit)} if report.edit else {}),
        **({"follow_up": outcome_to_json(report.follow_up)} if report.follow_up else {}),
        "limits": report.limits,
        "written_by": report.written_by,
        "score": compute_report_score(report).model_dump(),
    }


def compute_report_score(report: Report) -> ReportScore:
    """Count how many sentences of the report are supported by sources."""
    sentences = [one for one in report.sentences() if one.layout is not Layout.HEADER]
    supported = sum(s.is_supported for s in sentences)
    return ReportScore(sentences=len(sentences), supported=supported, citations=len(report.cited()))


def _escape_markdown(text: str) -> str:
    """Escape everything that Markdown would act on, except that code spans stay code.

    Nothing acts inside of a code span, and it cannot contain the mark that ends it.
    """
    return _OPENING.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", _escape_inline(text))


def _escape_inline(text: str) -> str:
    """Escape as `_escape_markdown`, but for a place where no block such as a list can begin."""
    pieces = _CODE_SPAN.split(join_lines(text))
    return "".join(piece if number % 2 else _escape_active(piece) for number, piece in enumerate(pieces))


def _escape_active(text: str) -> str:
    escaped = _ACTIVE.sub(lambda m: "\\" + m.group(), text)
    return _ADDRESS.sub(lambda m: m.group() + "\\", escaped)


def _render_md_block(block: Sequence[Sentence], labels: ReportLabels) -> str:
    if block[0].layout is Layout.ITEM:
        return "\n".join(f"- {_render_md_sentence(sentence, labels)}" for sentence in block)
    if block[0].layout in TABLE_LAYOUTS:
        return "\n".join(_list_md_rows(block, labels))
    return " ".join(_render_md_sentence(sentence, labels) for sentence in block)


def _list_md_rows(rows: Sequence[Sentence], labels: ReportLabels) -> Iterator[str]:
    """Yield the rows of a table with equally many cells. A table without a header row gets an empty one."""
    width = max(len(split_cells(row.text)) for row in rows)
    if rows[0].layout is not Layout.HEADER:
        yield _join_md_cells([""] * width)
        yield _join_md_cells(["---"] * width)
    for row in rows:
        cells = [_escape_cell(cell) for cell in split_cells(row.text)]
        cells += [""] * (width - len(cells))
        cells[-1] = f"{cells[-1]} {_render_md_marks(row, labels)}".strip()
        yield _join_md_cells(cells)
        if row.layout is Layout.HEADER:
            yield _join_md_cells(["---"] * width)


def _join_md_cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_md_sentence(sentence: Sentence, labels: ReportLabels) -> str:
    return f"{_escape_markdown(sentence.text)} {_render_md_marks(sentence, labels)}".rstrip()


def _render_md_marks(sentence: Sentence, labels: ReportLabels) -> str:
    numbers = "".join(f"[{number}]" for number in (*sentence.citations, *sentence.passages))
    marks = _escape_markdown(describe_marks(sentence, labels))
    return " ".join(filter(None, (numbers, marks and f"*({marks})*")))


def _render_md_source(source: ReportSource, labels: ReportLabels) -> Iterator[str]:
    """Yield the line of a source and the list of its citations."""
    about = describe_source(source, labels)
    line = f"**{source.id}. {_escape_markdown(source.title)}**"
    yield f"{line} \u00b7 {_escape_markdown(about)}" if about else line
    yield "\n".join(_render_md_citation(citation, labels) for citation in source.citations)


def _render_md_claims(report: Report, analysis: ClaimAnalysis, labels: ReportLabels) -> list[str]:
    """Render the claims of a report that a checker judged. Without one, the marks of the sentences say the same."""
    claims = analysis.claims if report.check and report.check.judgments else ()
    rows = [_join_md_cells([_escape_cell(cell) for cell in list_claim_cells(claim, labels)]) for claim in claims]
    head = [_join_md_cells(labels.claim_heads), _join_md_cells(["---"] * len(labels.claim_heads))]
    return [f"## {labels.claims}", "\n".join([*head, *rows])] if rows else []


def _escape_cell(cell: str) -> str:
    return _escape_inline(cell).replace("|", "\\|")


def _render_md_conflicts(report: Report, analysis: ClaimAnalysis, labels: ReportLabels) -> list[str]:
    lines = [f"- {_escape_markdown(line)}" for line in list_conflict_lines(report, analysis.conflicts, labels)]
    return [f"## {labels.conflicts}", "\n".join(lines)] if lines else []


def _render_md_citation(citation: Citation, labels: ReportLabels) -> str:
    where = _escape_markdown(describe_position(citation, labels))
    return f"- {f'[{citation.number}] {where}'.rstrip()}\n  > {_escape_markdown(_abridge(citation.quote))}"


def _abridge(quote: str) -> str:
    """Return the beginning of a quote that is a whole passage, because the report cites no words of it."""
    if len(quote) <= MAX_QUOTE_CHARS:
        return quote
    return f"{quote[:MAX_QUOTE_CHARS].rsplit(maxsplit=1)[0]} \u2026"


def _escape_html(text: str) -> str:
    return html.escape(CONTROL_CHARS.sub("", text), quote=True)


def _render_html_section(section: Section, labels: ReportLabels) -> str:
    blocks = "".join(_render_html_block(group, labels) for group in group_sentences(section.sentences))
    heading = f'<h2 dir="auto">{_escape_html(section.heading)}</h2>' if section.heading else ""
    return f"<section>{heading}{blocks}</section>"


def _render_html_block(block: Sequence[Sentence], labels: ReportLabels) -> str:
    if block[0].layout is Layout.ITEM:
        items = "".join(f'<li dir="auto">{_render_html_sentence(sentence, labels)}</li>' for sentence in block)
        return f"<ul>{items}</ul>"
    if block[0].layout in TABLE_LAYOUTS:
        return f"<table>{''.join(_render_html_row(row, labels) for row in block)}</table>"
    return f'<p dir="auto">{" ".join(_render_html_sentence(sentence, labels) for sentence in block)}</p>'


def _render_html_row(row: Sentence, labels: ReportLabels) -> str:
    tag = "th" if row.layout is Layout.HEADER else "td"
    *cells, last = (f'<{tag} dir="auto">{_escape_html(cell)}' for cell in split_cells(row.text))
    marked = [*cells, f"{last} {_render_html_marks(row, labels)}".rstrip()]
    return f'<tr id="{_escape_html(row.id)}">{"".join(f"{cell}</{tag}>" for cell in marked)}</tr>'


def _render_html_sentence(sentence: Sentence, labels: ReportLabels) -> str:
    words = f'<span id="{_escape_html(sentence.id)}">{_escape_html(sentence.text)}</span>'
    return f"{words} {_render_html_marks(sentence, labels)}".rstrip()


def _render_html_marks(sentence: Sentence, labels: ReportLabels) -> str:
    numbers = "".join(f'<sup><a href="#c{n}">[{n}]</a></sup>' for n in (*sentence.citations, *sentence.passages))
    marks = _escape_html(describe_marks(sentence, labels))
    return " ".join(filter(None, (numbers, f'<em class="{_mark_class(sentence)}">({marks})</em>' if marks else "")))


def _mark_class(sentence: Sentence) -> str:
    return "conclusion" if sentence.verdict is ClaimVerdict.CONCLUSION else "unsupported"


def _render_html_follow_up(report: Report, labels: ReportLabels) -> list[str]:
    if report.follow_up is None:
        return []
    return [f'<p class="state" dir="auto">{_escape_html(describe_follow_up(report.follow_up, labels))}</p>']


def _render_html_changes(report: Report, labels: ReportLabels) -> list[str]:
    if report.follow_up is None or report.follow_up.changes is None:
        return []
    lines = list_changes(report.follow_up.changes, labels)
    items = "".join(f'<li class="level{line.level}" dir="auto">{_escape_html(line.text)}</li>' for line in lines)
    return [f"<h2>{labels.changes}</h2><ul>{items}</ul>"]


def _render_html_claims(analysis: ClaimAnalysis, labels: ReportLabels) -> list[str]:
    rows = "".join(_render_html_cells("td", list_claim_cells(claim, labels)) for claim in analysis.claims)
    head = _render_html_cells("th", labels.claim_heads)
    return [f"<h2>{labels.claims}</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table>"] if rows else []


def _render_html_cells(tag: str, cells: Sequence[str]) -> str:
    rendered = (f'<{tag} dir="auto">{_escape_html(cell)}</{tag}>' for cell in cells)
    return f"<tr>{''.join(rendered)}</tr>"


def _render_html_conflicts(report: Report, analysis: ClaimAnalysis, labels: ReportLabels) -> list[str]:
    lines = list_conflict_lines(report, analysis.conflicts, labels)
    items = "".join(f'<li dir="auto">{_escape_html(line)}</li>' for line in lines)
    return [f"<h2>{labels.conflicts}</h2><ul>{items}</ul>"] if items else []


def _render_html_source(source: ReportSource, labels: ReportLabels) -> str:
    about = _escape_html(describe_source(source, labels))
    details = f'<p dir="auto"><small>{about}</small></p>' if about else ""
    citations = "".join(_render_html_citation(citation, labels) for citation in source.citations)
    return (
        f'<section class="source"><h3 dir="auto">{source.id}. {_escape_html(source.title)}</h3>'
        f"{details}<ul>{citations}</ul></section>"
    )


def _render_html_citation(citation: Citation, labels: ReportLabels) -> str:
    where = f"[{citation.number}] {_escape_html(describe_position(citation, labels))}".rstrip()
    quote = _escape_html(citation.quote)
    return f'<li id="c{citation.number}" dir="auto">{where}<blockquote dir="auto">{quote}</blockquote></li>'


def _sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    return {
        "id": sentence.id,
        "text": sentence.text,
        "citations": list(sentence.citations),
        "supported": sentence.is_supported,
        "rejected": list(sentence.rejected),
        "passages": list(sentence.passages),
        "unsupported_values": list(sentence.unsupported_values),
        "verdict": sentence.verdict,
        **({"follows_from": list(sentence.conclusion.sentences)} if sentence.conclusion else {}),
        **({"edited": True} if sentence.is_edited else {}),
        **({"judgment": asdict(sentence.judgment)} if sentence.judgment else {}),
        **({} if sentence.layout is Layout.STATEMENT else {"layout": sentence.layout.value}),
    }


def _citation_to_json(citation: Citation, source_label: str) -> dict[str, Any]:
    return {
        "number": citation.number,
        "source": source_label,
        "position": describe_position(citation),
        "source_id": str(citation.source_id),
        "text_id": str(citation.span.text_id),
        "title": citation.title,
        "start": citation.span.start,
        "end": citation.span.end,
        "quote": citation.quote,
    }


HTML_STYLE = (
    "body{margin:0;background:#fbfaf7;color:#1d2433;font:17px/1.6 Georgia,serif}"
    "main{max-width:44rem;margin:3rem auto;padding:0 1.25rem;overflow-wrap:anywhere;overflow-x:clip}"
    "h1,h2,h3{line-height:1.25;font-weight:600}h1{font-size:1.7rem}h2{font-size:1.15rem;margin-top:2rem}"
    "h3{font-size:1rem;margin:1.5rem 0 0}.source p{margin:.1rem 0}.source ul{list-style:none;padding:0}"
    ".state{color:#5b6475}.answer{font-size:1.1rem}.unsupported{color:#8a5a00}.conclusion{color:#5b6475}small{color:#5b6475}"
    ".level1{margin-inline-start:1.5rem}"
    "blockquote{margin:.4rem 0 1rem;padding-left:.9rem;border-left:3px solid #c9d3e0;white-space:pre-wrap}"
    "table{border-collapse:collapse;display:block;overflow-x:auto;font-size:.9rem}"
    "th,td{border:1px solid #c9d3e0;padding:.3rem .6rem;text-align:start;vertical-align:top}"
    "figure{margin:1rem 0}img{max-width:100%;background:#fff}figcaption{color:#5b6475;font-size:.85rem}"
    "a{color:#1f5f8b}@media(prefers-color-scheme:dark){body{background:#10151d;color:#e4e8ef}a{color:#8fc1e6}"
    ".state,small,figcaption,.conclusion{color:#9aa5b5}.unsupported{color:#e0b060}blockquote{border-color:#37445a}}"
)
HTML_HEAD = (
    '<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8">'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
    '<meta name="viewport" content="width=device-width"><title>{title}</title><style>{style}</style></head>'
    "<body><main>\n"
)

"""Sections of a report as text: paragraphs of connected prose, lists, tables and statements.

A paragraph is split into its sentences, and each citation belongs to the sentence after whose words
it stands. A report whose lines are all statements, each behind a dash, has no layout.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from offing.sdk import DraftCitation, DraftSection, DraftSentence, Layout
from offing_graphs.extractive.text_units import split_units

HEADING = re.compile(r"#{2,6}\s*(.*)")

_CITED = re.compile(r"\s*\[(E\d+):\s*\"(.*?)(?<!\\)\"\]", re.DOTALL)
_MARKER = re.compile(r"[ \t]*\[E\d+(?:\s*[,;]\s*E\d+)*\]")
_ANCHOR = re.compile(rf"{_CITED.pattern}|{_MARKER.pattern}", re.DOTALL)
_BULLET = re.compile(r"[-*+\u2022]\s+(.*)|\d{1,3}[.)]\s+(.*)")
_ROW = re.compile(r"\|.*\|")
_RULE_ROW = re.compile(r"\|[\s|:\-]+\|")


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    layout: Layout
    """Layout of the block that the line begins, or `CONTINUED`."""


def parse_sections(lines: Sequence[str]) -> tuple[DraftSection, ...]:
    """Parse the lines of a report from its first section on. Empty lines separate paragraphs."""
    sections: list[tuple[str, list[str]]] = []
    for line in lines:
        if heading := HEADING.fullmatch(line.strip()):
            sections.append((heading.group(1).strip(), []))
        elif sections or line.strip():
            sections = sections or [("", [])]
            sections[-1][1].append(line)
    parsed = [(heading, tuple(_parse_body(body))) for heading, body in sections]
    if not any(s.layout is Layout.PARAGRAPH or s.layout is Layout.ROW for _, body in parsed for s in body):
        parsed = [(heading, tuple(replace_layout(s) for s in body)) for heading, body in parsed]
    return tuple(DraftSection(heading=heading, sentences=body) for heading, body in parsed if body)


def replace_layout(sentence: DraftSentence) -> DraftSentence:
    """Return the sentence as a statement."""
    return sentence.model_copy(update={"layout": Layout.STATEMENT})


def extract_citations(text: str) -> tuple[str, tuple[DraftCitation, ...]]:
    """Return a text without its citations with quotes, and these citations. Ids without a quote stay in the text."""
    citations = tuple(DraftCitation(evidence=id, quote=_unescape(quote)) for id, quote in _CITED.findall(text))
    return _CITED.sub("", text).strip(), citations


def render_section(section: DraftSection) -> Iterator[str]:
    """Render a section as lines that `parse_sections` reads back."""
    yield f"## {collapse_white_space(section.heading)}"
    after: Layout | None = None
    for sentence in section.sentences:
        if sentence.layout is Layout.PARAGRAPH or (after in _TABLE) != (sentence.layout in _TABLE):
            yield ""
        yield _render_line(sentence)
        if sentence.layout is Layout.HEADER:
            yield "|" + " --- |" * (sentence.text.strip().strip("|").count("|") + 1)
        after = sentence.layout


_TABLE = frozenset({Layout.HEADER, Layout.ROW})


def collapse_white_space(text: str) -> str:
    return " ".join(text.split())


def render_cited(text: str, citations: Iterable[DraftCitation]) -> str:
    """Render a text with its quotes behind it, on one line."""
    marks = [f"[{c.evidence}: {json.dumps(collapse_white_space(c.quote), ensure_ascii=False)}]" for c in citations]
    return " ".join([collapse_white_space(text), *marks]).strip()


def _render_line(sentence: DraftSentence) -> str:
    dash = "- " if sentence.layout in {Layout.STATEMENT, Layout.ITEM} else ""
    return dash + render_cited(sentence.text, sentence.citations)


def _parse_body(lines: Sequence[str]) -> Iterator[DraftSentence]:
    for block in _join_blocks(lines):
        if block.layout is Layout.PARAGRAPH:
            yield from _split_paragraph(block.text)
        else:
            text, citations = extract_citations(block.text)
            if text:
                yield DraftSentence(text=text, citations=citations, layout=block.layout)


def _join_blocks(lines: Sequence[str]) -> list[_Line]:
    """Return the paragraphs, items and rows of a section, each on one line."""
    blocks: list[_Line] = []
    is_open = False
    for number, line in enumerate(lines):
        text = line.strip()
        if not text:
            is_open = False
            continue
        if _RULE_ROW.fullmatch(text):
            continue
        read = _classify_line(text, lines[number + 1 : number + 2], is_open=is_open)
        if read.layout is Layout.CONTINUED:
            blocks[-1] = replace(blocks[-1], text=f"{blocks[-1].text} {read.text}")
        else:
            blocks.append(read)
        is_open = True
    return blocks


def _classify_line(text: str, following: Sequence[str], *, is_open: bool) -> _Line:
    if is_row(text):
        heads = any(_RULE_ROW.fullmatch(one.strip()) for one in following)
        return _Line(text, Layout.HEADER if heads else Layout.ROW)
    if bullet := _BULLET.fullmatch(text):
        return _Line(bullet.group(1) or bullet.group(2) or "", Layout.ITEM)
    return _Line(text, Layout.CONTINUED if is_open else Layout.PARAGRAPH)


def is_row(text: str) -> bool:
    """Return whether a line is a row of a table, apart from citations behind it."""
    return bool(_ROW.fullmatch(_ANCHOR.sub("", text).strip()))


def _split_paragraph(text: str) -> Iterator[DraftSentence]:
    """Split a paragraph into sentences with their citations."""
    words, anchors = _take_anchors(text)
    ends = [*(unit.start for unit in split_units(words)[1:]), len(words)]
    start, layout = 0, Layout.PARAGRAPH
    for end in ends:
        behind = [mark for at, mark in anchors if start < at <= end or (start == 0 == at)]
        markers = "".join(f" {mark.strip()}" for mark in behind if _MARKER.fullmatch(mark))
        _, citations = extract_citations("".join(mark for mark in behind if not _MARKER.fullmatch(mark)))
        if sentence := words[start:end].strip():
            yield DraftSentence(text=sentence + markers, citations=citations, layout=layout)
            layout = Layout.CONTINUED
        start = end


def _take_anchors(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Return a text without citations, and each citation with its place in the text."""
    words, anchors, at = "", list[tuple[int, str]](), 0
    for match in _ANCHOR.finditer(text):
        words += text[at : match.start()]
        anchors.append((len(words.rstrip()), match.group()))
        at = match.end()
    return words + text[at:], anchors


def _unescape(quote: str) -> str:
    """Remove JSON escapes from a quote.

    Models often copy words without escapes; a quote that is no JSON string is returned
    unchanged.
    """
    try:
        return str(json.loads(f'"{quote}"'))
    except ValueError:
        return quote

"""Turn the lines and tables of pages into text: join lines to paragraphs, and keep sentences whole."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from offing.library.page_starts import PageStarts
from offing.library.pdf.aligned_tables import CAPTION
from offing.library.pdf.geometry import Element, Line, Table
from offing.library.pdf.page_reader import HYPHENS
from offing.library.pdf.tables import render_table

MAX_HEADER_LINE_CHARS = 120
"""Maximum characters of a line that can be a header or footer."""
MAX_INTERRUPTIONS = 6
"""Maximum notes, captions and tables between the halves of a sentence."""
MAX_WHOLE_CHARS = 40
"""Maximum characters of a paragraph that never goes on after an interruption, such as a label."""

_SECTION = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?\s+[^\W\d_][^.!?;]{2,70}"
    r"|(?:Abstract|Introduction|Background|Related Work|Methods?|Results|Discussion|Conclusions?|Acknowledge?ments"
    r"|References|Bibliography|Appendix.{0,40}))$"
)
_QUANTITY = re.compile(
    r"\d[\d.,]*\s+(?:seconds?|minutes?|hours?|days?|weeks?|months?|quarters?|years?|percent|points?|pages?|shares?|units?|"
    r"hundred|thousand|million|billion|trillion|dollars?|euros?|people|employees|customers|countries|"
    r"January|February|March|April|May|June|July|August|September|October|November|December)\b",
    re.I,
)
"""Matches a number with its unit, such as `5 Years`, which is a cell or a phrase and not a numbered heading."""
_OWN_LINE = re.compile(r"[\u2022\u25aa\u25e6\u2013*-]\s|\(?\d{1,3}[.)]\s|\[\d{1,3}\]")
_NOTE = re.compile(r"(?:\d{1,2}|[*\u2020\u2021\u00a7\u00b6]{1,2}|\(\d{1,2}\)|\([a-z]\))[.)]?\s*[^\W\d_]")
_DIGITS = re.compile(r"\d+")
_NO_SPAN = (float("inf"), float("inf"))
"""Stands for a table among the ends of lines. It is near no line."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, note, caption or table."""

    text: str
    kind: str = "text"
    """`text`, `own` for a line that starts a paragraph, `heading`, `note`, `caption`, `cells`, `table` or `image`."""
    page_starts: PageStarts = ()
    """Empty means that its pages are unknown."""


def remove_headers_and_footers(pages: Sequence[list[Element]]) -> list[list[Element]]:
    """Return the pages without the lines at the top or bottom that most of them share, including page numbers."""
    edges = [_edge_lines(page) for page in pages]
    counts = Counter(shape for page in edges for shape in {_line_shape(line.text) for line in page})
    common = {shape for shape, count in counts.items() if count >= 4 and count >= len(pages) / 2}
    cleaned = list[list[Element]]()
    for page, lines in zip(pages, edges, strict=True):
        drop = {id(line) for line in lines if (shape := _line_shape(line.text)) in common or shape == "#"}
        cleaned.append([_without_common_rows(e, common) for e in page if id(e) not in drop])
    return cleaned


def _without_common_rows(element: Element, common: set[str]) -> Element:
    """Return a table without first or last rows that are a running header or footer."""
    if isinstance(element, Line) or not common:
        return element
    rows = list(element.rows)
    while len(rows) > 1 and _line_shape(" ".join(filter(None, rows[-1]))) in common:
        rows.pop()
    while len(rows) > 1 and _line_shape(" ".join(filter(None, rows[0]))) in common:
        rows.pop(0)
    return replace(element, rows=tuple(rows))


def _edge_lines(page: Sequence[Element]) -> list[Line]:
    """Return the lines at the top and at the bottom of a page: two on each side, or one if the page is short."""
    lines = sorted((e for e in page if isinstance(e, Line)), key=lambda line: -line.y0)
    count = 2 if len(page) > 8 else 1
    return [line for line in lines[:count] + lines[-count:] if len(line.text) <= MAX_HEADER_LINE_CHARS]


def _line_shape(text: str) -> str:
    return " ".join(_DIGITS.sub("#", text).split()).strip(" -\u2013|")


def join_page(elements: Sequence[Element], page: int = 0) -> list[Block]:
    """Return the blocks of a page. A line that fills its column continues in the next line.

    `page` is the number of the page, from 1. 0 means that it is unknown.
    """
    body, leading = _measure_type(elements)
    parts, goes_on = list[tuple[list[str], str]](), False
    spans = [(e.x0, e.x1) if isinstance(e, Line) else _NO_SPAN for e in elements]
    last: Line | None = None
    for number, element in enumerate(elements):
        if isinstance(element, Table):
            parts.extend([([element.title], "caption")] if element.title else [])
            parts.extend(([text], "table") for text in render_table(element))
            goes_on, last = False, None
            continue
        kind = _classify_line(element, body)
        if (
            goes_on
            and last
            and kind in ("text", "note")
            and (kind == "text" or parts[-1][1] == "note")
            and _is_next(last, element, leading)
            and _fills_column(last, spans[max(0, number - 5) : number + 4])
        ):
            parts[-1][0].append(element.text)
        else:
            parts.append(([f"## {element.text}" if kind == "heading" else element.text], kind))
        goes_on = kind not in ("heading", "cells")
        last = element
    starts = ((0, page),) if page else ()
    return [Block(join_broken(texts)[0], kind, starts) for texts, kind in parts]


def _measure_type(elements: Sequence[Element]) -> tuple[float, float]:
    """Return the height of most text, and the usual distance of two lines. Both are 0 without text."""
    heights, steps = Counter[float](), Counter[float]()
    last: Line | None = None
    for element in elements:
        if isinstance(element, Line) and not element.stands_alone:
            heights[round(element.y1 - element.y0, 1)] += len(element.text)
            if last and last.y0 > element.y0:
                steps[round(last.y0 - element.y0)] += 1
            last = element
    body = heights.most_common(1)[0][0] if heights else 0.0
    return body, float(steps.most_common(1)[0][0]) if steps else 0.0


def _classify_line(line: Line, body: float) -> str:
    if line.stands_alone:
        return "cells"
    text = line.text
    if line.y1 - line.y0 < 0.93 * body and _NOTE.match(text):
        return "note"
    if CAPTION.match(text):
        return "caption"
    if _SECTION.match(text) and not _QUANTITY.match(text):
        return "heading"
    return "own" if _OWN_LINE.match(text) else "text"


def _is_next(last: Line, line: Line, leading: float) -> bool:
    """Return whether a line can continue a paragraph: in the same type, and right below or at the top of a column."""
    height, before = line.y1 - line.y0, last.y1 - last.y0
    if not 0.85 * before <= height <= 1.18 * before:
        return False
    step = last.y0 - line.y0
    return step <= max(1.4 * leading, 1.5 * height) if step > 0 else True


def _fills_column(line: Line, near: Sequence[tuple[float, float]]) -> bool:
    """Return whether a paragraph continues after this line. `near` has both ends of the lines around it."""
    if line.text[-1] in HYPHENS:
        return True
    x0, reach = line.x0, 4 * (line.y1 - line.y0)
    right = max([right for left, right in near if abs(left - x0) <= reach])
    share = 0.9 if line.text[-1] in ".!?:\u2026" else 0.5
    return line.x1 - x0 > share * (right - x0)


def join_broken(texts: Iterable[str]) -> tuple[str, list[int]]:
    """Return texts that follow one another as one text, with words joined that are broken between them.

    With it come the positions where each of the texts begins.
    """
    parts, starts, length, end = list[str](), list[int](), 0, ""
    for text in texts:
        if end and (end[-1] in HYPHENS or (end[-1] == "-" and end[:-1].islower() and text[:1].islower())):
            parts[-1], end, length = parts[-1][:-1], end[:-1], length - 1
        elif end:
            parts.append(" ")
            end, length = end + " ", length + 1
        starts.append(length)
        parts.append(text)
        end, length = (end + text)[-2:], length + len(text)
    return "".join(parts), starts


def join_sentences(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks, with paragraphs joined that a note, a caption, a table or the end of a page interrupts."""
    at = 0
    while at < len(blocks):
        block = blocks[at]
        parts, skipped = [block], list[Block]()
        can_go_on = block.kind in ("text", "own") and len(block.text) > MAX_WHOLE_CHARS
        while can_go_on and (end := _find_rest(blocks, at)):
            skipped.extend(blocks[at + 1 : end])
            parts.append(blocks[end])
            at = end
        yield block if len(parts) == 1 else _join_blocks(parts)
        yield from skipped
        at += 1


def _join_blocks(blocks: Sequence[Block]) -> Block:
    text, starts = join_broken(block.text for block in blocks)
    pages = tuple((start + at, page) for start, one in zip(starts, blocks, strict=True) for at, page in one.page_starts)
    return Block(text, blocks[0].kind, pages)


def _find_rest(blocks: Sequence[Block], at: int) -> int | None:
    """Return the position of the paragraph that goes on with the last sentence of a block. `None` if it is whole."""
    if blocks[at].text[-1] in '.!?:;\u2026"\u201d)]':
        return None
    end = at + 1
    while end < len(blocks) and end - at <= MAX_INTERRUPTIONS and blocks[end].kind in ("note", "caption", "table"):
        end += 1
    goes_on = end < len(blocks) and blocks[end].kind == "text" and blocks[end].text[0].islower()
    return end if goes_on else None

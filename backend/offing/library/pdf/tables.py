"""Write tables as Markdown, and find where a table goes on over a page."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from offing.library.pdf.geometry import Element, Line, Table

MAX_BLOCK_WORDS = 100
"""Number of words after which a table repeats its header, so that each passage of a long table has one.

A passage has at most 180 words, and a new block of text starts a new passage if more than 80 words are before it.
"""
MAX_WIDE_BLOCK_WORDS = 160
"""The same for a table whose header has more than a third of these words."""
MAX_REPEATED_HEADER_CHARS = 600
"""Maximum characters of a header that is repeated."""
MAX_COLUMN_SHIFT_POINTS = 15.0
"""Maximum distance of a column on two pages."""

_WORD = re.compile(r"\w+")


def render_table(table: Table) -> Iterator[str]:
    """Yield the blocks of a table in Markdown. Each starts with the header, and they are separated by blank lines."""
    header = _render_row(table.header) if table.header else ""
    head = [header, "|" + "---|" * len(table.header)] if header else []
    first_words = _count_words(header)
    limit = MAX_BLOCK_WORDS if first_words <= MAX_BLOCK_WORDS // 3 else MAX_WIDE_BLOCK_WORDS
    if not header or len(header) > MAX_REPEATED_HEADER_CHARS:
        limit = 10**9
    block, words = list(head), first_words
    for row in map(_render_row, table.rows):
        count = _count_words(row)
        if words + count > limit and len(block) > len(head) + 2:
            yield "\n".join(block)
            block, words = list(head), first_words
        block.append(row)
        words += count
    if block:
        yield "\n".join(block)


def _render_row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _count_words(row: str) -> int:
    return len(_WORD.findall(row))


def continue_tables(pages: Sequence[list[Element]]) -> None:
    """Give a table that goes on at the top of a page the header of its part on the page before.

    The tables have the same columns, and no text is between them.
    """
    for above, below in pairwise(pages):
        last = next((e for e in reversed(above) if not _is_note(e)), None)
        if not below or not isinstance(last, Table) or not isinstance(first := below[0], Table):
            continue
        if last.header and first.header != last.header and _is_continued(last, first):
            rows = (first.header, *first.rows) if first.header else first.rows
            below[0] = replace(first, header=last.header, rows=rows)


def _is_note(element: Element) -> bool:
    return isinstance(element, Line) and element.text[:1] in "(*\u2020\u2021"


def _is_continued(last: Table, first: Table) -> bool:
    if len(last.columns) != len(first.columns) or (first.header and not (last.is_ruled and first.is_ruled)):
        return False
    pairs = zip(last.columns[1:], first.columns[1:], strict=True)
    return all(abs(a - b) <= MAX_COLUMN_SHIFT_POINTS for a, b in pairs)

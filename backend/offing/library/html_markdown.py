"""Render a part of a web page as Markdown: headings, paragraphs, lists, code, tables and formulas."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from offing.library.html_noise import find_noise, is_note
from offing.library.html_tables import HEADINGS, TableCell, parse_span, render_table

MAX_LIST_DEPTH = 6
"""Maximum depth of a list that is shown by spaces before its items."""
MAX_ALTERNATIVE_CHARS = 40
"""Maximum code points of the text of an image that stands for an empty cell of a table."""
MAX_FORMULA_CHARS = 2_000
NOISE_CHARS = r"[\u00ad\u00b6\u200b\uf0c1]+|(?<=\S)#$"
"""Pattern of invisible characters, and of the marks of links to headings."""

_DROPPED_TAGS = "script style noscript template svg math nav footer aside form button iframe head dialog select"
_BLOCK_TAGS = """
    p div section article main header aside footer ul ol li dl dt dd table tr td th pre blockquote h1 h2 h3 h4 h5 h6
    figure figcaption hr br body address details summary thead tbody tfoot caption
"""
_DROPPED, _BLOCKS = frozenset(_DROPPED_TAGS.split()), frozenset(_BLOCK_TAGS.split())
_NOISE_CHARS = re.compile(NOISE_CHARS)
_NUMBER = re.compile(r"[-+\u2212\u2013]?\d{1,4}")


@dataclass(slots=True)
class _TableWriter:
    """The cells of the data table that is being read."""

    rows: list[list[TableCell]] = field(default_factory=list[list[TableCell]])
    heading_rows: int = 0
    caption: str = ""
    parts: list[str] = field(default_factory=list[str])
    """Finished lines of the present cell or caption."""

    def take(self) -> str:
        text = " ".join(self.parts)
        self.parts.clear()
        return text


@dataclass(slots=True)
class _Writer:
    """Markdown output: finished blocks, and the line that is being written."""

    blocks: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    """Each with whether it is a list item."""
    line: list[str] = field(default_factory=list[str])
    mark: str = ""
    """Prefix of the next line: the mark of a heading or list item."""
    lists: list[int] = field(default_factory=list[int])
    """Number of the next item of each list around the present element. -1 in a list without numbers."""
    code: list[str] | None = None
    """Collected text inside a preformatted element. `None` outside."""
    table: _TableWriter | None = None
    """The data table around the present element. `None` outside."""
    raised_at: int = -1
    """Position in the line at which superscript begins. -1 outside."""
    raised_link: bool = False

    def write(self, text: str | None) -> None:
        if text:
            (self.line if self.code is None else self.code).append(text)

    def flush(self) -> None:
        text = join_line("".join(self.line))
        self.line.clear()
        self.raised_at = -1
        if not text:
            return
        if self.table is not None:
            self.table.parts.append(text)
            return
        self.blocks.append((self.mark + text, bool(self.mark) and not self.mark.startswith("#")))
        self.mark = ""

    def open(self, element: Any, is_data: bool) -> None:
        tag = element.tag
        if self.code is not None:
            self.code.extend("\n" if tag == "br" else "")
            return
        if tag in _BLOCKS:
            self.flush()
        if self.table is not None:
            self._open_in_table(element)
        elif is_data:
            self.table = _TableWriter()
        else:
            self._open_block(element)
        if tag == "sup":
            self.raised_at, self.raised_link = len(self.line), False
        elif tag == "a":
            self.raised_link = True

    def _open_block(self, element: Any) -> None:
        tag = element.tag
        if tag in HEADINGS:
            self.mark = "#" * int(tag[1]) + " "
        elif tag in ("ul", "ol", "menu"):
            self.lists.append(parse_span(element.get("start")) if tag == "ol" else -1)
        elif tag in ("li", "dd"):
            self.mark = self._mark_item(tag)
        elif tag == "pre":
            self.code = []

    def _mark_item(self, tag: str) -> str:
        indent = "  " * min(max(0, len(self.lists) - 1), MAX_LIST_DEPTH)
        if tag == "dd" or not self.lists or self.lists[-1] < 0:
            return f"{indent}- "
        self.lists[-1] += 1
        return f"{indent}{self.lists[-1] - 1}. "

    def _open_in_table(self, element: Any) -> None:
        assert self.table is not None
        if element.tag == "tr":
            self.table.rows.append([])
        elif element.tag == "img" and not self.table.parts and not "".join(self.line).strip():
            text = (element.get("alt") or "")[: MAX_ALTERNATIVE_CHARS + 1]
            self.write(text if len(text) <= MAX_ALTERNATIVE_CHARS else None)

    def close(self, element: Any, is_data: bool) -> None:
        tag = element.tag
        if tag == "pre" and self.code is not None:
            body, self.code = "".join(self.code).strip("\n"), None
            if body.strip():
                self.blocks.append((f"```\n{body}\n```", False))
        elif self.code is None:
            if tag == "sup":
                self._close_raised()
            if tag in _BLOCKS:
                self.flush()
            if self.table is not None:
                self._close_in_table(element, is_data)
            elif tag in HEADINGS or tag == "li":
                self.mark = ""
            elif tag in ("ul", "ol", "menu") and self.lists:
                self.lists.pop()

    def _close_in_table(self, element: Any, is_data: bool) -> None:
        table, tag = self.table, element.tag
        assert table is not None
        if is_data:
            self.table = None
            if text := render_table(table.rows, table.heading_rows, table.caption):
                self.blocks.append((text, False))
        elif tag in ("td", "th") and table.rows:
            spans = parse_span(element.get("colspan")), parse_span(element.get("rowspan"))
            table.rows[-1].append(TableCell(table.take(), tag == "th", max(1, spans[0]), spans[1]))
        elif tag == "caption":
            table.caption = table.take()
        elif tag == "thead":
            table.heading_rows = len(table.rows)

    def _close_raised(self) -> None:
        """Write a superscript so that it differs from the text before it: an exponent, or the mark of a note."""
        at, self.raised_at = self.raised_at, -1
        text = "".join(self.line[at:]).strip() if at >= 0 else ""
        if _NUMBER.fullmatch(text):
            self.line[at:] = [f"[{text}]" if self.raised_link else f"^{text}"]


def join_line(text: str) -> str:
    """Return a text as one line without invisible characters and the marks of links to headings."""
    return _NOISE_CHARS.sub("", " ".join(text.split())).strip()


def render_markdown(root: Any, tables: Container[Any]) -> str:
    """Render an element as Markdown.

    `tables` has the data tables in it. The walk is not recursive, so deep nesting is harmless.
    """
    writer, noise = _Writer(), find_noise(root)
    walk: Any = import_module("lxml.etree").iterwalk(root, events=("start", "end"))
    dropped: Any = None
    for event, element in walk:
        if event == "start" and element is not root and (element in noise or _is_dropped(element)):
            dropped = element
            writer.write(_find_formula(element))
            walk.skip_subtree()
        elif event == "start":
            writer.open(element, element in tables)
            writer.write(element.text)
        elif element is not dropped:
            writer.close(element, element in tables)
        if event == "end" and element is not root:
            writer.write(element.tail)
    writer.flush()
    return "\n".join(_space_blocks(writer.blocks))


def _is_dropped(element: Any) -> bool:
    tag = element.tag
    if tag in ("aside", "footer"):
        return not is_note(element)
    return tag in _DROPPED or element.get("aria-hidden") == "true" or element.get("role") == "navigation"


def _find_formula(element: Any) -> str:
    """Return a formula as TeX between dollar signs. Empty if the element is none, or states no TeX."""
    source = ""
    if element.tag == "math":
        source = (
            element.get("alttext")
            or next(
                (note.text or "" for note in element.iter("annotation") if "tex" in (note.get("encoding") or "")), ""
            )
            or "".join(element.itertext())
        )
    elif element.tag == "script" and (element.get("type") or "").startswith("math/tex"):
        source = element.text or ""
    source = " ".join(source[:MAX_FORMULA_CHARS].split())
    if source.startswith("{\\displaystyle") and source.endswith("}"):
        source = source[len("{\\displaystyle") : -1].strip()
    return f"${source}$" if source else ""


def _space_blocks(blocks: list[tuple[str, bool]]) -> Iterator[str]:
    """Yield the blocks with blank lines between them, except between list items."""
    before: bool | None = None
    for block, is_item in blocks:
        if before is not None and not (is_item and before):
            yield ""
        yield block
        before = is_item

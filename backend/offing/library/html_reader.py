"""Read web pages as Markdown: headings, paragraphs, lists, code and tables, without boilerplate.

A page that marks its main part is rendered completely, so that no part of a reference page is dropped. For
other pages a boilerplate remover finds the main part, unless it would remove most of the page.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from typing import Any

from offing.library.extraction import DocumentRejectedError, ExtractedDocument, decode_text
from offing.library.html_tags import limit_attributes

MIN_MAIN_WORDS = 30
"""Minimum number of words of an element that is accepted as the main part."""
MAX_NODES = 50_000
"""Maximum number of elements of a page for the boilerplate remover, whose time grows faster than the page."""
MAX_TITLES = 8
"""Maximum number of first-level headings that are considered as the title."""
MIN_TEXT_FRACTION = 0.4
"""Minimum fraction of the page's words that the boilerplate remover must keep for its result to be used."""

_MAIN_SELECTORS: Sequence[Callable[[Any], bool]] = (
    lambda element: element.tag == "main",
    lambda element: element.get("role") == "main",
    lambda element: element.tag == "article",
    lambda element: element.get("id") in ("content", "main-content"),
)
"""Selectors of the main part, the most reliable first."""
_DROPPED_TAGS = "script style noscript template svg nav header footer aside form button iframe head dialog"
_BLOCK_TAGS = """
    p div section article main ul ol li dl dt dd table tr pre blockquote h1 h2 h3 h4 h5 h6 figure figcaption hr br body
    address details summary thead tbody tfoot caption
"""
_DROPPED, _BLOCKS = frozenset(_DROPPED_TAGS.split()), frozenset(_BLOCK_TAGS.split())
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_NOISE_CHARS = re.compile(r"[\u00b6\u200b\uf0c1]+|(?<=\S)#$")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{1,40})", re.IGNORECASE)
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")


def read_html(data: bytes) -> ExtractedDocument:
    """Return the text of an HTML page. Raises `DocumentRejectedError` if it is not HTML."""
    lxml_html, etree = import_module("lxml.html"), import_module("lxml.etree")
    source = limit_attributes(_DECLARATION.sub("", decode_html(data)))
    # The parser drops comments: the time to walk over them grows with the square of their number.
    parser = lxml_html.HTMLParser(huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        tree: Any = lxml_html.document_fromstring(source, parser=parser)
    except (etree.LxmlError, ValueError):
        raise DocumentRejectedError(
            "The HTML cannot be parsed.", "Save the page again, or save it as plain text."
        ) from None
    extractor = f"html/1+lxml-{version('lxml')}+trafilatura-{version('trafilatura')}"
    title = _find_title(tree)
    return ExtractedDocument(_extract_text(tree), title, "text/html", extractor)


def decode_html(data: bytes) -> str:
    """Decode a page: by byte order mark, by its declared charset, else like any text."""
    named = _CHARSET.search(data[:4096])
    if named and not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode(named.group(1).decode())
        except (LookupError, UnicodeDecodeError):
            pass  # it declares no charset, or a wrong one
    return decode_text(data)[0]


def _extract_text(tree: Any) -> str:
    for is_main in _MAIN_SELECTORS:
        marked = "\n\n".join(filter(None, (render_markdown(part) for part in _find_outermost(tree, is_main))))
        if len(marked.split()) >= MIN_MAIN_WORDS:
            return marked
    whole = render_markdown(tree.find("body") if tree.find("body") is not None else tree)
    body = _remove_boilerplate(tree)
    return body if len(body.split()) >= MIN_TEXT_FRACTION * len(whole.split()) else whole


def _find_outermost(tree: Any, predicate: Callable[[Any], bool]) -> list[Any]:
    """Return the matching elements that are not inside another match, in one walk over the tree."""
    walk, elements = import_module("lxml.etree").iterwalk(tree, events=("start",)), list[Any]()
    for _, element in walk:
        if predicate(element):
            elements.append(element)
            walk.skip_subtree()
    return elements


def _remove_boilerplate(tree: Any) -> str:
    """Return the page without boilerplate, and modify the page.

    Empty if nothing is found or the page is too large.

    Spans of table cells are removed first: the remover would repeat a cell once per column, and a page may
    claim any number of columns.
    """
    etree = import_module("lxml.etree")
    if sum(1 for _ in islice(tree.iter(), MAX_NODES + 1)) > MAX_NODES:
        return ""
    from trafilatura import extract

    etree.strip_attributes(tree, "colspan", "rowspan")
    source = etree.tostring(tree, encoding="unicode", method="html")
    return (
        extract(
            source, output_format="markdown", favor_recall=True, include_comments=False, include_tables=True, fast=True
        )
        or ""
    )


def _find_title(tree: Any) -> str:
    """Return the first-level heading of the page if it has exactly one, else its title."""
    tops = [_join_line("".join(top.itertext())) for top in tree.xpath(f"(//h1)[position() <= {MAX_TITLES}]")]
    if len(tops) == 1 and tops[0]:
        return tops[0]
    named = tree.findtext(".//title")
    return _join_line(named or "") or next(filter(None, tops), "")


def _join_line(text: str) -> str:
    return _NOISE_CHARS.sub("", " ".join(text.split())).strip()


@dataclass(slots=True)
class _Writer:
    """Markdown output: finished blocks, and the line that is being written."""

    blocks: list[str] = field(default_factory=list[str])
    line: list[str] = field(default_factory=list[str])
    mark: str = ""
    """Prefix of the next line: the mark of a heading or list item."""
    code: list[str] | None = None
    """Collected text inside a preformatted element. `None` outside."""
    cells: list[str] | None = None
    """Finished cells inside a table row. `None` outside."""

    def write(self, text: str | None) -> None:
        if text:
            (self.line if self.code is None else self.code).append(text)

    def flush(self) -> None:
        text = _join_line("".join(self.line))
        self.line.clear()
        if text and self.cells is not None:
            self.cells.append(text)
        elif text:
            self.blocks.append(self.mark + text)
            self.mark = ""

    def open(self, tag: str) -> None:
        if self.code is not None:
            self.code.extend("\n" if tag == "br" else "")
            return
        if tag in _BLOCKS:
            self.flush()
        if tag in _HEADINGS:
            self.mark = "#" * int(tag[1]) + " "
        elif tag in ("li", "dd"):
            self.mark = "- "
        elif tag == "pre":
            self.code = []
        elif tag == "tr":
            self.cells = []

    def close(self, tag: str) -> None:
        if tag == "pre" and self.code is not None:
            body, self.code = "".join(self.code).strip("\n"), None
            if body.strip():
                self.blocks.append(f"```\n{body}\n```")
        elif self.code is None and (tag in _BLOCKS or tag in ("td", "th")):
            self.flush()
            if tag in _HEADINGS:
                self.mark = ""
            if tag == "tr" and self.cells:
                self.blocks.append(f"| {' | '.join(self.cells)} |")
            if tag == "tr":
                self.cells = None


def render_markdown(root: Any) -> str:
    """Render an element as Markdown. The walk is not recursive, so deep nesting is harmless."""
    writer = _Writer()
    walk: Any = import_module("lxml.etree").iterwalk(root, events=("start", "end"))
    for event, element in walk:
        tag = element.tag
        if event == "start" and (tag in _DROPPED or element.get("aria-hidden") == "true") and element is not root:
            walk.skip_subtree()
        elif event == "start":
            writer.open(tag)
            writer.write(element.text)
        elif event == "end" and tag not in _DROPPED and element.get("aria-hidden") != "true":
            writer.close(tag)
        if event == "end" and element is not root:
            writer.write(element.tail)
    writer.flush()
    return "\n".join(_space_blocks(writer.blocks))


def _space_blocks(blocks: list[str]) -> Iterator[str]:
    """Yield the blocks with blank lines between them, except between list items or table rows."""
    before = ""
    for block in blocks:
        if before and not (block[:2] == before[:2] and block[:2] in ("- ", "| ")):
            yield ""
        yield block
        before = block

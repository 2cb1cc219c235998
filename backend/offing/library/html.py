"""The text of a web page as Markdown: headings, paragraphs, lists, code and tables, without what surrounds them.

A page that marks its main part is rendered as it stands, so that nothing of a reference page is lost; for one that does
not, a boilerplate remover finds it, unless it throws most of the page away.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from typing import Any

from offing.library.extraction import Extracted, Refused, decode
from offing.library.html_tags import with_few_attributes

ENOUGH_WORDS = 30
"""Words of a main part that is believed to be one."""
MOST_NODES = 50_000
"""Elements of a page that is given to the boilerplate remover, whose time grows faster than the page."""
MOST_TITLES = 8
"""Headings of the first level that are looked at for a title."""
LEAST_SHARE = 0.4
"""Of the page's words that a boilerplate remover must leave to be believed."""

_MAIN: Sequence[Callable[[Any], bool]] = (
    lambda element: element.tag == "main",
    lambda element: element.get("role") == "main",
    lambda element: element.tag == "article",
    lambda element: element.get("id") in ("content", "main-content"),
)
"""What marks a main part, the surest first."""
_DROPPED_TAGS = "script style noscript template svg nav header footer aside form button iframe head dialog"
_BLOCK_TAGS = """
    p div section article main ul ol li dl dt dd table tr pre blockquote h1 h2 h3 h4 h5 h6 figure figcaption hr br body
    address details summary thead tbody tfoot caption
"""
_DROPPED, _BLOCKS = frozenset(_DROPPED_TAGS.split()), frozenset(_BLOCK_TAGS.split())
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_NOISE = re.compile(r"[\u00b6\u200b\uf0c1]+|(?<=\S)#$")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{1,40})", re.IGNORECASE)
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")


def read_html(data: bytes) -> Extracted:
    """Raises `Refused` for what is not HTML after all."""
    lxml_html, etree = import_module("lxml.html"), import_module("lxml.etree")
    source = with_few_attributes(_DECLARATION.sub("", decoded(data)))
    # Comments are dropped by the parser: a walk over them takes time that grows with the square of their number.
    parser = lxml_html.HTMLParser(huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        tree: Any = lxml_html.document_fromstring(source, parser=parser)
    except (etree.LxmlError, ValueError):
        raise Refused("The HTML cannot be parsed.", "Save the page again, or as plain text.") from None
    extractor = f"html/1+lxml-{version('lxml')}+trafilatura-{version('trafilatura')}"
    title = _title(tree)
    return Extracted(_text(tree), title, "text/html", extractor)


def decoded(data: bytes) -> str:
    """The page's characters: by its mark, by its own word, else as any text."""
    named = _CHARSET.search(data[:4096])
    if named and not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode(named.group(1).decode())
        except (LookupError, UnicodeDecodeError):
            pass  # it names none, or not its own
    return decode(data)[0]


def _text(tree: Any) -> str:
    for is_main in _MAIN:
        marked = "\n\n".join(filter(None, (rendered(part) for part in _outermost(tree, is_main))))
        if len(marked.split()) >= ENOUGH_WORDS:
            return marked
    whole = rendered(tree.find("body") if tree.find("body") is not None else tree)
    found = _without_boilerplate(tree)
    return found if len(found.split()) >= LEAST_SHARE * len(whole.split()) else whole


def _outermost(tree: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """Elements that are wanted and stand in no other that is, in one walk over the tree."""
    walk, found = import_module("lxml.etree").iterwalk(tree, events=("start",)), list[Any]()
    for _, element in walk:
        if wanted(element):
            found.append(element)
            walk.skip_subtree()
    return found


def _without_boilerplate(tree: Any) -> str:
    """What a boilerplate remover makes of the page, which it changes. Empty: nothing, or the page is too large for it.

    It writes a cell as often as it has columns, of which a page may claim any number, so it is not told.
    """
    etree = import_module("lxml.etree")
    if sum(1 for _ in islice(tree.iter(), MOST_NODES + 1)) > MOST_NODES:
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


def _title(tree: Any) -> str:
    """The page's heading where it has exactly one, else its title."""
    tops = [_line("".join(top.itertext())) for top in tree.xpath(f"(//h1)[position() <= {MOST_TITLES}]")]
    if len(tops) == 1 and tops[0]:
        return tops[0]
    named = tree.findtext(".//title")
    return _line(named or "") or next(filter(None, tops), "")


def _line(text: str) -> str:
    return _NOISE.sub("", " ".join(text.split())).strip()


@dataclass(slots=True)
class _Writer:
    """Markdown in the making: finished blocks, and the line that is being written."""

    blocks: list[str] = field(default_factory=list[str])
    line: list[str] = field(default_factory=list[str])
    mark: str = ""
    """What the coming line begins with: a heading's or a list item's sign."""
    code: list[str] | None = None
    """Inside preformatted text: what was collected."""
    cells: list[str] | None = None
    """Inside a table row: its finished cells."""

    def write(self, text: str | None) -> None:
        if text:
            (self.line if self.code is None else self.code).append(text)

    def flush(self) -> None:
        text = _line("".join(self.line))
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


def rendered(root: Any) -> str:
    """An element as Markdown. Walks without recursion, so that depth cannot hurt."""
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
    return "\n".join(_spaced(writer.blocks))


def _spaced(blocks: list[str]) -> Iterator[str]:
    """Blank lines between blocks, but not between the items of a list or the rows of a table."""
    before = ""
    for block in blocks:
        if before and not (block[:2] == before[:2] and block[:2] in ("- ", "| ")):
            yield ""
        yield block
        before = block

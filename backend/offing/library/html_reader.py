"""Read web pages as Markdown: headings, paragraphs, lists, code and tables, without boilerplate.

A page that marks its main part is rendered completely, so that no part of a reference page is dropped. For
other pages a boilerplate remover finds the main part, unless it would remove most of the page.
"""

import codecs
import re
from collections.abc import Callable, Container, Sequence
from copy import deepcopy
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from typing import Any

from offing.library.extraction import DocumentRejectedError, ExtractedDocument, decode_text
from offing.library.html_markdown import render_markdown
from offing.library.html_problems import check_page
from offing.library.html_publication import find_publication
from offing.library.html_tables import find_data_tables
from offing.library.html_tags import limit_attributes
from offing.library.html_titles import find_title

MIN_MAIN_WORDS = 30
"""Minimum number of words of an element that is accepted as the main part."""
MIN_MAIN_FRACTION = 0.3
"""Minimum fraction of the page's words that the main part must have. A smaller one is a preview of another page."""
MAX_NODES = 50_000
"""Maximum number of elements of a page for the boilerplate remover, whose time grows faster than the page."""
MAX_SAMPLE_CHARS = 1_000
"""Maximum code points of a table that the boilerplate remover sees."""
MIN_TEXT_FRACTION = 0.4
"""Minimum fraction of the page's words that the boilerplate remover must keep for its result to be used."""

_MAIN_SELECTORS: Sequence[Callable[[Any], bool]] = (
    lambda element: element.tag == "main",
    lambda element: element.get("role") == "main",
    lambda element: element.tag == "article",
    lambda element: element.get("id") in ("content", "main-content"),
)
"""Selectors of the main part, the most reliable first."""
_TABLE_TAGS = ("table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption")
_TABLE_NAME = "OffingTable"
"""The word that stands for a table while the boilerplate remover reads the page."""
_TABLE_MARK = re.compile(rf"{_TABLE_NAME}(\d{{1,6}})\.(?:.{{0,{2 * MAX_SAMPLE_CHARS}}}?{_TABLE_NAME}\1\.)?")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{1,40})", re.IGNORECASE)
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")


def read_html(data: bytes) -> ExtractedDocument:
    """Return the text of an HTML page. Raises `DocumentRejectedError` if it is not HTML."""
    lxml_html, etree = import_module("lxml.html"), import_module("lxml.etree")
    source = limit_attributes(_DECLARATION.sub("", decode_html(data)))
    # The parser drops comments: the time to walk over them grows with the square of their number. It is not the one of
    # lxml.html, which calls Python for the class of every element of every walk.
    parser = etree.HTMLParser(huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        tree: Any = lxml_html.document_fromstring(source, parser=parser)
    except (etree.LxmlError, ValueError):
        raise DocumentRejectedError(
            "The HTML cannot be parsed.", "Save the page again, or save it as plain text."
        ) from None
    extractor = f"html/3+lxml-{version('lxml')}+trafilatura-{version('trafilatura')}"
    title, publication = find_title(tree), find_publication(tree)
    text = _extract_text(tree)
    check_page(tree, text, title)
    return ExtractedDocument(text, title, "text/html", extractor, publication)


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
    tables, body = find_data_tables(tree), tree.find("body")
    whole = render_markdown(tree if body is None else body, tables)
    words = len(whole.split())
    for is_main in _MAIN_SELECTORS:
        parts = _find_outermost(tree, is_main)
        marked = "\n\n".join(filter(None, (render_markdown(part, tables) for part in parts)))
        if len(marked.split()) >= max(MIN_MAIN_WORDS, MIN_MAIN_FRACTION * words):
            return marked
    text = _remove_boilerplate(tree, tables)
    return text if len(text.split()) >= MIN_TEXT_FRACTION * words else whole


def _find_outermost(tree: Any, predicate: Callable[[Any], bool]) -> list[Any]:
    """Return the matching elements that are not inside another match, in one walk over the tree."""
    walk, elements = import_module("lxml.etree").iterwalk(tree, events=("start",)), list[Any]()
    for _, element in walk:
        if predicate(element):
            elements.append(element)
            walk.skip_subtree()
    return elements


def _remove_boilerplate(tree: Any, tables: Container[Any]) -> str:
    """Return the page without boilerplate. Empty if nothing is found or the page is too large."""
    etree = import_module("lxml.etree")
    if sum(1 for _ in islice(tree.iter(), MAX_NODES + 1)) > MAX_NODES:
        return ""
    from trafilatura import extract

    page, texts = _take_tables(tree, tables)
    source = etree.tostring(page, encoding="unicode", method="html")
    text = extract(
        source, output_format="markdown", favor_recall=True, include_comments=False, include_tables=True, fast=True
    )
    return _put_tables(text or "", texts)


def _take_tables(tree: Any, tables: Container[Any]) -> tuple[Any, list[str]]:
    """Return a copy with a paragraph of number and first words for each data table, and the tables as Markdown.

    The boilerplate remover would lose their headings, and repeat a cell once per column that it claims to span. Cells
    of other tables become ordinary parts of the page.
    """
    page, texts = deepcopy(tree), list[str]()
    for table, copied in zip(tree.iter("table"), list(page.iter("table")), strict=True):
        if table not in tables:
            continue
        sample = " ".join(" ".join(islice(table.itertext(), MAX_SAMPLE_CHARS)).split())[:MAX_SAMPLE_CHARS]
        placeholder = copied.makeelement("p")
        placeholder.text = f"{_TABLE_NAME}{len(texts)}. {sample} {_TABLE_NAME}{len(texts)}."
        placeholder.tail = copied.tail
        texts.append(render_markdown(table, tables))
        copied.getparent().replace(copied, placeholder)
    for element in list(page.iter(*_TABLE_TAGS)):
        element.tag = "div"
    return page, texts


def _put_tables(text: str, tables: Sequence[str]) -> str:
    """Return the text with each table in the place of its paragraph."""
    left = dict(enumerate(tables))

    def put(mark: re.Match[str]) -> str:
        table = left.pop(int(mark.group(1)), None)
        return mark.group() if table is None else f"\n\n{table}\n\n"

    return re.sub(r"\n{3,}", "\n\n", _TABLE_MARK.sub(put, text)).strip() if tables else text

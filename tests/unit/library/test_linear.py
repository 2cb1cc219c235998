"""Reading takes time in proportion to what is read, whatever shape that has.

Processor time of a document and of one that is four times as large are compared within one process, so that neither a
busy machine nor a slow one matters. Quadratic work would take sixteen times as long.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from docx.oxml.ns import nsdecls

from offing.library.html_tags import limit_attributes
from offing.library.pdf.geometry import Line
from offing.library.pdf.paragraphs import Block, join_page, join_sentences
from offing.library.reader_process import read_document
from tests.unit.library.document_shapes import (
    BELOW,
    BODIES,
    TEXTS,
    TOP,
    a_docx,
    a_pdf,
    cell,
    cell_rows,
    drawn_lines,
    table,
)

MIN_SECONDS = 0.05
"""Of the smaller document, so that what the comparison costs by itself does not count."""

MAX_SIZE = 200_000
"""Of what grows. A shape that takes less time than `MIN_SECONDS` even so is fast enough."""

MAX_RATIO = 8.0

TRIED_AGAIN = (1, 2, 4, 8)
"""Times the sizes, after a ratio above it. A small document may fit a processor's cache, and so seem too quick."""

BuildDocument = Callable[[int], bytes]


def _text(name: str) -> BuildDocument:
    return lambda size: TEXTS[name](size).encode()


def _body(name: str) -> BuildDocument:
    return lambda size: a_docx(BODIES[name](size))


LD_OBJECT = '{"@type":"Article","@id":"#","author":{"@id":"#"},"datePublished":"1 May"},'


def _page(head: str) -> bytes:
    return f"<html><head>{head}</head><body><main><p>Pools keep sockets open.</p></main></body></html>".encode()


SHAPES: dict[str, BuildDocument] = {
    **{name: _text(name) for name in TEXTS},
    **{f"{name}.docx": _body(name) for name in BODIES},
    "styles.docx": lambda size: a_docx([], styles=size),
    "pages.pdf": lambda size: a_pdf(min(size // 20, 3000)),
    "texts.pdf": lambda size: a_pdf(1, "(Pools) Tj " * size),
    "objects.pdf": lambda size: a_pdf(1, objects=size),
    "rows of cells.pdf": lambda size: a_pdf(1, cell_rows(size)),
    "cells in a row.pdf": lambda size: a_pdf(1, "(12) Tj 40 0 Td " * size),
    "drawn lines.pdf": lambda size: a_pdf(1, cell_rows(20) + drawn_lines(size)),
    "pages of cells.pdf": lambda size: a_pdf(min(size // 20, 3000), cell_rows(10)),
    "metadata.pdf": lambda size: a_pdf(1) + b"<x:xmpmeta http://ns.adobe.com/pdf/1.3/<dc:creator>" * (10 * size),
    "properties.html": lambda size: _page("<meta name=author content='Ann Lee; <'>" * size),
    "objects.html": lambda size: _page(f"<script type=application/ld+json>[{LD_OBJECT * size}0]</script>" * 3),
    "title.pdf": lambda size: a_pdf(1, title="!" * size + "x"),
}


def seconds(name: str, size: int) -> float:
    """Of a processor, for a document of this shape."""
    data = SHAPES[name](size)
    began = time.process_time()
    read_document(name, data)
    return time.process_time() - began


Timed = Callable[[str, int], float]


@pytest.fixture(scope="module")
def timed() -> Iterator[Timed]:
    """In a process of its own, as documents are read. After thousands of other tests, large ones took longer than their
    size says."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        yield lambda name, size: process.submit(seconds, name, size).result()


@pytest.mark.parametrize("name", SHAPES)
def test_four_times_as_much_takes_about_four_times_as_long(name: str, timed: Timed) -> None:
    size = 1000
    timed(name, 1)  # imports
    while (small := timed(name, size)) < MIN_SECONDS and size < MAX_SIZE:
        size *= 2
    if size >= MAX_SIZE:
        return
    ratios = [timed(name, 4 * size) / small]
    for larger in TRIED_AGAIN:
        if ratios[-1] > MAX_RATIO:
            ratios.append(timed(name, 4 * larger * size) / timed(name, larger * size))
    assert ratios[-1] < MAX_RATIO, (size, ratios)


def test_the_lines_of_a_long_paragraph_are_joined_in_time_proportional_to_them() -> None:
    def join(count: int) -> float:
        lines = [Line("pools keep sockets open " * 100, 0, 400, -20 * n, 10 - 20 * n) for n in range(count)]
        began = time.process_time()
        blocks = join_page(lines)
        assert len(blocks) == 1
        assert len(list(join_sentences([Block(line.text) for line in lines]))) == 1
        return time.process_time() - began

    join(100)
    assert min(join(8000) for _ in range(3)) / min(join(2000) for _ in range(3)) < MAX_RATIO


def test_a_start_tag_keeps_its_first_attributes() -> None:
    page = "<p " + " ".join(f"a{i}='<x {i}>'" for i in range(300)) + ">Pools.</p><p class=b>Agents.</p>"
    result = limit_attributes(f"<!-- <p x=' --><script>if (a<b) '</script>{page}")
    assert result.startswith("<!-- <p x=' --><script>if (a<b) '</script><p a0='<x 0>' a1=")
    assert "a99='<x 99>'>Pools.</p><p class=b>Agents.</p>" in result
    assert "a100=" not in result


def test_what_spans_columns_and_rows_is_written_once_a_row() -> None:
    wide, top = '<w:gridSpan w:val="999999999"/>', TOP
    rows = f"<w:tr>{cell('north', top)}{cell('wide', wide)}</w:tr><w:tr>{cell('', BELOW)}{cell('a')}{cell('b')}</w:tr>"
    document = read_document("a.docx", a_docx([table(rows)]))
    assert document["text"] == "| north | wide |\n| north | a | b |"


def test_everything_that_is_written_in_a_paragraph_is_read() -> None:
    run = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r>"
    rest = '<w:hyperlink><w:r><w:t>e</w:t><w:br w:type="page"/><w:t>f</w:t></w:r></w:hyperlink>'
    document = read_document("a.docx", a_docx([f"<w:p {nsdecls('w')}>{run}{rest}</w:p>"]))
    assert document["text"] == "a b c-def"


def test_a_page_that_begins_with_comments_is_a_page() -> None:
    assert (
        read_document("a.txt", b"<?xml version='1.0'?>\n<!-- a --><!---->\n <html><body>text")["media_type"]
        == "text/html"
    )
    assert read_document("a.txt", b"<!-- html --> text")["media_type"] == "text/plain"


def test_headings_without_text_make_passages_of_the_usual_size() -> None:
    document = read_document("a.md", "".join(f"# Part {i} of many\n" for i in range(500)).encode())
    assert len(document["passages"]) > 5
    assert max(end - start for start, end, _ in document["passages"]) < 5000


def test_a_line_of_signs_that_is_too_long_for_a_heading_is_text() -> None:
    document = read_document("a.md", b"# " + b"Word " * 200 + b"\n\nIts text.\n")
    assert [heading for _, _, heading in document["passages"]] == [""] * len(document["passages"])
    assert document["title"] == ""

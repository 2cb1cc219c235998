"""PDFs of public collections: titles, tables, their cells against a ground truth, and the CPU time of reading.

    python -m tests.bench.pdfs --collections FOLDER

FOLDER contains the collections FinanceBench (`financebench/pdfs`), Camelot's test files with the tables of the ICDAR
2013 table competition (`camelot`), pdfplumber's test files (`pdfplumber`) and the paper of BrowseComp-Plus
(`browsecomp_plus`). A missing file is named and left out. `text x` and `layout x` are the CPU time of the pages that
are read by lines and of those that are read by words, divided by that of extracting their plain text with pypdfium2.
"""

import argparse
import re
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pypdfium2

from offing.library.extraction import DocumentRejectedError, extract_text
from offing.library.pdf.geometry import Table
from offing.library.pdf.page_layout import needs_layout
from offing.library.pdf.page_reader import PageReader
from offing.library.pdf.rows import is_value
from offing.library.pdf_reader import read_page, write_pages

_REPORTS, _CAMELOT, _PLUMBER = "financebench/pdfs", "camelot/tests/files", "pdfplumber/tests/pdfs"
SOURCES = (
    *(f"{_REPORTS}/{name}.pdf" for name in ("3M_2018_10K", "ADOBE_2017_10K", "AES_2020_10K", "AMAZON_2019_10K")),
    *(
        f"{_REPORTS}/{name}.pdf"
        for name in ("BOEING_2022_10K", "COSTCO_2021_10K", "CORNING_2022_10K", "PFIZER_2021_10K")
    ),
    *(f"{_REPORTS}/{name}.pdf" for name in ("PEPSICO_2023Q1_EARNINGS", "MICROSOFT_2016_10K")),
    "browsecomp_plus/BrowseCompPlus_paper.pdf",
    *(f"{_CAMELOT}/{name}.pdf" for name in ("foo", "health", "tabula/us-017", "background_lines_1", "tabula/12s0324")),
    *(f"{_CAMELOT}/{name}.pdf" for name in ("image", "multiple_tables")),
    *(f"{_PLUMBER}/{name}.pdf" for name in ("federal-register-2020-17221", "senate-expenditures")),
    *(f"{_PLUMBER}/{name}.pdf" for name in ("scotus-transcript-p1", "chelsea_pdta")),
)
"""Annual reports, a paper, pages in two or three columns, ruled and unruled tables, and scans without text."""
GROUND_TRUTH = f"{_CAMELOT}/tabula/icdar2013-dataset"
REPEATS = 3

Rows = list[tuple[str, ...]]
"""The texts of a table by row and column. A cell that spans columns or rows is in the first of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collections", type=Path, required=True, help="folder of the public collections")
    parser.add_argument("--cells", action="store_true", help="list the accuracy of each file with a ground truth")
    options = parser.parse_args()
    _report_sources(options.collections)
    _report_cells(options.collections, each=options.cells)


def _report_sources(folder: Path) -> None:
    print(f"{'file':28} pages layout tables  text x  layout x  title")
    for name in SOURCES:
        path = folder / name
        if not (data := _read_file(path)):
            continue
        try:
            title = extract_text(data, path.name).title
        except DocumentRejectedError as error:
            print(f"{path.stem[:28]:28} rejected: {error}")
            continue
        with pypdfium2.PdfDocument(data) as document:
            pages = [read_page(document, number) for number in range(len(document))]
            is_layout = [_is_read_by_words(document, number) for number in range(len(document))]
        tables = sum(isinstance(element, Table) for page in pages for element in page)
        texts = _compare_time(data, [n for n, by_words in enumerate(is_layout) if not by_words])
        layouts = _compare_time(data, [n for n, by_words in enumerate(is_layout) if by_words])
        counts = f"{len(pages):5} {sum(is_layout):6} {tables:6}"
        print(f"{path.stem[:28]:28} {counts}  {texts:>6}  {layouts:>8}  {title[:70]}")


def _is_read_by_words(document: pypdfium2.PdfDocument, number: int) -> bool:
    page = PageReader(document, number)
    try:
        return needs_layout(page.read_lines(), page.has_wide_gap)
    finally:
        page.close()


def _read_file(path: Path) -> bytes:
    data = path.read_bytes() if path.exists() else b""
    if b"%PDF-" in data[:1024]:
        return data
    print(f"MISSING, left out: {path}", file=sys.stderr)
    return b""


def _compare_time(data: bytes, pages: Sequence[int]) -> str:
    """Return the CPU time of reading pages divided by that of extracting their plain text, the minimum of each."""
    if not pages:
        return "-"
    ours, plain = list[float](), list[float]()
    for _ in range(REPEATS):
        plain.append(_measure_seconds(data, pages, _read_plainly))
        ours.append(_measure_seconds(data, pages, _read_fully))
    return f"{min(ours) / min(plain):.2f}"


def _measure_seconds(
    data: bytes, pages: Sequence[int], read: Callable[[pypdfium2.PdfDocument, Sequence[int]], object]
) -> float:
    with pypdfium2.PdfDocument(data) as document:
        began = time.process_time()
        read(document, pages)
        return time.process_time() - began


def _read_plainly(document: pypdfium2.PdfDocument, pages: Sequence[int]) -> None:
    for number in pages:
        page = document[number]
        page.get_textpage().get_text_range()
        page.close()


def _read_fully(document: pypdfium2.PdfDocument, pages: Sequence[int]) -> None:
    write_pages([read_page(document, number) for number in pages], set())


def _report_cells(folder: Path, *, each: bool) -> None:
    """Print precision and recall of the relations between adjacent cells (G\u00f6bel et al., 2013), and of whole rows.

    A relation is two texts side by side or one above the other, with no text between them. A row is found if the texts
    of all its cells are equal. Only rows with a number count. White space and currency signs are left out.
    """
    relations, rows = _Score(), _Score()
    for truth in sorted((folder / GROUND_TRUTH).glob("*/*-str.xml")):
        path = truth.with_name(truth.name.replace("-str.xml", ".pdf"))
        if not (data := _read_file(path)):
            continue
        expected, actual = list(_read_truth(truth)), list(_parse_tables(extract_text(data, path.name).text))
        own = _Score(), _Score()
        for score, count in zip(own, (_list_relations, _list_rows), strict=True):
            score.add(Counter(r for t in expected for r in count(t)), Counter(r for t in actual for r in count(t)))
        if each:
            print(f"{path.stem:10} relations {own[0]}  rows {own[1]}  tables {len(actual)} of {len(expected)}")
        relations.merge(own[0])
        rows.merge(own[1])
    print(f"relations of cells: {relations}\nrows with numbers: {rows}")


@dataclass(slots=True)
class _Score:
    correct: int = 0
    expected: int = 0
    actual: int = 0

    def add(self, expected: Counter[tuple[str, ...]], actual: Counter[tuple[str, ...]]) -> None:
        self.correct += (expected & actual).total()
        self.expected += expected.total()
        self.actual += actual.total()

    def merge(self, other: "_Score") -> None:
        self.correct, self.expected = self.correct + other.correct, self.expected + other.expected
        self.actual += other.actual

    def __str__(self) -> str:
        precision, recall = self.correct / max(self.actual, 1), self.correct / max(self.expected, 1)
        return f"precision {precision:.3f} recall {recall:.3f} ({self.correct} of {self.expected})"


def _read_truth(path: Path) -> Iterator[Rows]:
    """Yield the regions of the tables of a ground truth."""
    for region in ElementTree.parse(path).getroot().iter("region"):
        cells = dict[tuple[int, int], str]()
        for cell in region.iter("cell"):
            text = _normalize("".join(cell.findtext("content") or ""))
            cells[int(cell.attrib["start-row"]), int(cell.attrib["start-col"])] = text
        if cells:
            height, width = max(r for r, _ in cells) + 1, max(c for _, c in cells) + 1
            yield [tuple(cells.get((r, c), "") for c in range(width)) for r in range(height)]


def _parse_tables(text: str) -> Iterator[Rows]:
    """Yield the tables of an extracted text. Blocks with the same header are one table."""
    rows, header = Rows(), ""
    for block in text.split("\n\n"):
        lines = block.split("\n")
        if not lines[0].startswith("| "):
            continue
        is_rest = header != "" and lines[0] == header and lines[1:2] != [] and lines[1].startswith("|---")
        if rows and not is_rest:
            yield rows
            rows = []
        header = lines[0] if lines[1:2] and lines[1].startswith("|---") else ""
        lines = [line for line in lines if not line.startswith("|---")]
        rows.extend(_parse_row(line) for line in (lines[1:] if is_rest else lines))
    if rows:
        yield rows


def _parse_row(line: str) -> tuple[str, ...]:
    return tuple(_normalize(cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line)[1:-1])


def _normalize(text: str) -> str:
    return re.sub(r"[\s$\u20ac\u00a3]+", "", text).replace("\u2212", "-").replace("\u2013", "-").lower()


def _list_relations(table: Rows) -> Iterator[tuple[str, ...]]:
    for row in table:
        texts = [text for text in row if text]
        yield from (("right", a, b) for a, b in pairwise(texts))
    for column in zip(*table, strict=True):
        texts = [text for text in column if text]
        yield from (("below", a, b) for a, b in pairwise(texts))


def _list_rows(table: Rows) -> Iterator[tuple[str, ...]]:
    for row in table:
        texts = tuple(text for text in row if text)
        if len(texts) > 1 and any(is_value(text) for text in texts):
            yield texts


if __name__ == "__main__":
    main()

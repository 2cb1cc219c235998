"""Score the reading of web pages on public collections: titles, expected and unwanted text, and cells of tables.

    .venv/bin/python -m tests.bench.web_documents --collections FOLDER [--pages]

FOLDER holds the repositories of the collections under these names: `readability` (mozilla/readability) and
`trafilatura_repo` (adbar/trafilatura). They are not matched in this project; a collection that is missing is named and
left out.

- *Titles*: the fraction of pages whose title equals the expected one, apart from spaces, case, quotes and dashes.
- *Snippets* (trafilatura): of the texts that a reader must keep, the fraction that is kept, and of the snippets in the
  output, the fraction that must be kept.
- *Words* (readability): of the words of the expected article, the fraction that is kept, and of the words of the
  output, the fraction that is expected; means over the pages.
- *Cells*: of the cells of the data tables of the pages in `TABLE_PAGES`, the fraction whose whole text is a cell of a
  table with a header row, and of the output's tables the fraction whose rows have the same number of cells.

`--pages` lists every page with its values, to compare two commits.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from offing.library.extraction import DocumentRejectedError, ExtractedDocument, extract_text
from offing.library.html_reader import decode_html

TABLE_PAGES = (
    "wikipedia",
    "wikipedia-2",
    "wikipedia-4",
    "lwn-1",
    "google-sre-book-1",
    "90min.de-Bundesliga-Tabelle.html",
    "adac.de.kindersitze.html",
    "bafa.de-mineraloelabsatz.html",
    "baike.baidu.com.tanya.html",
    "chefkoch.de.mandarinen.html",
    "comparis.ch.autofinanzierung.html",
    "docs.docker.com.install.html",
    "ebike-mtb.com-OFFROAD.html",
    "finanztip.de.altersvorsorge.html",
    "fluessiggas.de.dimethylether.html",
    "harrypotter.fandom.com.spell.html",
    "lemire.me.json.html",
    "stardewvalleywiki.com.penny.html",
    "thebalance.com.coinbase.html",
    "toralin.de.schmierfett.html",
)
"""Pages with tables: encyclopedias, documentation, news, blogs and shops in English, German and Chinese."""

_HTML: Any = import_module("lxml.html")
_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u201a`\u00b4'", '"'))
_DASHES = re.compile(r"\s*[-\u2010-\u2015]\s*")
_WORD = re.compile(r"\w+")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKS = re.compile(r"[*_`|\\]")


@dataclass(frozen=True, slots=True)
class Page:
    """A page and what is expected of it. Empty fields mean that nothing is expected."""

    name: str
    data: bytes
    title: str
    expected: Sequence[str] = ()
    unwanted: Sequence[str] = ()
    article: str = ""


@dataclass(frozen=True, slots=True)
class PageScore:
    name: str
    title: str
    expected_title: str
    is_title_right: bool
    matched: int
    snippets: int
    intruded: int
    word_recall: float = 0.0
    word_precision: float = 0.0


def load_readability(folder: Path) -> Iterator[Page]:
    for page in sorted((folder / "test/test-pages").iterdir()):
        metadata = json.loads((page / "expected-metadata.json").read_text())
        article = _HTML.document_fromstring((page / "expected.html").read_text() or "<p></p>")
        yield Page(
            page.name, (page / "source.html").read_bytes(), metadata["title"] or "", article=_gather_text(article)
        )


def load_trafilatura(folder: Path) -> Iterator[Page]:
    entries: Mapping[str, Mapping[str, Any]] = json.loads((folder / "tests/evaldata.json").read_text())
    for entry in entries.values():
        paths = [folder / "tests" / place / entry["file"] for place in ("cache", "eval")]
        data = next((path.read_bytes() for path in paths if path.exists()), None)
        if data is not None:
            yield Page(entry["file"], data, entry.get("title") or "", entry["with"], entry["without"])


LOADERS = {"readability": load_readability, "trafilatura_repo": load_trafilatura}


def _gather_text(element: Any) -> str:
    return " ".join(element.itertext())


def read_page(page: Page) -> ExtractedDocument:
    """Return the document, which is empty if the page is rejected."""
    try:
        return extract_text(page.data, "page.html")
    except DocumentRejectedError as rejection:
        return ExtractedDocument("", str(rejection), "text/html", "")


def normalize_title(title: str) -> str:
    return _DASHES.sub("-", " ".join(title.translate(_QUOTES).split())).casefold()


def normalize_text(text: str) -> str:
    """Return the text without markup, and with one space between words."""
    return "".join(_MARKS.sub("", _LINK.sub(r"\1", text)).split()).casefold()


def score_page(page: Page, document: ExtractedDocument) -> PageScore:
    text = normalize_text(document.text)
    words, expected = Counter(_WORD.findall(document.text)), Counter(_WORD.findall(page.article))
    common = (words & expected).total()
    return PageScore(
        page.name, document.title, page.title,
        is_title_right=normalize_title(document.title) == normalize_title(page.title),
        matched=sum(normalize_text(snippet) in text for snippet in page.expected), snippets=len(page.expected),
        intruded=sum(normalize_text(snippet) in text for snippet in page.unwanted),
        word_recall=common / max(1, expected.total()), word_precision=common / max(1, words.total()),
    )  # fmt: skip


def list_cells(data: bytes) -> list[str]:
    """Return the cells of the data tables of a page: without a table inside, with a header, two rows and columns."""
    tree: Any = _HTML.document_fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", decode_html(data)))
    for dropped in tree.xpath("//style | //script | //noscript"):
        dropped.drop_tree()
    tables = tree.xpath("//table[.//th or .//thead][not(.//table)][not(ancestor::nav or ancestor::footer)]")
    shaped = [t for t in tables if len(t.xpath(".//tr[count(td | th) > 1]")) > 1 and "navbox" not in t.get("class", "")]
    cells = [normalize_text(_gather_text(cell)) for table in shaped for cell in table.xpath(".//td | .//th")]
    return [cell for cell in cells if cell]


def list_tables(text: str) -> list[list[list[str]]]:
    """Return the cells of every row of every pipe table of a text. A table without a header row is left out."""
    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\|[ ]*$\n?)+", text, re.MULTILINE)]
    headed = [rows for rows in tables if len(rows) > 1 and re.fullmatch(r"\|(?:\s*:?-+:?\s*\|)+", rows[1].rstrip())]
    return [[re.split(r"(?<!\\)\|", row.rstrip())[1:-1] for row in (rows[0], *rows[2:])] for rows in headed]


@dataclass(slots=True)
class TableTotals:
    cells: int = 0
    kept_cells: int = 0
    tables: int = 0
    regular: int = 0

    def add(self, data: bytes, text: str) -> str:
        """Add a page, and return its values."""
        expected, tables = list_cells(data), list_tables(text)
        written = {normalize_text(cell) for table in tables for row in table for cell in row}
        kept_cells = sum(cell in written for cell in expected)
        regular = sum(len({len(row) for row in table}) == 1 for table in tables)
        self.cells, self.kept_cells = self.cells + len(expected), self.kept_cells + kept_cells
        self.tables, self.regular = self.tables + len(tables), self.regular + regular
        return f"cells {kept_cells}/{len(expected)} in {len(tables)} tables, {regular} of them regular"


def measure(pages: Iterator[Page], totals: TableTotals, show_pages: bool) -> list[PageScore]:
    scores = list[PageScore]()
    for page in pages:
        document = read_page(page)
        score = score_page(page, document)
        scores.append(score)
        cells = totals.add(page.data, document.text) if page.name in TABLE_PAGES else ""
        if show_pages:
            print(
                f"{score.name}: title {score.title!r} expected {score.expected_title!r} "
                f"{'right' if score.is_title_right else 'wrong'}; snippets {score.matched}/{score.snippets} and "
                f"{score.intruded} unwanted; words {score.word_recall:.3f} {score.word_precision:.3f}; {cells}"
            )
    return scores


def summarize(name: str, scores: Sequence[PageScore]) -> str:
    titled = [score for score in scores if score.expected_title]
    right = sum(score.is_title_right for score in titled)
    line = f"{name}: {len(scores)} pages; titles {right}/{len(titled)} = {right / max(1, len(titled)):.3f}"
    matched, snippets = sum(s.matched for s in scores), sum(s.snippets for s in scores)
    if snippets:
        intruded = sum(s.intruded for s in scores)
        return (
            line + f"; snippets: recall {matched / snippets:.3f}, precision {matched / max(1, matched + intruded):.3f}"
        )
    recall, precision = (sum(values) / len(scores) for values in zip(*map(_word_values, scores), strict=True))
    return line + f"; words: recall {recall:.3f}, precision {precision:.3f}"


def _word_values(score: PageScore) -> tuple[float, float]:
    return score.word_recall, score.word_precision


def main() -> None:
    """Measure every collection in the folder."""
    parser = argparse.ArgumentParser(description="Score the reading of web pages on public collections.")
    parser.add_argument("--collections", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--pages", action="store_true", help="list every page with its values")
    arguments = parser.parse_args()
    totals = TableTotals()
    for name, load in LOADERS.items():
        if not (arguments.collections / name).exists():
            print(f"left out: {name}; {arguments.collections / name} does not exist")
            continue
        print(summarize(name, measure(load(arguments.collections / name), totals, arguments.pages)), flush=True)
    print(
        f"tables of {len(TABLE_PAGES)} pages: {totals.kept_cells}/{totals.cells} cells = "
        f"{totals.kept_cells / max(1, totals.cells):.3f} in tables with a header row; "
        f"{totals.regular}/{totals.tables} tables have rows of one length"
    )


if __name__ == "__main__":
    main()

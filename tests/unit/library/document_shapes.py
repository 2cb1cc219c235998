"""Documents whose structure grows with a number: what a hostile or merely odd file may hold."""

import io
import zipfile
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import docx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

WORDS = "Pools keep sockets open so that later requests need no new handshake. "

_UNKNOWN = count()
"""Numbers of words that no document before had: what words come to is remembered, and would seem quick."""

Shape = Callable[[int], str]

TEXTS: Mapping[str, Shape] = {
    "headings.md": lambda n: "".join(f"# Part {i}\n" for i in range(n)),
    "headings and text.md": lambda n: "".join(f"{'#' * (i % 6 + 1)} Part {i}\n\nIts text.\n\n" for i in range(n)),
    "underlined.rst": lambda n: "".join(f"Part {i}\n=======\n\n" for i in range(n)),
    "deepening.rst": lambda n: "".join(f"Part {i}\n{'=-~^*+'[i % 6] * 8}\n\n{' ' * (i % 99)}Text\n" for i in range(n)),
    "heading of spaces.md": lambda n: "# a" + " " * n + "b\n",
    "heading of marks.md": lambda n: "# a" + " #" * n + " b\n",
    "headings of brackets.md": lambda n: ("# " + "[" * 900 + "\n") * (n // 900),
    "heading of links.md": lambda n: "# a " + "[](" * n + "\n",
    "headings of links.md": lambda n: ("# a " + "[](" * 60 + "\n") * (n // 180),
    "headings of tags.md": lambda n: ("# a " + "<" * 280 + "\n") * (n // 280),
    "a long heading over much.md": lambda n: "# " + "Word " * n + "\n\n" + (WORDS * 3 + "\n\n") * (n // 20),
    "underline of spaces.rst": lambda n: "Title\n===" + " " * n + "x\n\ntext\n",
    "rules.md": lambda n: "---\n" * n + "text",
    "title in front.md": lambda n: "---\ntitle: a" + " " * 3900 + "b\n---\n" + "text " * n,
    "links.md": lambda n: "".join(f"[text {i}](https://example.org/{i}) " for i in range(n)),
    "quotes.md": lambda n: "".join(f"{'>' * (i % 60 + 1)} said {i}\n" for i in range(n)),
    "nested lists.md": lambda n: "".join(f"{' ' * (i % 80)}- item {i}\n" for i in range(n)),
    "table.md": lambda n: "".join(f"| a{i} | b | c |\n" for i in range(n)),
    "a wide table.md": lambda n: "| a" * n + " |\n" + "|---" * n + "|\n" + "| b" * n + " |\n",
    "fences.md": lambda n: "```\ncode\n```\n" * n,
    "a fence without end.md": lambda n: "~~~\n" + "let code = 1;\n" * n,
    "alternating fences.md": lambda n: "".join("`" * (i % 40 + 3) + "\nx\n" for i in range(n)),
    "blank lines.txt": lambda n: "text" + "\n" * n + "text",
    "spaces.txt": lambda n: "text. " + " " * n + "text.",
    "spaces after dots.txt": lambda n: ("text." + " " * 500) * (n // 500) + "text",
    "quotes after a dot.txt": lambda n: "text." + "\"')" * n + "text",
    "dots.txt": lambda n: "text" + "." * n + "text",
    "one word.txt": lambda n: "x" * n,
    "one joined word.txt": lambda n: "ab_cd." * n,
    "capitals.txt": lambda n: "A" * n + "b",
    "humps.txt": lambda n: "AaBb" * n,
    "joined by lines.txt": lambda n: "a__b_" * n,
    "a long line.txt": lambda n: WORDS * (n // 10),
    "many words.txt": lambda n: " ".join(f"w{next(_UNKNOWN)}" for _ in range(n)),
    "accents.txt": lambda n: "e\u0301 " * n,
    "ideographs.txt": lambda n: "\u6f6e\u6c50\u3002" * n,
    "directives.rst": lambda n: "".join(f".. note::\n\n   Text {i}.\n\n" for i in range(n)),
    "indented.rst": lambda n: "".join(" " * (i % 200) + f"deep {i}\n\n" for i in range(n)),
    "comments in front.html": lambda n: "<!---->" * n + "<html><body><p>text</p></body></html>",
    "processing instruction.html": lambda n: "<?xml " + "?" * n + "<html><body>text</body></html>",
    "attributes.html": lambda n: "<html><body><p " + " ".join(f"a{i}=1" for i in range(n)) + ">text</p></body></html>",
    "attributes in many tags.html": lambda n: (
        "<html><body>" + ("<p " + " ".join(f"a{i}=1" for i in range(1000)) + ">text</p>") * (n // 1000)
    ),
    "quoted attributes.html": lambda n: "<html><body>text" + "<a \"<b '>" * n,
    "open tags.html": lambda n: "<html><body>text" + "<a " * n,
    "nested divs.html": lambda n: "<html><body>" + "<div>" * n + "text" + "</div>" * n,
    "nested inline.html": lambda n: "<html><body>" + "<b>x" * n,
    "nested lists.html": lambda n: "<html><body>" + "<ul><li>item " * n,
    "nested tables.html": lambda n: "<html><body>" + "<table><tr><td>cell " * n,
    "nested articles.html": lambda n: "<html><body>" + "<article>" * n + "text " * 20,
    "articles.html": lambda n: "<html><body>" + "<article>text</article>" * n,
    "mains.html": lambda n: "<html><body>" + "<main>text</main>" * n,
    "ids.html": lambda n: "<html><body>" + "<div id=content>text</div>" * n,
    "spans.html": lambda n: "<html><body><table>" + "<tr><td colspan=999999999 rowspan=999999999>c</td></tr>" * n,
    "cells.html": lambda n: "<html><body><table><tr>" + "<td>c</td>" * n,
    "headed tables.html": lambda n: "<html><body>" + "<table><tr><th>a<th>b<tr><td>c<td>d</table>" * n,
    "row spans.html": lambda n: "<html><body><main><table>" + "<tr><th rowspan=9999>a<td colspan=9>b</tr>" * n,
    "sparse rows.html": lambda n: "<html><body><main><table><tr>" + "<th>a" * n + "</tr>" + "<tr><td>b<td>c</tr>" * n,
    "headings of tables.html": lambda n: "<html><body><main><table>" + "<tr><th>a<th>b</tr>" * n,
    "comments by name.html": lambda n: "<html><body>text" + "<div class=comment>no" * n,
    "names.html": lambda n: "<html><body>text" + f"<div class='{'-'.join(['has'] * 90)}'>x</div>" * (n // 90),
    "long title.html": lambda n: "<html><head><title>" + "a - b | " * n + "</title></head><body><h1>a</h1>text",
    "raised.html": lambda n: "<html><body><main>text " + "<sup>1</sup>" * n,
    "raised inside.html": lambda n: "<html><body><main>text " + "<sup>1<a>" * n,
    "formulas.html": lambda n: "<html><body><main>text " + "<math><mi>a</mi></math>" * n,
    "placeholders.html": lambda n: (
        "<html><body><table><tr><th>a<th>b<tr><td>c<td>d</table><p>" + "".join(f"OffingTable{i}. " for i in range(n))
    ),
    "links.html": lambda n: "<html><body>" + "".join(f"<a href=/{i}>link {i}</a> " for i in range(n)),
    "links and text.html": lambda n: "<html><body>" + "".join(f"<p>{WORDS}<a href=/{i}>x</a></p>" for i in range(n)),
    "entities.html": lambda n: "<html><body>" + "&amp;&#x41;&hearts;" * n,
    "breaks.html": lambda n: "<html><body>text" + "<br>" * n,
    "headings.html": lambda n: "<html><body>" + "".join(f"<h1>Part {i}</h1>" for i in range(n)),
    "comments.html": lambda n: "<html><body>text" + "<!-- c -->" * n,
    "preformatted.html": lambda n: "<html><body><pre>" + "line\n" * n + "</pre>",
    "unclosed paragraphs.html": lambda n: "<html><body>" + "<p>text" * n,
    "misnested.html": lambda n: "<html><body>" + "<b><p></b><i></p>" * n,
    "scripts.html": lambda n: "<html><body>text" + "<script>x</script>" * n,
    "forms.html": lambda n: "<html><body>text" + "<form><select><option>x" * n,
    "descriptions.html": lambda n: "<html><body><main>" + "<dl><dt>term<dd>meaning</dl>" * n,
}
"""By the name of a file: its text."""


TOP, BELOW = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"


def table(rows: str) -> str:
    return f"<w:tbl {nsdecls('w')}><w:tblPr/><w:tblGrid/>{rows}</w:tbl>"


def _nested(depth: int) -> str:
    # The parser rejects what is nested deeper, so the number of such tables is what grows.
    inner = cell("deepest")
    for _ in range(depth):
        inner = f"<w:tc><w:tcPr/><w:tbl><w:tblPr/><w:tblGrid/><w:tr>{inner}</w:tr></w:tbl><w:p/></w:tc>"
    return table(f"<w:tr>{inner}</w:tr>")


BODIES: Mapping[str, Callable[[int], list[str]]] = {
    "a span": lambda n: [table("<w:tr>" + cell("wide", f'<w:gridSpan w:val="{n * 1000}"/>') + "</w:tr>")],
    "spans": lambda n: [table("<w:tr>" + cell("wide", '<w:gridSpan w:val="999"/>') * n + "</w:tr>")],
    "gaps": lambda n: [table(f'<w:tr><w:trPr><w:gridBefore w:val="{n * 1000}"/></w:trPr>' + cell("wide") + "</w:tr>")],
    "cells": lambda n: [table("<w:tr>" + cell("c") * n + "</w:tr>")],
    "rows": lambda n: [table(("<w:tr>" + cell("c") * 2 + "</w:tr>") * n)],
    "merged rows": lambda n: [table(f"<w:tr>{cell('top', TOP)}</w:tr>" + f"<w:tr>{cell('', BELOW)}</w:tr>" * n)],
    "merged cells": lambda n: [table(f"<w:tr>{cell('top', TOP) * n}</w:tr>" + f"<w:tr>{cell('', BELOW) * n}</w:tr>")],
    "tables": lambda n: [table(f"<w:tr>{cell('c')}</w:tr>")] * n,
    "nested tables": lambda n: [_nested(40)] * (n // 40),
    "runs": lambda n: [f"<w:p {nsdecls('w')}>" + "<w:r><w:t>x</w:t></w:r>" * n + "</w:p>"],
    "links": lambda n: [f"<w:p {nsdecls('w')}>" + "<w:hyperlink><w:r><w:t>x</w:t></w:r></w:hyperlink>" * n + "</w:p>"],
    "runs and links": lambda n: [
        f"<w:p {nsdecls('w')}>"
        + "<w:r><w:t>x</w:t></w:r><w:hyperlink><w:r><w:t>y</w:t></w:r></w:hyperlink>" * n
        + "</w:p>"
    ],
    "paragraphs": lambda n: [f"<w:p {nsdecls('w')}><w:r><w:t>{WORDS}</w:t></w:r></w:p>"] * n,
    "headings": lambda n: (
        [f'<w:p {nsdecls("w")}><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Part</w:t></w:r></w:p>'] * n
    ),
    "breaks": lambda n: [f"<w:p {nsdecls('w')}><w:r><w:t>x</w:t>" + "<w:br/><w:tab/>" * n + "</w:r></w:p>"],
    "bookmarks": lambda n: [
        f"<w:p {nsdecls('w')}><w:r><w:t>x</w:t></w:r>"
        + "".join(f'<w:bookmarkStart w:id="{i}" w:name="b{i}"/><w:bookmarkEnd w:id="{i}"/>' for i in range(n))
        + "</w:p>"
    ],
    "comments": lambda n: [
        f"<w:p {nsdecls('w')}>"
        + "".join(f'<w:r><w:t>x</w:t></w:r><w:r><w:commentReference w:id="{i}"/></w:r>' for i in range(n))
        + "</w:p>"
    ],
    "footnotes": lambda n: [
        f"<w:p {nsdecls('w')}>"
        + "".join(f'<w:r><w:t>x</w:t></w:r><w:r><w:footnoteReference w:id="{i}"/></w:r>' for i in range(n))
        + "</w:p>"
    ],
}
"""By what grows: the blocks of a DOCX document's body."""


def a_docx(blocks: list[str], styles: int = 0) -> bytes:
    """A document with these blocks, and with `styles` additional styles, each used by one paragraph."""
    document: Any = docx.Document()
    body = document.element.body
    for number in range(styles):
        style = f'<w:style {nsdecls("w")} w:type="paragraph" w:styleId="S{number}"><w:name w:val="s{number}"/>'
        style += "</w:style>"
        document.styles.element.append(parse_xml(style))
        blocks.append(f'<w:p {nsdecls("w")}><w:pPr><w:pStyle w:val="S{number}"/></w:pPr><w:r><w:t>x</w:t></w:r></w:p>')
    for block in blocks:
        body.insert(len(body) - 1, parse_xml(block))
    out = io.BytesIO()
    document.save(out)
    return _thin(out.getvalue())


def _thin(data: bytes) -> bytes:
    """The same archive without compression, which the guard against bombs would reject."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as packed, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain:
        for entry in packed.namelist():
            plain.writestr(entry, packed.read(entry))
    return out.getvalue()


LINES = "(Pools) Tj 0 -20 Td (keep sockets open) Tj 0 -20 Td (for requests that come later.) Tj"


def cell_rows(rows: int) -> str:
    """Rows of a label and two numbers, for the text of `a_pdf`."""
    return "".join(f"(Pool {n}) Tj 200 0 Td ({n}) Tj 100 0 Td ({n}.5) Tj -300 -14 Td " for n in range(rows))


def drawn_lines(count: int) -> str:
    """Lines that cross one another, drawn after the text of `a_pdf`."""
    crossing = (f"{n % 500} 100 m {n % 500} 700 l S 50 {n % 700} m 550 {n % 700} l S " for n in range(count))
    return f"ET {''.join(crossing)} BT"


def a_pdf(pages: int, line: str = LINES, title: str = "Pools", objects: int = 0) -> bytes:
    """A document written by hand, so that its size is all that it costs to make."""
    content = f"BT /F1 12 Tf 72 720 Td {line} ET".encode()
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + b" ".join(b"%d 0 R" % (n + 6) for n in range(pages)) + b"] /Count %d >>" % pages,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >>\nstream\n" % len(content) + content + b"\nendstream",
        b"<< /Title (" + title.encode() + b") >>",
    ]
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
    page += b"/Resources << /Font << /F1 3 0 R >> >> >>"
    parts += [page] * pages + [b"<< /Nothing true >>"] * objects
    out, positions = bytearray(b"%PDF-1.7\n"), list[int]()
    for number, part in enumerate(parts, 1):
        positions.append(len(out))
        out += b"%d 0 obj\n" % number + part + b"\nendobj\n"
    at = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(parts) + 1)
    out += b"".join(b"%010d 00000 n \n" % position for position in positions)
    out += b"trailer << /Size %d /Root 1 0 R /Info 5 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(parts) + 1, at)
    return bytes(out)

"""PDFs that imitate real documents: an annual report, a paper in two columns, and a ruled table over two pages.

What is extracted from a page is here too.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from fpdf import FPDF

from offing.library.extraction import ExtractedDocument, extract_text

LEADING = 13.0
"""Distance of two lines in points."""
PROSE = (
    "Pools keep connections open so that later requests need no new handshake. A pool that is too small makes requests "
    "wait for one another, and a pool that is too large wastes memory on the server. The measurements below compare "
    "pools of several sizes under the same load, with requests that arrive at random times during one hour."
)


class Page:
    """A PDF on whose pages texts are placed by their position in points from the upper left corner."""

    def __init__(self, title: str = "") -> None:
        self.pdf = FPDF(unit="pt", format="letter")
        self.pdf.set_creation_date(datetime(2024, 1, 1, tzinfo=UTC))
        self.pdf.set_title(title)
        self.pdf.set_auto_page_break(False)
        self.pdf.add_page()
        self.type()

    def type(self, size: float = 10, style: str = "", family: str = "Helvetica") -> "Page":
        self.pdf.set_font(family, style, size)
        return self

    def left(self, x: float, y: float, text: str) -> "Page":
        self.pdf.text(x, y, text)
        return self

    def right(self, x: float, y: float, text: str) -> "Page":
        return self.left(x - self.pdf.get_string_width(text.rstrip(")%")), y, text)

    def center(self, x: float, y: float, text: str) -> "Page":
        return self.left(x - self.pdf.get_string_width(text) / 2, y, text)

    def lines(self, x: float, y: float, width: float, text: str) -> float:
        """Place a text in lines of at most this width, and return the position of the next line."""
        line = ""
        for word in text.split():
            if line and self.pdf.get_string_width(f"{line} {word}") > width:
                self.left(x, y, line)
                y, line = y + LEADING, word
            else:
                line = f"{line} {word}".strip()
        self.left(x, y, line)
        return y + LEADING

    def grid(self, x: float, y: float, widths: Sequence[float], height: float, rows: Sequence[Sequence[str]]) -> float:
        """Place rows of cells with drawn borders, and return the position below them."""
        for row in rows:
            at = x
            for width, text in zip(widths, row, strict=True):
                self.pdf.rect(at, y, width, height)
                for number, line in enumerate(text.split("\n")):
                    self.left(at + 4, y + 12 + 11 * number, line)
                at += width
            y += height
        return y

    def next(self) -> "Page":
        self.pdf.add_page()
        return self

    def output(self) -> bytes:
        return bytes(self.pdf.output())


def read(page: Page) -> ExtractedDocument:
    return extract_text(page.output(), "a.pdf")


def table_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("|") and not line.startswith("|---")]


VALUE_COLUMNS = (370.0, 450.0, 530.0)

STATEMENT = (
    ("Net sales", "$", "32,765", "$", "31,657", "$", "30,109"),
    ("Operating expenses", "", "", "", "", "", ""),
    ("  Cost of sales", "", "16,682", "", "16,055", "", "15,118"),
    ("  Research and development", "", "1,821", "", "1,870", "", "1,764"),
    ("  Gain on sale of businesses", "", "(547)", "", "(586)", "", "(111)"),
    ("  Impairment of goodwill", "", "-", "", "24", "", "-"),
    ("Operating income", "", "14,809", "", "14,294", "", "13,338"),
    ("Interest expense, including the amortization of", "", "", "", "", "", ""),
    ("  debt issuance costs", "", "350", "", "322", "", "199"),
    ("Net income", "$", "14,459", "$", "13,972", "$", "13,139"),
    ("Effective tax rate", "", "23.4%", "", "35.5%", "", "28.3%"),
)
"""Labels, with the sign and the number of each year."""


def place_statement(page: Page, y: float, rows: Sequence[Sequence[str]] = STATEMENT) -> float:
    """Place a statement without drawn cells, with currency signs in columns of their own."""
    page.center((VALUE_COLUMNS[0] + VALUE_COLUMNS[-1]) / 2 - 15, y, "Years ended December 31,")
    y += LEADING
    page.left(72, y, "(In millions)")
    for column, year in zip(VALUE_COLUMNS, ("2018", "2017", "2016"), strict=True):
        page.right(column, y, year)
    for row in rows:
        y += LEADING
        page.left(72 + 10 * row[0].startswith(" "), y, row[0].strip())
        for number, column in enumerate(VALUE_COLUMNS):
            page.left(column - 48, y, row[1 + 2 * number])
            page.right(column, y, row[2 + 2 * number])
    return y + LEADING


def annual_report() -> bytes:
    """An annual report: a title, text, and a statement without drawn cells."""
    page = Page("0001193125-24-012345").type(8).left(72, 40, "Pool Company 2018 Annual Report").right(540, 40, "45")
    page.type(20, "B").left(72, 90, "Annual Report of the Pool Company")
    y = page.type().lines(72, 125, 468, PROSE)
    page.type(10, "B").left(72, y + 14, "Table 3: Consolidated statement of income")
    y = place_statement(page.type(), y + 14 + 2 * LEADING)
    page.lines(
        72, y + 14, 468, "Net income grew by 3 percent because the Company sold more pools than in any year before."
    )
    return page.output()


LEFT_TEXT = (
    "A pool keeps connections open so that later requests need no new handshake. Its size decides how long a "
    "request waits, because a request without a free connection waits until another one returns.1 The best size "
    "depends on the load and on the time that the server needs for a request. Earlier work chose the size by hand and "
    "never changed it, although the load of most services differs by an order of magnitude between night and day. We "
    "measure what that costs, and we compare it with a pool whose size follows the load. Table 1 has the results. Our "
    "second experiment repeats the first one with a server that is far away, so that a new handshake costs much more. "
    "The order of the sizes stays the same, and the differences grow. A pool of eight connections is enough for the "
    "load of the night, while the load of the day needs"
)
RIGHT_TEXT = (
    "about thirty connections. More of them do not help, since the server then becomes the bottleneck. A pool that "
    "follows the load is never more than two connections away from the best size. It grows when requests wait and "
    "shrinks when connections stay unused for a minute. The rule has no parameter that must be set by hand. It also "
    "needs no knowledge of the server."
)
CLOSING_TEXT = (
    "The results hold for both servers. We conclude that a pool should follow the load, and that its size should not "
    "be set by hand. The code of all experiments and the measurements are available from the authors."
)
POOL_SIZES = (("Fixed, 8", "12.4", "310"), ("Fixed, 32", "3.1", "298"), ("Follows load", "2.9", "121"))


def paper() -> bytes:
    """A paper in two columns, with a footnote and a table with a caption and without drawn cells."""
    page = Page().type(18, "B", "Times").center(306, 80, "Connection Pools That Follow the Load")
    page.type(10, "", "Times").center(306, 104, "A. Author and B. Author")
    page.lines(54, 140, 238, LEFT_TEXT)
    page.type(8, "", "Times").left(54, 712, "1 A request that waits for more than a minute is counted as failed.")
    y = page.type(10, "", "Times").lines(320, 140, 238, RIGHT_TEXT) + 14
    page.left(320, y, "Table 1: Waiting time and open connections")
    y += 2 * LEADING
    page.left(320, y, "Pool").right(470, y, "Wait (ms)").right(548, y, "Connections")
    for label, wait, count in POOL_SIZES:
        y += LEADING
        page.left(320, y, label).right(470, y, wait).right(548, y, count)
    page.lines(320, y + 2 * LEADING, 238, CLOSING_TEXT)
    return page.output()


WAREHOUSES = tuple(
    (country, f"{count}", f"{1.5 * count:.1f}", note)
    for country, count, note in (
        ("United States", 564, "Includes Puerto Rico"),
        ("Canada", 105, "Nine provinces"),
        ("Mexico", 39, "-"),
        ("Japan", 30, "Two opened in 2021"),
        ("United Kingdom", 29, "-"),
        ("Korea", 16, "-"),
        ("Taiwan", 14, "-"),
        ("Australia", 13, "One moved in 2021"),
        ("Spain", 3, "-"),
        ("France", 2, "-"),
    )
)
RULED_WIDTHS = (130.0, 90.0, 110.0, 130.0)
RULED_HEADER = ("Country", "Number of\nwarehouses", "Area in millions\nof square feet", "Remarks")


def ruled_table() -> bytes:
    """A table with drawn cells that continues on a second page without its header."""
    page = Page().type(16, "B").left(72, 80, "Warehouses by Country")
    y = page.type().lines(72, 110, 460, PROSE)
    page.left(72, y + 10, "Table 2. Warehouses at the end of the fiscal year")
    y = page.grid(72, y + 20, RULED_WIDTHS, 28, [RULED_HEADER])
    page.grid(72, y, RULED_WIDTHS, 18, WAREHOUSES[:6])
    y = page.next().grid(72, 72, RULED_WIDTHS, 18, WAREHOUSES[6:])
    page.lines(72, y + 30, 460, "The Company owns most of its warehouses and leases the others for up to thirty years.")
    return page.output()


SAMPLES = {"annual-report": annual_report, "paper": paper, "ruled-table": ruled_table}
"""The PDFs of the documentation, by the name of their pictures."""

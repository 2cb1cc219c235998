"""What is extracted from PDFs that imitate real documents. `docs/documents.md` shows pages beside their texts."""

import re
from itertools import pairwise

import pytest

from offing.library.extraction import ExtractedDocument, extract_text
from offing.library.passages import split_passages
from offing.library.pdf.geometry import Line
from offing.library.pdf.title import find_type_title
from tests.bench.pdf_pages import DOCS, render_document
from tests.unit.library.pdf_pages import LEADING, PROSE, SAMPLES, STATEMENT, Page, place_statement, read, table_lines

HEADER = (
    "| (In millions) | Years ended December 31, 2018 | Years ended December 31, 2017 | Years ended December 31, 2016 |"
)


def read_sample(name: str) -> ExtractedDocument:
    return extract_text(SAMPLES[name](), "a.pdf")


def test_a_statement_without_drawn_cells_becomes_a_table_with_the_years_in_its_header() -> None:
    lines = table_lines(read_sample("annual-report").text)
    assert lines[0] == HEADER
    assert "| Net sales | $32,765 | $31,657 | $30,109 |" in lines
    assert "| Effective tax rate | 23.4% | 35.5% | 28.3% |" in lines


def test_negative_numbers_in_parentheses_and_dashes_keep_their_columns() -> None:
    lines = table_lines(read_sample("annual-report").text)
    assert "| Gain on sale of businesses | (547) | (586) | (111) |" in lines
    assert "| Impairment of goodwill | - | 24 | - |" in lines


def test_a_label_over_two_lines_is_one_row() -> None:
    lines = table_lines(read_sample("annual-report").text)
    assert "| Interest expense, including the amortization of debt issuance costs | 350 | 322 | 199 |" in lines


def test_a_caption_stays_above_its_table_and_text_below_it() -> None:
    blocks = read_sample("annual-report").text.split("\n\n")
    caption = blocks.index("Table 3: Consolidated statement of income")
    assert blocks[caption + 1].startswith(HEADER)
    assert blocks[-1].startswith("Net income grew by 3 percent")


def test_every_passage_of_a_long_table_contains_its_header() -> None:
    rows = [(f"Pool number {n}", "", f"{n},100", "", f"{n},200", "", f"{n},300") for n in range(1, 41)]
    page = Page()
    place_statement(page, 60, rows)
    text = read(page).text
    passages = [text[p.start : p.end] for p in split_passages(text)]
    assert len(passages) > 2
    assert all(passage.startswith(HEADER) for passage in passages)
    assert all(text.count(f"| Pool number {n} | {n},100 | {n},200 | {n},300 |") == 1 for n in range(1, 41))


def test_a_drawn_table_joins_the_lines_of_its_cells() -> None:
    lines = table_lines(read_sample("ruled-table").text)
    assert lines[0] == "| Country | Number of warehouses | Area in millions of square feet | Remarks |"
    assert "| Japan | 30 | 45.0 | Two opened in 2021 |" in lines


def test_a_drawn_table_that_continues_on_the_next_page_keeps_its_header() -> None:
    text = read_sample("ruled-table").text
    below = next(block for block in text.split("\n\n") if "Taiwan" in block)
    assert below.startswith("| Country | Number of warehouses |")
    assert "| France | 2 | 3.0 | - |" in below


def test_a_statement_that_continues_on_the_next_page_keeps_its_header() -> None:
    page = Page()
    place_statement(page, 560, STATEMENT[:6])
    page.next()
    for number, row in enumerate(STATEMENT[6:]):
        page.left(72, 60 + LEADING * number, row[0].strip())
        for column, value in zip((370, 450, 530), row[2::2], strict=True):
            page.right(column, 60 + LEADING * number, value)
    below = next(block for block in read(page).text.split("\n\n") if "Operating income" in block)
    assert below.startswith(HEADER)


def test_a_cell_over_several_columns_counts_for_each_of_them_in_the_header() -> None:
    page = Page()
    page.pdf.rect(72, 72, 100, 40)
    page.left(76, 96, "Region")
    page.pdf.rect(172, 72, 160, 20)
    page.left(176, 86, "Sales")
    for x, year in ((172, "2020"), (252, "2021")):
        page.pdf.rect(x, 92, 80, 20)
        page.left(x + 4, 106, year)
    page.grid(72, 112, (100, 80, 80), 20, [("North", "10", "20"), ("South", "30", "40")])
    assert table_lines(read(page).text) == [
        "| Region | Sales 2020 | Sales 2021 |",
        "| North | 10 | 20 |",
        "| South | 30 | 40 |",
    ]


def test_a_drawn_cell_beside_several_rows_is_repeated_in_each_of_them() -> None:
    page = Page()
    page.grid(72, 72, (100, 80, 80), 20, [("Region", "Year", "Sales")])
    page.pdf.rect(72, 92, 100, 40)
    page.left(76, 106, "North")
    for y, year, sales in ((92, "2020", "10"), (112, "2021", "20")):
        page.pdf.rect(172, y, 80, 20)
        page.pdf.rect(252, y, 80, 20)
        page.left(176, y + 14, year).left(256, y + 14, sales)
    assert "| North | 2020 | 10 |\n| North | 2021 | 20 |" in read(page).text


def test_two_columns_are_read_one_after_the_other_even_if_the_file_mixes_their_lines() -> None:
    words = PROSE.split()
    left, right = [f"left{n}" for n in range(80)], [f"right{n}" for n in range(80)]
    page = Page()
    for row in range(16):
        page.left(60, 100 + LEADING * row, " ".join(left[5 * row : 5 * row + 5]) + " " + words[row][:3])
        page.left(330, 100 + LEADING * row, " ".join(right[5 * row : 5 * row + 5]) + " " + words[row][:3])
    numbers = [int(n) for n in re.findall(r"left(\d+)", read(page).text)]
    assert numbers == list(range(80))
    assert read(page).text.index("left79") < read(page).text.index("right0")


def test_a_footnote_between_two_columns_does_not_cut_a_sentence() -> None:
    text = read_sample("paper").text
    assert "while the load of the day needs about thirty connections." in text
    assert "\n\n1 A request that waits for more than a minute is counted as failed.\n\n" in text


def test_a_table_in_a_column_is_a_table_with_its_caption() -> None:
    text = read_sample("paper").text
    assert "Table 1: Waiting time and open connections\n\n| Pool | Wait (ms) | Connections |" in text
    assert "| Follows load | 2.9 | 121 |" in text


def test_a_sentence_over_two_pages_is_not_cut() -> None:
    page = Page()
    page.lines(72, 72, 460, PROSE.removesuffix(" during one hour."))
    page.next().lines(72, 72, 460, f"during one hour. {PROSE}")
    assert f"{PROSE} {PROSE}" in read(page).text


def test_a_caption_within_a_paragraph_does_not_cut_a_sentence() -> None:
    page = Page()
    y = page.lines(72, 72, 460, PROSE.removesuffix(" during one hour."))
    page.left(72, y + 20, "Figure 2: A pool under load.")
    page.lines(72, y + 60, 460, f"during one hour. {PROSE}")
    assert f"{PROSE} {PROSE}\n\nFigure 2: A pool under load." in read(page).text


def test_the_title_is_the_largest_type_and_not_the_running_header() -> None:
    assert read_sample("annual-report").title == "Annual Report of the Pool Company"


@pytest.mark.parametrize("metadata", ["", "Microsoft Word - draft3.docx", "0001193125-24-012345", "report_v2.pdf"])
def test_metadata_without_a_subject_is_no_title(metadata: str) -> None:
    page = Page(metadata)
    page.left(72, 40, "Journal of Pools, volume 3").type(18, "B")
    page.left(72, 80, "Connection Pools That").left(72, 102, "Follow the Load")
    page.type().lines(72, 140, 460, PROSE)
    assert read(page).title == "Connection Pools That Follow the Load"


def test_check_boxes_and_rows_of_tables_are_no_title() -> None:
    boxes = Line("Yes \u2612 No \u2610", 72, 200, 700, 720)
    name = Line("The Pool Company", 72, 300, 660, 680)
    prose = [Line(PROSE, 72, 500, 600 - 14 * n, 610 - 14 * n) for n in range(6)]
    assert find_type_title([boxes, name, *prose]) == "The Pool Company"
    page = Page()
    page.grid(72, 72, (100, 80), 20, [("Country", "Number"), ("Japan", "10"), ("Spain", "30")])
    result = read(page)
    assert result.text.startswith("| Country |")
    assert result.title == ""
    page = Page()
    page.left(72, 72, "UNITED STATES SECURITIES AND EXCHANGE COMMISSION").lines(72, 92, 460, PROSE)
    assert read(page).title == ""


def test_cells_that_stand_in_no_certain_columns_stay_lines() -> None:
    page = Page()
    rows = [("Alpha", 150, "12"), ("Beta of the first kind", 260, "7"), ("Gamma", 190, "9"), ("Delta", 330, "11")]
    for number, (label, x, value) in enumerate(rows):
        page.left(72, 100 + LEADING * number, label).left(x, 100 + LEADING * number, value)
        page.left(x + 60 + 31 * number, 100 + LEADING * number, f"{value}.5")
        page.left(x + 80 + 47 * number, 100 + LEADING * number, "n/a")
    text = read(page).text
    assert "|" not in text
    assert next(line for line in text.split("\n") if line).startswith("Alpha  12")


def test_text_with_a_bullet_list_is_no_table() -> None:
    page = Page()
    y = page.lines(72, 72, 460, PROSE)
    for item in ("Keep connections open.", "Close them after a minute.", "Count those that wait.", "Report the count."):
        page.left(72, y, "-").left(100, y, item)
        y += LEADING
    text = read(page).text
    assert "|" not in text
    assert "- Keep connections open." in text


def test_a_word_that_is_broken_at_the_end_of_a_line_is_joined() -> None:
    page = Page()
    page.left(72, 72, "Pools keep connections open so that later requests need no new hand-")
    page.left(72, 72 + LEADING, "shake, which would cost time.")
    assert "need no new handshake, which" in read(page).text


def test_a_page_that_is_turned_is_read_upright() -> None:
    page = Page()
    with page.pdf.rotation(90, 306, 396):
        place_statement(page, 300)
    assert HEADER in read(page).text


def test_a_bar_in_a_cell_does_not_add_a_column() -> None:
    page = Page()
    page.grid(72, 72, (100, 80), 20, [("Name", "Value"), ("a|b", "10"), *[(f"Row {n}", f"{n}0") for n in range(5)]])
    assert "| a\\|b | 10 |" in read(page).text


@pytest.mark.parametrize("name", SAMPLES)
def test_each_row_of_a_sample_has_as_many_cells_as_its_header(name: str) -> None:
    for above, below in pairwise(read_sample(name).text.split("\n")):
        if above.startswith("|") and below.startswith("|"):
            assert above.count("|") == below.count("|")


def test_the_page_of_the_documentation_shows_what_is_extracted() -> None:
    assert (DOCS / "documents.md").read_text() == render_document()

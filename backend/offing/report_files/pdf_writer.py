"""Write a report document as PDF with fpdf2: embedded fonts, an outline, and links from citations to sources.

Text is shaped by HarfBuzz and is only ever text: nothing in it can begin a link, a command or a script.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fpdf.prefs import ViewerPreferences

from offing.core.report_document import (
    Block,
    CitationPart,
    HeadingBlock,
    ImageBlock,
    ListBlock,
    ParagraphBlock,
    ParagraphRole,
    Part,
    ReportDocument,
    TableBlock,
    TextPart,
    WebLinkPart,
    describe_damaged,
)
from offing.core.report_image import find_png_size
from offing.core.report_labels.labels import ReportLabels
from offing.core.report_labels.languages import find_labels
from offing.core.text_direction import is_right_to_left
from offing.report_files.pdf_fonts import REPLACEMENT, PdfFonts
from offing.report_files.pdf_lines import StyledText, TextStyle
from offing.report_files.pdf_page import MARGIN, TEXT_WIDTH, PageFile, Pages
from offing.report_files.pdf_tables import draw_table

GRAY, BLUE, AMBER = (91, 100, 117), (31, 95, 139), (138, 90, 0)
TITLE = TextStyle(20, is_bold=True)
HEADINGS = {1: TextStyle(14, is_bold=True), 2: TextStyle(11, is_bold=True)}
PARAGRAPHS: dict[ParagraphRole, TextStyle] = {
    "body": TextStyle(10.5),
    "answer": TextStyle(12),
    "note": TextStyle(9, GRAY),
    "citation": TextStyle(9.5),
    "quote": TextStyle(9.5, (60, 66, 80)),
}
SPACES_AFTER: dict[ParagraphRole, float] = {"body": 2.6, "answer": 3.5, "note": 2.0, "citation": 0.6, "quote": 2.4}
"""Empty space after a paragraph in millimeters."""
CELL, SMALL_CELL = TextStyle(9), TextStyle(7.5)
MIN_RAISED_SIZE = 8.0
"""Size in points below which the numbers of citations would be too small if they were raised."""
LIST_INDENT, QUOTE_INDENT = 5.5, 7.0
BULLET = "\u2022"
KEPT_WITH_NEXT, KEPT_WITH_SOURCE = 14.0, 28.0
"""Heights in millimeters that must be free below a heading, and below that of a source, which has a description."""
CAPTION_HEIGHT = 8.0
"""Height in millimeters that must be free below an image for its name."""
MAX_LISTED_CHARACTERS = 40
MILLIMETERS_PER_PIXEL = 25.4 / 110
"""Size of an image that is smaller than the text is wide."""
MAX_IMAGE_HEIGHT = 190.0


def write_pdf(document: ReportDocument) -> bytes:
    """Return the bytes of the file."""
    with TemporaryDirectory() as folder:
        pdf = PageFile(format="A4")
        pdf.set_auto_page_break(False)
        pdf.alias_nb_pages("")
        pdf.c_margin = 0
        _set_properties(pdf, document)
        labels = find_labels(document.language)
        characters = frozenset(document.model_dump_json()) | frozenset(_list_characters(document, labels))
        fonts = PdfFonts(pdf, characters, Path(folder))
        _Writer(Pages(pdf, fonts), fonts.list_missing(), labels).write(document)
        return bytes(pdf.output())


def _set_properties(pdf: PageFile, document: ReportDocument) -> None:
    pdf.set_title(document.title)
    pdf.set_author(document.written_by)
    pdf.set_creator("Offing")
    pdf.set_creation_date(document.created_at)
    if document.language != "und":
        pdf.set_lang(document.language)
    pdf.viewer_preferences = ViewerPreferences(display_doc_title=True)


class _Writer:
    """Writes the blocks of a document to pages."""

    def __init__(self, pages: Pages, missing: Sequence[str], labels: ReportLabels) -> None:
        self._pages, self._missing, self._labels = pages, missing, labels
        self._replacements = str.maketrans(dict.fromkeys(missing, REPLACEMENT))
        self._links: Mapping[int, int] = {}
        """Link of each citation that has an entry, by its number."""

    def write(self, document: ReportDocument) -> None:
        entries = [block.citation for block in document.blocks if isinstance(block, ParagraphBlock)]
        self._links = {number: self._pages.add_link() for number in entries if number is not None}
        self._write_heading(document.title, TITLE, 0, KEPT_WITH_NEXT)
        self._pages.y += 1.5
        for block, following in zip(document.blocks, (*document.blocks[1:], None), strict=True):
            match block:
                case HeadingBlock():
                    self._pages.y += 4.0 if block.level == 1 else 1.5
                    self._write_heading(block.text, HEADINGS[block.level], block.level, _find_height_below(following))
                case ParagraphBlock():
                    self._write_paragraph(block)
                case ListBlock():
                    self._write_list(block)
                case TableBlock():
                    self._write_table(block)
                case ImageBlock():
                    self._write_image(block)
        if self._missing:
            self._write_paragraph(_describe_missing(self._missing, self._labels))

    def _write_heading(self, text: str, style: TextStyle, level: int, height_below: float) -> None:
        """Write a heading. `height_below` are the millimeters that must be free below it."""
        lines = self._pages.lay_out([self._style(text, style)]).break_lines(TEXT_WIDTH)
        self._pages.reserve(sum(line.size for line in lines[:6]) * 0.5 + height_below)
        self._pages.begin_section(text, level)
        self._pages.draw_lines(lines, MARGIN, TEXT_WIDTH)
        self._pages.y += 1.2

    def _write_paragraph(self, block: ParagraphBlock) -> None:
        indent = QUOTE_INDENT if block.role == "quote" else 0.0
        paragraph = self._pages.lay_out(self._style_parts(block.parts, PARAGRAPHS[block.role]))
        if block.citation is not None:
            self._pages.reserve(KEPT_WITH_NEXT)
            self._pages.set_link(self._links[block.citation])
        left = MARGIN if paragraph.is_rtl else MARGIN + indent
        width = TEXT_WIDTH - indent
        self._pages.draw_lines(paragraph.break_lines(width), left, width, bar=block.role == "quote")
        self._pages.y += SPACES_AFTER[block.role]

    def _write_list(self, block: ListBlock) -> None:
        style = PARAGRAPHS["body"]
        bullet = self._pages.lay_out([StyledText(BULLET, style)]).break_lines(LIST_INDENT)[0]
        for item in block.items:
            indent = LIST_INDENT * (item.level + 1)
            paragraph = self._pages.lay_out(self._style_parts(item.parts, style))
            lines, is_rtl = paragraph.break_lines(TEXT_WIDTH - indent), paragraph.is_rtl
            self._pages.reserve(style.size * 0.5)
            edge = MARGIN + TEXT_WIDTH - indent + 2 if is_rtl else MARGIN + indent - 3.5
            self._pages.draw_line(bullet, edge, LIST_INDENT, self._pages.y)
            self._pages.draw_lines(lines, MARGIN if is_rtl else MARGIN + indent, TEXT_WIDTH - indent)
            self._pages.y += 0.8
        self._pages.y += SPACES_AFTER["body"] - 0.8

    def _write_table(self, block: TableBlock) -> None:
        style = SMALL_CELL if block.is_small else CELL
        rows = [
            [
                self._pages.lay_out(self._style_parts(cell, replace(style, is_bold=block.has_header and number == 0)))
                for cell in row
            ]
            for number, row in enumerate(block.rows)
        ]
        text = " ".join(part.text for row in block.rows for cell in row for part in cell if isinstance(part, TextPart))
        draw_table(self._pages, rows, has_header=block.has_header, is_rtl=is_right_to_left(text))
        self._pages.y += SPACES_AFTER["body"]

    def _write_image(self, block: ImageBlock) -> None:
        """Draw an image at most as wide as the text, and small enough for a page with its heading and its name."""
        width, height = _choose_image_size(block)
        self._pages.reserve(height + CAPTION_HEIGHT)
        try:
            self._pages.draw_image(block.data, block.name, width, height)
        except (OSError, ValueError, SyntaxError):  # what Pillow raises for damaged files
            self._write_paragraph(describe_damaged(block, self._labels))
        self._pages.y += 1.2

    def _style_parts(self, parts: Sequence[Part], style: TextStyle) -> list[StyledText]:
        return [self._style_part(part, style) for part in parts]

    def _style_part(self, part: Part, style: TextStyle) -> StyledText:
        match part:
            case CitationPart():
                linked = replace(style, color=BLUE, is_raised=style.size >= MIN_RAISED_SIZE, is_bold=False)
                return StyledText(f"[{part.number}]", linked, self._links.get(part.number))
            case WebLinkPart():
                return self._style(part.text, replace(style, color=BLUE), part.url)
            case TextPart():
                color = AMBER if part.is_mark else style.color
                is_bold = part.is_strong or style.is_bold
                return self._style(part.text, replace(style, color=color, is_bold=is_bold, is_slanted=part.is_mark))

    def _style(self, text: str, style: TextStyle, link: int | str | None = None) -> StyledText:
        return StyledText(text.translate(self._replacements), style, link)


def _find_height_below(following: Block | None) -> float:
    """Return the height in millimeters that must be free below a heading for what follows it."""
    match following:
        case ImageBlock():
            return _choose_image_size(following)[1] + CAPTION_HEIGHT
        case ParagraphBlock() if following.role == "note" or following.citation is not None:
            return KEPT_WITH_SOURCE
        case _:
            return KEPT_WITH_NEXT


def _choose_image_size(block: ImageBlock) -> tuple[float, float]:
    """Return width and height in millimeters."""
    size = find_png_size(block.data)
    assert size is not None
    scale = min(MILLIMETERS_PER_PIXEL, TEXT_WIDTH / size[0], MAX_IMAGE_HEIGHT / size[1])
    return size[0] * scale, size[1] * scale


def _list_characters(document: ReportDocument, labels: ReportLabels) -> str:
    """Return the characters that the writer itself adds."""
    notes = labels.damaged_image + labels.missing_characters + labels.more_characters + labels.comma
    return f"{document.title}{notes}{BULLET}{REPLACEMENT} []0123456789U+ABCDEF"


def _describe_missing(missing: Sequence[str], labels: ReportLabels) -> ParagraphBlock:
    codes = labels.comma.join(f"U+{ord(character):04X}" for character in missing[:MAX_LISTED_CHARACTERS])
    if len(missing) > MAX_LISTED_CHARACTERS:
        codes = labels.more_characters.format(codes=codes, count=len(missing) - MAX_LISTED_CHARACTERS)
    text = labels.missing_characters.format(replacement=REPLACEMENT, codes=codes)
    return ParagraphBlock(role="note", parts=(TextPart(text=text),))

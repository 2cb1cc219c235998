"""Write a report document as DOCX with python-docx.

The file has no macros, and its only links to the outside are web addresses. Its text is text: a word processor
shows it and does not interpret it.
"""

import io
import struct
from datetime import UTC
from typing import Any

import docx
from docx.image.exceptions import InvalidImageStreamError, UnexpectedEndOfFileError
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.shared import Cm, RGBColor

from offing.core.report_document import (
    Block,
    HeadingBlock,
    ImageBlock,
    ListBlock,
    ParagraphBlock,
    ParagraphRole,
    ReportDocument,
    TableBlock,
    TextPart,
    describe_damaged,
)
from offing.core.report_image import find_png_size
from offing.core.report_labels.labels import ReportLabels
from offing.core.report_labels.languages import find_labels
from offing.report_files.docx_parts import add_bookmark, add_page_number, add_parts
from offing.report_files.docx_styles import (
    add_styles,
    copy_to_complex_scripts,
    set_bullets,
    set_fonts,
    set_language,
    set_word_version,
)
from offing.report_files.docx_tables import add_table

AMBER = RGBColor(0x8A, 0x5A, 0x00)
TEXT_WIDTH_CM, MAX_IMAGE_HEIGHT_CM = 16.0, 19.0
LIST_STYLES = ("List Bullet", "List Bullet 2")
PARAGRAPH_STYLES: dict[ParagraphRole, str] = {
    "body": "Normal",
    "answer": "Report Answer",
    "note": "Report Note",
    "citation": "Report Citation",
    "quote": "Report Quote",
}


def write_docx(document: ReportDocument) -> bytes:
    """Return the bytes of the file."""
    file: Any = docx.Document()
    _set_page(file)
    add_styles(file)
    copy_to_complex_scripts(file)
    set_fonts(file, document.language)
    set_language(file, document.language)
    set_bullets(file)
    set_word_version(file)
    _set_properties(file, document)
    _remove_thumbnail(file)
    add_parts(file.add_paragraph(style="Title"), [TextPart(text=document.title)], AMBER)
    labels = find_labels(document.language)
    for block, following in zip(document.blocks, (*document.blocks[1:], None), strict=True):
        _add_block(file, block, labels, is_kept=_describes_source(block, following))
    output = io.BytesIO()
    file.save(output)
    return output.getvalue()


def _set_page(file: Any) -> None:
    section = file.sections[0]
    section.page_width, section.page_height = Cm(21), Cm(29.7)
    section.left_margin = section.right_margin = Cm(2.5)
    section.top_margin = section.bottom_margin = Cm(2.2)
    add_page_number(section.footer.paragraphs[0])


def _set_properties(file: Any, document: ReportDocument) -> None:
    properties = file.core_properties
    created = document.created_at.astimezone(UTC).replace(tzinfo=None)
    properties.title, properties.author = document.title[:255], document.written_by[:255]
    properties.created = properties.modified = created
    properties.language, properties.comments, properties.last_modified_by = document.language, "", ""


def _remove_thumbnail(file: Any) -> None:
    """Remove the picture of the first page, which is that of the template."""
    relations = file.part.package.rels
    for key in [key for key, relation in relations.items() if relation.reltype == RELATIONSHIP_TYPE.THUMBNAIL]:
        del relations[key]


def _add_block(file: Any, block: Block, labels: ReportLabels, *, is_kept: bool = False) -> None:
    """Append a block. If `is_kept` is set, a paragraph stays on the page of what follows."""
    match block:
        case HeadingBlock():
            add_parts(file.add_heading(level=block.level), [TextPart(text=block.text)], AMBER)
        case ParagraphBlock():
            paragraph = file.add_paragraph(style=PARAGRAPH_STYLES[block.role])
            add_parts(paragraph, block.parts, AMBER)
            paragraph.paragraph_format.keep_with_next = is_kept or None
            if block.citation is not None:
                add_bookmark(paragraph, block.citation)
        case ListBlock():
            for item in block.items:
                add_parts(file.add_paragraph(style=LIST_STYLES[item.level]), item.parts, AMBER)
        case TableBlock():
            add_table(file, block, AMBER)
        case ImageBlock():
            _add_image(file, block, labels)


def _describes_source(block: Block, following: Block | None) -> bool:
    """Tell whether a block describes the source that the following citation has."""
    is_note = isinstance(block, ParagraphBlock) and block.role == "note"
    return is_note and isinstance(following, ParagraphBlock) and following.citation is not None


def _add_image(file: Any, block: ImageBlock, labels: ReportLabels) -> None:
    """Add an image at most as wide as the text, with its name as the text for readers who do not see it."""
    size = find_png_size(block.data)
    assert size is not None
    width = min(size[0] * 2.54 / 110, TEXT_WIDTH_CM, MAX_IMAGE_HEIGHT_CM * size[0] / size[1])
    try:
        picture = file.add_picture(io.BytesIO(block.data), width=Cm(width))
    except (ValueError, KeyError, IndexError, struct.error, InvalidImageStreamError, UnexpectedEndOfFileError):
        _add_block(file, describe_damaged(block, labels), labels)
        return
    file.paragraphs[-1].paragraph_format.keep_with_next = True
    picture._inline.docPr.set("descr", block.name)
    for side in ("distT", "distB", "distL", "distR"):
        picture._inline.set(side, "0")  # or a program may take a distance of its own

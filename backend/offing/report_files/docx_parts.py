"""Parts of a paragraph as the XML of WordprocessingML: runs, links, bookmarks and directions."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.shared import RGBColor

from offing.core.report_document import CitationPart, Part, TextPart, WebLinkPart
from offing.core.text_direction import is_right_to_left, is_right_to_left_char
from offing.report_files.docx_xml import make_element

LINK_STYLE = "Hyperlink"
"""Style of links. LibreOffice makes links of a PDF file only from those with a style of characters."""


def add_parts(
    paragraph: Any, parts: Sequence[Part], mark_color: RGBColor, *, is_raised: bool = True, is_rtl: bool = False
) -> None:
    """Append parts to a paragraph, which gets the direction of its first letter.

    If `is_raised` is set, the numbers of citations are raised. `is_rtl` is the direction of a text without letters.
    """
    text = join_texts(parts)
    has_letters = any(map(str.isalpha, text))
    _set_direction(paragraph, is_right_to_left(text) if has_letters else is_rtl)
    for part in parts:
        match part:
            case TextPart():
                for text, is_rtl in split_by_direction(part.text):
                    _format_run(paragraph.add_run(text), part, mark_color, is_rtl=is_rtl)
            case CitationPart():
                _add_link(paragraph, f"[{part.number}]", {"w:anchor": bookmark_name(part.number)}, is_raised=is_raised)
            case WebLinkPart():
                relation = paragraph.part.relate_to(part.url, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
                _add_link(paragraph, part.text, {"r:id": relation}, is_raised=False)


def _format_run(run: Any, part: TextPart, mark_color: RGBColor, *, is_rtl: bool) -> None:
    font = run.font
    font.rtl = is_rtl or None
    font.bold = font.cs_bold = part.is_strong or None
    font.italic = font.cs_italic = part.is_mark or None
    if part.is_mark:
        font.color.rgb = mark_color


def join_texts(parts: Sequence[Part]) -> str:
    """Return the text of parts as a reader sees it."""
    return "".join(f"[{part.number}]" if isinstance(part, CitationPart) else part.text for part in parts)


def bookmark_name(number: int) -> str:
    """Return the name of the place that the citation with this number links to."""
    return f"citation_{number}"


def add_bookmark(paragraph: Any, number: int) -> None:
    """Make the paragraph the target of the citation with this number."""
    start = make_element("w:bookmarkStart", {"w:id": str(number), "w:name": bookmark_name(number)})
    end = make_element("w:bookmarkEnd", {"w:id": str(number)})
    paragraph._p.insert_element_before(start, "w:r")  # after its properties, as a paragraph requires
    paragraph._p.append(end)


def add_page_number(paragraph: Any) -> None:
    """Let a paragraph show the number of its page, in its middle."""
    paragraph.alignment = WD_ALIGN_PARAGRAPH.CENTER
    run = paragraph.add_run()
    begin, end = (make_element("w:fldChar", {"w:fldCharType": kind}) for kind in ("begin", "end"))
    instruction = make_element("w:instrText", {"xml:space": "preserve"})
    instruction.text = "PAGE"
    run._r.extend((begin, instruction, end))


def _set_direction(paragraph: Any, is_rtl: bool) -> None:
    """Let a paragraph be read from right to left, or from left to right."""
    if is_rtl:
        paragraph._p.get_or_add_pPr().insert_element_before(make_element("w:bidi"), *_AFTER_BIDI)


_AFTER_BIDI = (
    *("w:adjustRightInd", "w:snapToGrid", "w:spacing", "w:ind", "w:contextualSpacing", "w:mirrorIndents"),
    *("w:suppressOverlap", "w:jc", "w:textDirection", "w:textAlignment", "w:textboxTightWrap", "w:outlineLvl"),
    *("w:divId", "w:cnfStyle", "w:rPr", "w:sectPr", "w:pPrChange"),
)
"""Elements that may only follow `w:bidi` in the properties of a paragraph."""


def split_by_direction(text: str) -> Iterator[tuple[str, bool]]:
    """Yield pieces of a text that are read in one direction, and whether that is from right to left.

    Words between two words of a right-to-left script belong to it only if no other letter is between them.
    """
    directions: list[bool] = []
    pending, current = 0, False
    for character in text:
        if character.isalpha():
            is_rtl = is_right_to_left_char(character)
            directions += [current and is_rtl] * pending + [is_rtl]
            pending, current = 0, is_rtl
        else:
            pending += 1
    directions += [current] * pending
    at = 0
    for is_rtl, group in groupby(directions):
        length = len(list(group))
        yield text[at : at + length], is_rtl
        at += length


def _add_link(paragraph: Any, text: str, target: dict[str, str], *, is_raised: bool) -> None:
    link = make_element("w:hyperlink", {**target, "w:history": "1"})
    run, properties = make_element("w:r"), make_element("w:rPr")
    properties.append(make_element("w:rStyle", {"w:val": LINK_STYLE}))
    if is_raised:
        properties.append(make_element("w:vertAlign", {"w:val": "superscript"}))
    words = make_element("w:t", {"xml:space": "preserve"})
    words.text = text
    run.extend((properties, words))
    link.append(run)
    paragraph._p.append(link)

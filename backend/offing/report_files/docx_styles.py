"""Styles, fonts and languages of a DOCX file."""

from collections.abc import Mapping
from typing import Any

from docx.enum.style import WD_STYLE_TYPE
from docx.oxml.ns import qn
from docx.shared import Cm, Pt, RGBColor

from offing.report_files.docx_parts import LINK_STYLE
from offing.report_files.docx_xml import make_element

LATIN_FONT, COMPLEX_FONT = "Calibri", "Arial"
EAST_ASIAN_FONTS = {"zh": "Microsoft YaHei", "ja": "Yu Gothic", "ko": "Malgun Gothic"}
"""Fonts by language. A word processor that lacks one takes its own for that script."""
EAST_ASIAN_LANGUAGES = {"zh": "zh-CN", "ja": "ja-JP", "ko": "ko-KR"}
RIGHT_TO_LEFT_LANGUAGES = {"ar": "ar-SA", "he": "he-IL"}
FONT_THEMES = ("w:asciiTheme", "w:hAnsiTheme", "w:eastAsiaTheme", "w:cstheme")


INK, GRAY, BLUE = RGBColor(0x1D, 0x24, 0x33), RGBColor(0x5B, 0x64, 0x75), RGBColor(0x1F, 0x5F, 0x8B)


def add_styles(file: Any) -> None:
    """Add the styles of the kinds of paragraphs, and give the others the look of the PDF file."""
    styles = file.styles
    styles["Normal"].font.size, styles["Normal"].font.color.rgb = Pt(11), INK
    for name, size, before, after in (("Title", 22, 0, 8), ("Heading 1", 15, 20, 4), ("Heading 2", 12, 12, 2)):
        _set_heading(styles[name], size, before, after)
    for name, size, color in (("Report Answer", 12.5, INK), ("Report Note", 9.5, GRAY), ("Report Citation", 10, INK)):
        _add_style(styles, name, size).font.color.rgb = color
    styles["Report Citation"].paragraph_format.keep_with_next = True
    styles["Report Citation"].paragraph_format.space_after = Pt(2)
    quote = _add_style(styles, "Report Quote", 10).paragraph_format
    quote.left_indent, quote.keep_together = Cm(0.8), True
    for name, size in (("Report Small Cell", 8), ("Report Cell", 10)):
        cell = _add_style(styles, name, size).paragraph_format
        cell.space_after, cell.line_spacing = Pt(0), 1.1
    styles.add_style(LINK_STYLE, WD_STYLE_TYPE.CHARACTER).font.color.rgb = BLUE
    styles["Footer"].font.size, styles["Footer"].font.color.rgb = Pt(8.5), GRAY


def _set_heading(style: Any, size: float, before: float, after: float) -> None:
    """Make a heading dark and bold, without the template's line, colors and spaces, which separate Arabic letters."""
    style.font.size, style.font.bold, style.font.color.rgb = Pt(size), True, INK
    style.paragraph_format.space_before, style.paragraph_format.space_after = Pt(before), Pt(after)
    look = [*style.element.pPr.findall(qn("w:pBdr")), *style.element.rPr.findall(qn("w:spacing"))]
    for element in look:
        element.getparent().remove(element)


def _add_style(styles: Any, name: str, size: float) -> Any:
    style = styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH)
    style.base_style = styles["Normal"]
    style.font.size = Pt(size)
    return style


def set_fonts(file: Any, language: str) -> None:
    """Name a font for each kind of script in every style, instead of those of the theme, which have none for some."""
    fonts = {
        "w:ascii": LATIN_FONT,
        "w:hAnsi": LATIN_FONT,
        "w:eastAsia": EAST_ASIAN_FONTS.get(_primary(language), EAST_ASIAN_FONTS["zh"]),
        "w:cs": COMPLEX_FONT,
    }
    for element in file.styles.element.iter(qn("w:rFonts")):  # the defaults of the template have one too
        for theme in FONT_THEMES:
            element.attrib.pop(qn(theme), None)
        _set_values(element, fonts)


def copy_to_complex_scripts(file: Any) -> None:
    """Let Arabic and Hebrew have the size and weight of other text, which a style states separately."""
    for tag in ("w:sz", "w:b", "w:i"):
        for element in list(file.styles.element.iter(qn(tag))):
            properties = element.getparent()
            for old in properties.findall(qn(f"{tag}Cs")):
                properties.remove(old)
            element.addnext(make_element(f"{tag}Cs", {"w:val": element.get(qn("w:val"), "1")}))


def set_bullets(file: Any) -> None:
    """Use the bullet of Unicode. The template's is a character of the font Symbol, which only few programs have."""
    for level in file.part.numbering_part.element.iter(qn("w:lvl")):
        if level.find(f".//{qn('w:rFonts')}[@{qn('w:ascii')}='Symbol']") is None:
            continue
        level.find(qn("w:lvlText")).set(qn("w:val"), "\u2022")
        level.remove(level.find(qn("w:rPr")))


def set_word_version(file: Any) -> None:
    """Name Word 2013, whose tables begin at the margin. For the template's version, Word limits what can be edited."""
    for setting in file.settings.element.iter(qn("w:compatSetting")):
        if setting.get(qn("w:name")) == "compatibilityMode":
            setting.set(qn("w:val"), "15")


def set_language(file: Any, language: str) -> None:
    """Say in which languages the text is, for hyphenation, spelling and screen readers."""
    primary = _primary(language)
    is_other = primary in EAST_ASIAN_LANGUAGES or primary in RIGHT_TO_LEFT_LANGUAGES or primary == "und"
    values = {
        "w:val": "en-US" if is_other else language,
        "w:eastAsia": EAST_ASIAN_LANGUAGES.get(primary, "zh-CN"),
        "w:bidi": RIGHT_TO_LEFT_LANGUAGES.get(primary, "ar-SA"),
    }
    for element in file.styles.element.iter(qn("w:lang")):
        _set_values(element, values)


def _set_values(element: Any, values: Mapping[str, str]) -> None:
    for attribute, value in values.items():
        element.set(qn(attribute), value)


def _primary(language: str) -> str:
    """Return the language of a tag without script and region."""
    return language.partition("-")[0].lower()

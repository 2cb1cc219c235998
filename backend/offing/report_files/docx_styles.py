"""Fonts and languages of a DOCX file."""

from collections.abc import Mapping
from typing import Any

from docx.oxml.ns import qn

from offing.report_files.docx_xml import make_element

LATIN_FONT, COMPLEX_FONT = "Calibri", "Arial"
EAST_ASIAN_FONTS = {"zh": "Microsoft YaHei", "ja": "Yu Gothic", "ko": "Malgun Gothic"}
"""Fonts by language. A word processor that lacks one takes its own for that script."""
EAST_ASIAN_LANGUAGES = {"zh": "zh-CN", "ja": "ja-JP", "ko": "ko-KR"}
RIGHT_TO_LEFT_LANGUAGES = {"ar": "ar-SA", "he": "he-IL"}
FONT_THEMES = ("w:asciiTheme", "w:hAnsiTheme", "w:eastAsiaTheme", "w:cstheme")


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

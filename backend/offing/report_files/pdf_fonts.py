"""Fonts of PDF files: which font shows a character, and their bold and slanted forms.

The fonts are those of installed packages, which are part of the extra `pdf`. Each is read only when a character needs
it. Only the glyphs that a report uses are embedded in its file.
"""

import importlib.util
import unicodedata
from pathlib import Path
from typing import Any

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer
from fpdf import FPDF

FontFile = tuple[str, str]
"""A package and a file of it."""

BASE_FONT = ("manimgx_fonts", "NotoSans[wght].ttf")
SLANTED_FONT = ("manimgx_fonts", "NotoSans-Italic[wght].ttf")
CHINESE_FONT = ("pylopdf_fonts_zh_cn", "NotoSansSC-Regular.otf")
KOREAN_FONT = ("pylopdf_fonts_ko", "NotoSansKR-Regular.otf")
ARABIC_FONT = ("fontpkg_amiri", "files/Amiri-Regular.ttf")
"""Has exactly one glyph per letter. Others have separate dots or ligatures, from which readers get no correct text."""
BOLD_FONTS: dict[FontFile, FontFile] = {ARABIC_FONT: ("fontpkg_amiri", "files/Amiri-Bold.ttf")}
"""Bold forms of fonts that have no weights of their own."""
FALLBACK_FONTS = tuple(
    ("manimgx_fonts", name) for name in ("NotoSansArabic[wght].ttf", "NotoSansSymbols[wght].ttf", "NotoEmoji[wght].ttf")
)
SCRIPT_FONTS = {
    **{
        script.upper(): ("manimgx_fonts", f"NotoSans{script}[wght].ttf")
        for script in (
            *("Armenian", "Bengali", "Devanagari", "Ethiopic", "Georgian", "Gujarati", "Gurmukhi", "Hebrew"),
            *("Kannada", "Khmer", "Lao", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu", "Thai"),
        )
    },
    "ARABIC": ARABIC_FONT,
    "CJK": CHINESE_FONT,
    "HANGUL": KOREAN_FONT,
}
"""Fonts by the first word of a character's Unicode name. The Korean font is not part of the extra."""
BOLD_WEIGHT = 700
REPLACEMENT = "\u25a1"
"""Is shown instead of a character that no font has."""

OPENING_QUOTES, QUOTES = "\u2018\u201c", "\u2018\u201c\u2019\u201d"


class PdfFonts:
    """The fonts of one file."""

    def __init__(self, pdf: FPDF, characters: frozenset[str], folder: Path) -> None:
        """`characters` are all that the file may contain. Fonts made for it are written to `folder`."""
        self._pdf, self._characters, self._folder = pdf, characters, folder
        self._families: dict[FontFile, str | None] = {}
        self._families_by_character: dict[str, str | None] = {}
        self._bold: dict[str, bool] = {}

    def list_missing(self) -> list[str]:
        """Return the characters that no installed font shows, in the order of their codes."""
        return sorted(c for c in self._characters if not _is_invisible(c) and self._find(c) is None)

    def choose_families(self, text: str) -> list[str]:
        """Return a font family for each character.

        Marks and signs stay in the font of the text before them if it has them, so that a word is shaped as one.
        Quotation marks around Chinese are Chinese ones, which are wider.
        """
        families: list[str] = []
        for at, character in enumerate(text):
            before = families[-1] if families else ""
            inner = text[at + 1 : at + 2] if character in OPENING_QUOTES else text[at - 1 : at] if at else ""
            families.append(self._choose_family(character, before, inner))
        return families

    def _choose_family(self, character: str, before: str, inner: str) -> str:
        """`inner` is the character beside this one that a quotation mark encloses."""
        base = self._load(BASE_FONT) or ""
        if before and _is_invisible(character):
            return before
        if character.isascii():
            return base
        if character in QUOTES:
            is_chinese = bool(inner) and unicodedata.east_asian_width(inner) in ("W", "F")
            return (self._load(CHINESE_FONT) if is_chinese else base) or base
        if not character.isalnum() and self._has(before, character):
            return before
        return self._find(character) or base

    def find_style(self, family: str, text: str, *, is_bold: bool, is_slanted: bool) -> tuple[str, str]:
        """Return the family and the style in which a text of `family` can be shown: `B`, `I` or nothing."""
        if is_slanted and family == self._load(BASE_FONT):
            slanted = self._load(SLANTED_FONT)
            if slanted and all(self._has(slanted, character) or _is_invisible(character) for character in text):
                return slanted, ""
        return family, "B" if is_bold and self._add_bold(family) else ""

    def _find(self, character: str) -> str | None:
        if character not in self._families_by_character:
            script = unicodedata.name(character, "").split(" ")[0]
            files = [BASE_FONT, *filter(None, [SCRIPT_FONTS.get(script)]), CHINESE_FONT, *FALLBACK_FONTS]
            loaded = (self._load(file) for file in files)
            self._families_by_character[character] = next(
                (one for one in loaded if one and self._has(one, character)), None
            )
        return self._families_by_character[character]

    def _load(self, file: FontFile) -> str | None:
        """Return the family of a font. `None` means that its package is not installed."""
        if file not in self._families:
            path = find_font(file)
            family = None if path is None else f"font{len(self._families)}"
            if path and family:
                self._pdf.add_font(family, "", path)
            self._families[file] = family
        return self._families[file]

    def _has(self, family: str, character: str) -> bool:
        return bool(family) and ord(character) in self._font(family).cmap

    def _font(self, family: str) -> Any:
        return self._pdf.fonts[family]

    def _add_bold(self, family: str) -> bool:
        """Add the bold form of a font. Return whether there is one."""
        if family not in self._bold:
            path = self._find_bold(family)
            if path:
                self._pdf.add_font(family, "B", path)
            self._bold[family] = path is not None
        return self._bold[family]

    def _find_bold(self, family: str) -> Path | None:
        """Return the path of the bold form of a font, which is made of one with weights. `None` means none."""
        file = next(file for file, loaded in self._families.items() if loaded == family)
        if file in BOLD_FONTS:
            return find_font(BOLD_FONTS[file])
        font = self._font(family)
        if "fvar" not in font.ttfont:
            return None
        path = self._folder / f"{family}-bold.ttf"
        _write_bold(Path(font.ttffile), path, self._characters)
        return path


def find_font(file: FontFile) -> Path | None:
    """Return the path of a font. `None` means that its package is not installed, or lacks it."""
    package, name = file
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations or []) if spec else []
    return next((path for folder in folders if (path := Path(folder) / name).is_file()), None)


def _is_invisible(character: str) -> bool:
    """Return whether a character only changes others: joiners, direction marks and variation selectors."""
    return unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"


def _write_bold(source: Path, target: Path, characters: frozenset[str]) -> None:
    """Write a font with the glyphs for some characters in bold. All glyphs would take seconds."""
    font: Any = TTFont(source)
    options = Options()
    options.layout_features, options.notdef_outline = ["*"], True
    subsetter: Any = Subsetter(options)
    subsetter.populate(unicodes=[*map(ord, characters), ord(" ")])
    subsetter.subset(font)
    instancing: Any = instancer
    instancing.instantiateVariableFont(
        font,
        {axis.axisTag: BOLD_WEIGHT if axis.axisTag == "wght" else axis.defaultValue for axis in font["fvar"].axes},
        inplace=True,
        static=True,
    )
    font.save(target)

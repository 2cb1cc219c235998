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

BASE_FONT = ("manimgx_fonts", "NotoSans[wght].ttf")
SLANTED_FONT = ("manimgx_fonts", "NotoSans-Italic[wght].ttf")
CHINESE_FONT = ("pylopdf_fonts_zh_cn", "NotoSansSC-Regular.otf")
KOREAN_FONT = ("pylopdf_fonts_ko", "NotoSansKR-Regular.otf")
SYMBOL_FONTS = (("manimgx_fonts", "NotoSansSymbols[wght].ttf"), ("manimgx_fonts", "NotoEmoji[wght].ttf"))
SCRIPT_FONTS = {
    **{
        script.upper(): ("manimgx_fonts", f"NotoSans{script}[wght].ttf")
        for script in (
            *("Arabic", "Armenian", "Bengali", "Devanagari", "Ethiopic", "Georgian", "Gujarati", "Gurmukhi", "Hebrew"),
            *("Kannada", "Khmer", "Lao", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu", "Thai"),
        )
    },
    "CJK": CHINESE_FONT,
    "HANGUL": KOREAN_FONT,
}
"""Fonts by the first word of a character's Unicode name. The Korean font is not part of the extra."""
BOLD_WEIGHT = 700
REPLACEMENT = "\u25a1"
"""Is shown instead of a character that no font has."""

FontFile = tuple[str, str]
"""A package and a file of it."""


class PdfFonts:
    """The fonts of one file."""

    def __init__(self, pdf: FPDF, characters: frozenset[str], folder: Path) -> None:
        """`characters` are all that the file may contain. Fonts made for it are written to `folder`."""
        self._pdf, self._characters, self._folder = pdf, characters, folder
        self._families: dict[FontFile, str | None] = {}
        self._found: dict[str, str | None] = {}

    def list_missing(self) -> list[str]:
        """Return the characters that no installed font shows, in the order of their codes."""
        return sorted(c for c in self._characters if not _is_invisible(c) and self._find(c) is None)

    def choose_families(self, text: str) -> list[str]:
        """Return a font family for each character.

        Marks and signs stay in the font of the text before them if it has them, so that a word is shaped as one.
        """
        families: list[str] = []
        base = self._load(BASE_FONT) or ""
        for character in text:
            before = families[-1] if families else ""
            is_shared = not character.isalnum() and (self._has(before, character) or _is_invisible(character))
            families.append(before if before and is_shared else self._find(character) or base)
        return families

    def find_style(self, family: str, text: str, *, is_bold: bool, is_slanted: bool) -> tuple[str, str]:
        """Return the family and the style in which a text of `family` can be shown: `B`, `I` or nothing."""
        if is_slanted and family == self._load(BASE_FONT):
            slanted = self._load(SLANTED_FONT)
            if slanted and all(self._has(slanted, character) or _is_invisible(character) for character in text):
                return slanted, ""
        return family, "B" if is_bold and self._add_bold(family) else ""

    def _find(self, character: str) -> str | None:
        if character not in self._found:
            script = unicodedata.name(character, "").split(" ")[0]
            files = [BASE_FONT, *filter(None, [SCRIPT_FONTS.get(script)]), CHINESE_FONT, *SYMBOL_FONTS]
            loaded = (self._load(file) for file in files)
            self._found[character] = next((one for one in loaded if one and self._has(one, character)), None)
        return self._found[character]

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
        """Make the bold form of a font if it has weights. Return whether there is one."""
        font = self._font(family)
        if f"{family}B" not in self._pdf.fonts and "fvar" in font.ttfont:
            path = self._folder / f"{family}-bold.ttf"
            _write_bold(Path(font.ttffile), path, self._characters)
            self._pdf.add_font(family, "B", path)
        return f"{family}B" in self._pdf.fonts


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
    instantiate: Any = instancer.instantiateVariableFont  # pyright: ignore[reportUnknownMemberType]
    instantiate(font, {"wght": BOLD_WEIGHT}, inplace=True, static=True)
    font.save(target)

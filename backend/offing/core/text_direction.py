"""The direction and the language of a text, judged by its characters."""

import unicodedata
from collections import Counter
from itertools import groupby

_RIGHT_TO_LEFT = frozenset({"R", "AL"})
_STRONG = _RIGHT_TO_LEFT | {"L"}
_SCRIPTS = (
    ("ja", ((0x3041, 0x30FF),)),
    ("ko", ((0xAC00, 0xD7A3), (0x1100, 0x11FF))),
    ("zh", ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x323AF))),
    ("ar", ((0x0600, 0x06FF), (0x0750, 0x077F))),
    ("he", ((0x0590, 0x05FF),)),
    ("el", ((0x0370, 0x03FF), (0x1F00, 0x1FFF))),
    ("th", ((0x0E00, 0x0E7F),)),
    ("und", ((0x0400, 0x052F),)),
    ("en", ((0x0041, 0x005A), (0x0061, 0x007A), (0x00C0, 0x024F))),
)
"""The language that is assumed for letters in these ranges. Cyrillic is used by too many languages to assume one."""
_WORDLESS = frozenset({"ja", "ko", "zh", "th"})
"""Languages of scripts in which a text has few spaces or short words, so that characters are counted."""
MIN_KANA_SHARE = 0.1
"""From this share of kana on, a text with Chinese characters is Japanese."""


def is_right_to_left(text: str) -> bool:
    """Return whether the first letter of a text belongs to a script that is written from right to left."""
    classes = (unicodedata.bidirectional(character) for character in text)
    return next((one for one in classes if one in _STRONG), "L") in _RIGHT_TO_LEFT


def is_right_to_left_char(character: str) -> bool:
    return unicodedata.bidirectional(character) in _RIGHT_TO_LEFT


def guess_language(text: str) -> str:
    """Return a language tag for the script that most words of a text belong to. `und` means undetermined.

    Latin letters give `en`. A Chinese, Japanese or Korean character counts as a word, so that a Chinese text with many
    English names stays Chinese.
    """
    tags = (tag for tag, _ in groupby(map(_find_language, text)))
    counts = Counter(tag for tag in tags if tag and tag not in _WORDLESS)
    counts.update(tag for tag in map(_find_language, text) if tag in _WORDLESS)
    if counts["ja"] >= MIN_KANA_SHARE * (counts["ja"] + counts["zh"]) > 0:
        counts["ja"] += counts.pop("zh", 0)
    return max(counts, key=lambda tag: counts[tag]) if counts.total() else "en"


def _find_language(character: str) -> str:
    code = ord(character)
    for tag, ranges in _SCRIPTS:
        if any(first <= code <= last for first, last in ranges):
            return tag
    return ""

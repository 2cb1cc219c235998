"""Locating quotes in a text.

A quote is found exactly, or if it differs only in how its words were typeset: whitespace, quotation marks, hyphens,
ligatures, invisible characters, Unicode composition, separators of thousands, the marks of Markdown blockquotes, and
LaTeX (`core.latex`). The functions are pure.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from offing.core.latex import read_latex
from offing.core.untrusted_block import remove_invisible_chars

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f]")
_WORD_CHAR = re.compile(r"\w")
_SOFT_HYPHEN = "\u00ad"
_BLOCKQUOTE_MARKS = re.compile(r"^[ \t]*>[ \t>]*", re.MULTILINE)
_LINE_BREAK = re.compile(r"\s*(?:(?<=\n)[ \t]*>[ \t>]*)?")
"""Whitespace, and the marks of a blockquote if its next line begins with them."""
_OPTIONAL_CHARS = re.compile(r"(?<=\d) (?=%)|(?<=[^\W\d_])-(?=[^\W\d_])")
"""The space before a percent sign, and hyphens within words."""
_GROUPED_DIGITS = re.compile(r"(?<![\d.,])\d{1,3}(?:[ ,]\d{3})+(?!\d)")
"""A number with separators of thousands."""

_EQUIVALENT_CHARS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
    **{c: unicodedata.normalize("NFKC", c) for c in map(chr, range(0xFB00, 0xFB07))},
}
"""Characters that count as equal: quotation marks, hyphens, dashes, ellipses and Latin ligatures."""


def locate_quote(quote: str, text: str, folded: "FoldedText | None" = None) -> tuple[int, int] | None:
    """Return the position of a quote in a text as a range of code points.

    `folded` is the folded text, for callers that look for several quotes. `None` means that the text does not contain
    the quote, or only inside a word or a character.
    """
    stripped_quote = quote.strip()
    if not _WORD_CHAR.search(stripped_quote):
        return None
    return _locate_exactly(stripped_quote, text) or _locate_folded(
        fold_text(stripped_quote), folded or fold_text(text), text
    )


def _locate_exactly(quote: str, text: str) -> tuple[int, int] | None:
    at = text.find(quote)
    while at >= 0:
        if _is_whole_word(text, at, at + len(quote)):
            return at, at + len(quote)
        at = text.find(quote, at + 1)
    return None


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Return whether both ends lie outside words, numbers and characters with combining marks."""
    return _is_border(text, start) and _is_border(text, end)


def _is_border(text: str, index: int) -> bool:
    if not 0 < index < len(text):
        return True
    before, after = text[index - 1], text[index]
    if unicodedata.category(after)[0] == "M" or before == "\u200d" or after == "\u200d":
        return False
    if _is_within_number(text, index):
        return False
    if not (before.isalnum() and after.isalnum()):
        return True
    return bool(_UNSPACED.match(before) or _UNSPACED.match(after))


def _is_within_number(text: str, index: int) -> bool:
    """Return whether the index is beside a separator between two digits."""
    separator = index if text[index] in ".," else index - 1
    around = text[max(0, separator - 1) : separator], text[separator + 1 : separator + 2]
    return text[separator] in ".," and all(one.isdecimal() for one in around)


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A normalized text, with the position in the original text of each of its characters."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    starts_cluster: tuple[bool, ...]
    """Whether the character is the first of those that its original character was folded to."""


def fold_text(text: str) -> FoldedText:
    """Return a text in the form in which texts that differ only in how they are typeset are equal."""
    chars: list[tuple[str, int, int, bool]] = []
    for start, end, folded in _iter_clusters(text):
        if folded == " " and (not chars or chars[-1][0] == " "):
            continue
        chars += [(c, start, end, n == 0) for n, c in enumerate(folded)]
    optional = _find_optional_chars("".join(c for c, _, _, _ in chars))
    remaining = [one for n, one in enumerate(chars) if n not in optional]
    return FoldedText(
        "".join(c for c, _, _, _ in remaining),
        tuple(s for _, s, _, _ in remaining),
        tuple(e for _, _, e, _ in remaining),
        tuple(f for _, _, _, f in remaining),
    )


def _find_optional_chars(folded: str) -> set[int]:
    separators = {
        match.start() + n
        for match in _GROUPED_DIGITS.finditer(folded)
        for n, char in enumerate(match.group())
        if not char.isdigit()
    }
    return separators | {match.start() for match in _OPTIONAL_CHARS.finditer(folded)}


def _iter_clusters(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the range of each character together with its combining marks, and what it is folded to.

    A LaTeX command is one range, and so is a hyphen with the line break at which it divides a word. The marks of a
    blockquote at the beginning of a line are whitespace.
    """
    mark_ends = {match.start(): match.end() for match in _BLOCKQUOTE_MARKS.finditer(text)}
    at = 0
    while at < len(text):
        if (mark_end := mark_ends.get(at)) is not None:
            end, folded = mark_end, " "
        elif (latex := read_latex(text, at)) is not None:
            end, folded = latex
        else:
            end = _find_cluster_end(text, at)
            folded = _fold_cluster(text, at, end)
        yield at, end, folded
        at = end


def _find_cluster_end(text: str, start: int) -> int:
    end = start + 1
    while end < len(text) and (unicodedata.category(text[end])[0] == "M" or "\u1160" <= text[end] <= "\u11ff"):
        end += 1
    if not _is_hyphen(text[start]):
        return end
    while text[start] == "-" and text[end : end + 1] == "-":
        end += 1
    after = break_.end() if (break_ := _LINE_BREAK.match(text, end)) else end
    is_break = text[end : end + 1] in {"\n", "\r"} or (
        text[start] in "-\u2010\u00ad" and text[start - 1 : start].islower() and text[after : after + 1].islower()
    )
    return after if is_break else end


def _is_hyphen(char: str) -> bool:
    return char == _SOFT_HYPHEN or _EQUIVALENT_CHARS.get(char, char) == "-"


def _fold_cluster(text: str, start: int, end: int) -> str:
    if text[start] == _SOFT_HYPHEN and end > start + 1:
        return ""
    cluster = remove_invisible_chars(text[start:end])
    if not cluster:
        return ""
    if cluster.isspace():
        return " "
    same = _EQUIVALENT_CHARS.get(cluster[0], cluster[0])
    if same != "-":
        return unicodedata.normalize("NFC", same + cluster[1:])
    if end > start + 1 and _is_within_word(text, start, end):
        return ""
    has_break = cluster[-1].isspace() or cluster[-1] == ">"
    return "- " if has_break else unicodedata.normalize("NFC", same + cluster.lstrip(cluster[0]))


def _is_within_word(text: str, start: int, end: int) -> bool:
    return text[max(0, start - 1) : start].isalpha() and text[end : end + 1].isalpha()


def _locate_folded(folded_quote: FoldedText, folded_text: FoldedText, text: str) -> tuple[int, int] | None:
    """Return the first match of the folded texts whose ends are word boundaries in the stored text.

    The quote may have the marks of a blockquote within its line.
    """
    needle = folded_quote.text.strip()
    if (position := _locate_needle(needle, folded_text, text)) or " > " not in needle:
        return position
    position = _locate_needle(needle.replace(" > ", " "), folded_text, text)
    return position if position and ">" in text[slice(*position)] else None


def _locate_needle(needle: str, folded_text: FoldedText, text: str) -> tuple[int, int] | None:
    at = folded_text.text.find(needle) if needle else -1
    while at >= 0:
        last = at + len(needle)
        whole = folded_text.starts_cluster[at] and (last == len(folded_text.text) or folded_text.starts_cluster[last])
        start, end = folded_text.starts[at], folded_text.ends[last - 1]
        if whole and _is_whole_word(text, start, end):
            return start, end
        at = folded_text.text.find(needle, at + 1)
    return None

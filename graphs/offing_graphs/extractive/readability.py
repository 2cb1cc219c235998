"""Readability of a line that is quoted alone: whether it is a complete and independent statement."""

import re

from offing_graphs.extractive.lines import PassageLine
from offing_graphs.extractive.text_units import UnitKind, count_words, link_fraction, measure_width

MAX_QUOTE_CHARS = 420
"""Maximum number of characters of a quote. Longer sentences are cut at a clause."""

_DANGLING = re.compile(
    r"(?:this|that|these|those|it|they|he|she|such|its|their|here|however|also|otherwise|therefore|then|both)\b", re.I
)
_ENDINGS = frozenset(".!?:;)\u3002\uff01\uff1f")
_REFERRING = re.compile(
    r"(?:see|refer to|for (?:more|further|full|additional)|read|check out|learn more|documentation (?:and|can))\b", re.I
)
_CLAUSE = re.compile(r"[;:,.)\u2014](?=\s)")
_FUNCTION_WORD = re.compile(
    r"\b(?:the|an?|is|are|was|were|be|been|has|have|had|does|do|did|can|could|will|would|must|should|may|might|to|of|in|"
    r"on|for|with|by|from|as|at|that|which|when|if|it|this|not|no|or|and|than|but|default)\b",
    re.IGNORECASE,
)
"""Function words of a sentence. A row of names has none."""
_LATIN = re.compile(r"[a-z]", re.IGNORECASE)
_VALUE = re.compile(r"\d|\bdefault\b|\b(?:true|false|null|none)\b", re.IGNORECASE)
_LINK_FIRST = re.compile(r"\s*(?:\*\*|`)?\[[^\]]+\]\(")


def rate_readability(line: PassageLine) -> float:
    """Return a factor for how well a line reads alone, about 1 for a full sentence."""
    text, kind = line.text, line.unit.kind
    return _rate_length(text, kind) * _rate_ending(line) * _rate_beginning(line) * _rate_statement(line)


def _rate_length(text: str, kind: UnitKind) -> float:
    words = count_words(text)
    if words < 5:
        return 0.85 if kind is not UnitKind.PROSE and _VALUE.search(text) else 0.55
    if measure_width(text) > MAX_QUOTE_CHARS:
        return 0.85
    return 0.75 if words < 9 and kind is UnitKind.PROSE and text[-1:] not in _ENDINGS else 1.0


def _rate_ending(line: PassageLine) -> float:
    text = line.text
    factor = 0.6 if text.endswith("?") else 0.88 if text.endswith(":") else 1.0
    torn = text[-1:] not in _ENDINGS and line.unit.end >= len(line.passage.text.rstrip())
    return factor * (0.75 if torn and count_words(text) >= 9 else 1.0)


def _rate_beginning(line: PassageLine) -> float:
    text = line.text
    factor = 0.85 if text[:1].islower() and line.unit.kind is UnitKind.PROSE else 1.0
    if _REFERRING.match(text):
        factor *= 0.6
    if is_dangling(text):
        factor *= 0.9 if line.continues_paragraph else 0.75
    return factor


def _rate_statement(line: PassageLine) -> float:
    """Return a factor below 1 for lines that only list names, such as catalog entries."""
    source = line.passage.text[line.unit.start : line.unit.end]
    if link_fraction(source) > 0.6:
        return 0.35
    factor = 0.8 if line.unit.kind is UnitKind.ITEM and _LINK_FIRST.match(source) else 1.0
    if _LATIN.search(line.text) and not has_statement(line.text):
        factor *= 0.8 if line.unit.kind is UnitKind.ROW and _VALUE.search(line.text) else 0.6
    return factor


def has_statement(text: str) -> bool:
    """Return whether the text contains a function word, as a statement does."""
    return bool(_FUNCTION_WORD.search(text))


def is_dangling(text: str) -> bool:
    """Return whether the text begins with a word that refers to the previous sentence."""
    return bool(_DANGLING.match(text))


def find_quote_end(text: str) -> int:
    """Return the end of a quote: the length of the text, or the last clause boundary within the maximum."""
    if len(text) <= MAX_QUOTE_CHARS:
        return len(text)
    borders = [m.end() for m in _CLAUSE.finditer(text, MAX_QUOTE_CHARS // 2, MAX_QUOTE_CHARS)]
    gap = text.rfind(" ", 0, MAX_QUOTE_CHARS)
    return borders[-1] if borders else gap if gap > 0 else MAX_QUOTE_CHARS

"""How well a line reads when it stands alone: whether it states something, is whole, and leans on nothing.

The only home of what makes a quote readable. Knows no question.
"""

import re

from offing_graphs.extractive.lines import Line
from offing_graphs.extractive.split import Kind, linked_share

LONGEST_QUOTE = 420
"""Code points of a quote; longer sentences are cut at a clause."""

_DANGLING = re.compile(
    r"(?:this|that|these|those|it|they|he|she|such|its|their|here|however|also|otherwise|therefore|then|both)\b", re.I
)
_ENDINGS = frozenset(".!?:;)\u3002\uff01\uff1f")
_POINTING = re.compile(
    r"(?:see|refer to|for (?:more|further|full|additional)|read|check out|learn more|documentation (?:and|can))\b", re.I
)
_CLAUSE = re.compile(r"[;:,.)\u2014](?=\s)")
_FUNCTION_WORD = re.compile(
    r"\b(?:the|an?|is|are|was|were|be|been|has|have|had|does|do|did|can|could|will|would|must|should|may|might|to|of|in|"
    r"on|for|with|by|from|as|at|that|which|when|if|it|this|not|no|or|and|than|but|default)\b",
    re.IGNORECASE,
)
"""Words that hold a statement together; a row of names has none."""
_LATIN = re.compile(r"[a-z]", re.IGNORECASE)
_VALUE = re.compile(r"\d|\bdefault\b|\b(?:true|false|null|none)\b", re.IGNORECASE)
_LINK_FIRST = re.compile(r"\s*(?:\*\*|`)?\[[^\]]+\]\(")


def readable(line: Line) -> float:
    """How well a line stands alone, as a factor; about 1 for a whole sentence."""
    text, kind = line.text, line.unit.kind
    return _length(text, kind) * _ending(line) * _beginning(line) * _statement(line)


def _length(text: str, kind: Kind) -> float:
    words = len(text.split())
    if words < 5:
        return 0.85 if kind is not Kind.PROSE and _VALUE.search(text) else 0.55
    if len(text) > LONGEST_QUOTE:
        return 0.85
    return 0.75 if words < 9 and kind is Kind.PROSE and text[-1:] not in _ENDINGS else 1.0


def _ending(line: Line) -> float:
    text = line.text
    factor = 0.6 if text.endswith("?") else 0.88 if text.endswith(":") else 1.0
    torn = text[-1:] not in _ENDINGS and line.unit.end >= len(line.piece.text.rstrip())
    return factor * (0.75 if torn and len(text.split()) >= 9 else 1.0)


def _beginning(line: Line) -> float:
    text = line.text
    factor = 0.85 if text[:1].islower() and line.unit.kind is Kind.PROSE else 1.0
    if _POINTING.match(text):
        factor *= 0.6
    if is_dangling(text):
        factor *= 0.9 if line.follows else 0.75
    return factor


def _statement(line: Line) -> float:
    """Less than 1 for what names things without saying anything of them: rows of names, entries of a catalogue."""
    source = line.piece.text[line.unit.start : line.unit.end]
    if linked_share(source) > 0.6:
        return 0.35
    factor = 0.8 if line.unit.kind is Kind.ITEM and _LINK_FIRST.match(source) else 1.0
    if _LATIN.search(line.text) and not says_something(line.text):
        factor *= 0.8 if line.unit.kind is Kind.ROW and _VALUE.search(line.text) else 0.6
    return factor


def says_something(text: str) -> bool:
    """It has words that hold a statement together, or gives a value."""
    return bool(_FUNCTION_WORD.search(text))


def is_dangling(text: str) -> bool:
    """It begins with a word that leans on the sentence before."""
    return bool(_DANGLING.match(text))


def cut_short(text: str) -> int:
    """Where a quote of this text ends: its length, or the last clause border within the longest quote."""
    if len(text) <= LONGEST_QUOTE:
        return len(text)
    borders = [m.end() for m in _CLAUSE.finditer(text, LONGEST_QUOTE // 2, LONGEST_QUOTE)]
    gap = text.rfind(" ", 0, LONGEST_QUOTE)
    return borders[-1] if borders else gap if gap > 0 else LONGEST_QUOTE

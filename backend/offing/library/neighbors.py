"""Complete a passage by the text around it, so that it can be understood alone.

The result is a longer range of the same text, so spans stay exact: from the beginning of a table, list or paragraph
that the passage continues, with the paragraph before a pronoun, up to the end of the line that it began. A short
document is returned completely. Ranges that touch become one.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from offing.library.passages import count_words

MAX_WHOLE_WORDS = 350
"""Maximum number of words of a document that is returned completely."""
MAX_WHOLE_CHARS = 4_000
"""Maximum code points of such a document."""
MAX_CHARS_BEFORE = 900
"""Maximum code points that are added before a passage."""
MAX_CHARS_AFTER = 400
"""Maximum code points that are added after a passage."""
MAX_MERGED_CHARS = 5_000
"""Maximum code points of a range that several passages become. Longer ones stay apart, without a common part."""
MAX_TABLE_CHARS = 60_000
"""Maximum code points of a table before a passage that are searched for its header row."""
MAX_HEADER_CHARS = 500
"""Maximum code points of a header row that is added to the headings of a passage."""

_ROW = re.compile(r"[ \t]*\|")
_RULE = re.compile(r"[ \t|:]*-[ \t|:-]*")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]")
_HEADING = re.compile(r"#{1,6}[ \t]")
_BLANK = re.compile(r"\n[ \t]*\n")
_SENTENCE_END = re.compile(r"[.!?][\"'\u201d\u2019)\]]*\s+|[\u3002\uff01\uff1f]")
_REFERRING = re.compile(
    r"(?:this|that|these|those|it|its|they|their|he|she|his|her|such|the (?:latter|former|same)|both|however|therefore|"
    r"thus|hence|moreover|furthermore|also|but|and|or|so|then|instead|otherwise|in addition|as a result|for example|"
    r"dies\w*|sie|er|es|jedoch|daher|deshalb|au\u00dferdem|aber|und)\b"
    r"|[\u8fd9\u9019\u8be5\u8a72\u5176\u4ed6\u5979\u5b83]|\u56e0\u6b64|\u4f46\u662f|\u7136\u800c|\u6b64\u5916|\u6240\u4ee5",
    re.IGNORECASE,
)
"""Words at the beginning of a sentence that refer to the sentence before."""


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """A passage with the text around it. Positions are those of the whole text, in code points."""

    start: int
    end: int
    text: str
    """From `first` on: all of the text, or more than `MAX_CHARS_BEFORE` and `MAX_CHARS_AFTER` around the passage."""
    first: int
    text_length: int
    """Code points of the whole text."""


def complete_passage(window: PassageWindow) -> tuple[int, int]:
    """Return start and end of the range that completes a passage."""
    text, start, end = window.text, window.start - window.first, window.end - window.first
    if window.first == 0 and len(text) == window.text_length and _is_short(text):
        return 0, window.text_length
    begin = _find_start(text, start)
    return window.first + begin, window.first + _find_end(text, end)


def _is_short(text: str) -> bool:
    return len(text) <= MAX_WHOLE_CHARS and count_words(text, 0, len(text)) <= MAX_WHOLE_WORDS


def _find_start(text: str, start: int) -> int:
    """Return where the block of a passage begins, or the sentence before it. `start` if that is too far."""
    earliest = max(0, start - MAX_CHARS_BEFORE)
    block = _find_block(text, start)
    if text[block:start].strip():
        if block >= earliest:
            return _add_introduction(text, block, earliest)
        return start if _ROW.match(text, start) else _find_sentence(text, start, earliest)
    if _REFERRING.match(text, start) or (_ITEM.match(text, start) and _ends_with_colon(text, start)):
        return _find_block_before(text, start, earliest)
    return start


def _find_block(text: str, start: int) -> int:
    """Return where the block begins that contains a position: after the last blank line before it."""
    begin = 0
    for border in _BLANK.finditer(text, 0, start):
        begin = border.end()
    return begin


def _find_block_before(text: str, start: int, earliest: int) -> int:
    """Return where the block before a block begins. `start` if it is a heading or too far away."""
    block = _find_block(text, len(text[:start].rstrip()))
    if _HEADING.match(text, block):
        return start
    return block if block >= earliest else _find_sentence(text, start, earliest)


def _add_introduction(text: str, block: int, earliest: int) -> int:
    """Return where the line before a list or table begins that announces it, or `block`."""
    if not (_ITEM.match(text, block) or _ROW.match(text, block)) or not _ends_with_colon(text, block):
        return block
    return _find_block_before(text, block, earliest)


def _ends_with_colon(text: str, start: int) -> bool:
    return text[max(0, start - 10) : start].rstrip().endswith((":", "\uff1a"))


def _find_sentence(text: str, start: int, earliest: int) -> int:
    """Return where the last sentence before a position begins. `start` if it is too far away."""
    ends = [border.end() for border in _SENTENCE_END.finditer(text, earliest, start) if border.end() < start]
    return ends[-1] if ends else start


def _find_end(text: str, end: int) -> int:
    """Return where the line or the announced list ends in which a passage ends. `end` if that is too far."""
    latest = min(len(text), end + MAX_CHARS_AFTER)
    if text[:end].rstrip().endswith((":", "\uff1a")):
        blank = _BLANK.match(text, end)
        stop = _BLANK.search(text, blank.end() if blank else end)
        return stop.start() if stop and stop.start() <= latest else end
    stop = text.find("\n", end)
    if stop < 0:
        stop = max(end, len(text.rstrip()))
    return stop if stop <= latest else end


def find_header_row(text_before: str, passage: str) -> str:
    """Return the header row of the table that a passage continues. Empty if it continues none or has it itself.

    `text_before` is the text before the passage.
    """
    if not _ROW.match(passage) or _BLANK.search(text_before, len(text_before.rstrip())):
        return ""
    lines = text_before.rstrip().split("\n")
    first = len(lines)
    while first > 0 and _ROW.match(lines[first - 1]):
        first -= 1
    rows = lines[first:]
    if len(rows) < 2 or not _RULE.fullmatch(rows[1]):
        return ""
    return rows[0].strip()[:MAX_HEADER_CHARS]


@dataclass(frozen=True, slots=True)
class MergedRange:
    """A range of a text that one or more passages became."""

    rank: int
    """Position of the best of the passages in the ranking."""
    first: int
    """Position in the ranking of the passage with which the range begins."""
    start: int
    end: int


def merge_ranges(ranges: Sequence[tuple[Hashable, int, int]]) -> list[MergedRange]:
    """Return the ranges without a common part, best first: ranges of one text that touch become one.

    A range is a text, a start and an end. The given order is the ranking.
    """
    by_text: dict[Hashable, list[MergedRange]] = {}
    for rank, (text, start, end) in enumerate(ranges):
        by_text.setdefault(text, []).append(MergedRange(rank, rank, start, end))
    merged = [part for parts in by_text.values() for part in _merge_in_text(parts)]
    return sorted(merged, key=lambda part: part.rank)


def _merge_in_text(parts: list[MergedRange]) -> Iterator[MergedRange]:
    ordered = sorted(parts, key=lambda part: (part.start, -part.end))
    before = ordered[0]
    for part in ordered[1:]:
        if part.end <= before.end:
            before = MergedRange(min(before.rank, part.rank), before.first, before.start, before.end)
        elif part.start <= before.end + 2 and part.end - before.start <= MAX_MERGED_CHARS:
            before = MergedRange(min(before.rank, part.rank), before.first, before.start, part.end)
        else:
            yield before
            before = MergedRange(part.rank, part.first, max(part.start, before.end), part.end)
    yield before

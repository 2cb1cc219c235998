"""Split texts into passages.

A passage is an exact span. Boundaries are at headings first, then at blank lines, then at sentences; inside
code and tables they are at lines. A section that is split because of its length repeats its last short
sentence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

TARGET_PASSAGE_WORDS = 80
"""Number of words after which a blank line ends a passage."""
MAX_PASSAGE_WORDS = 180
"""Maximum number of words of a passage, unless a single sentence or line is longer."""
MIN_PASSAGE_WORDS = 40
"""Minimum number of words of a section. A shorter one is joined with the section that follows."""
MAX_REPEATED_WORDS = 25
"""Maximum number of words of a sentence that is repeated at the beginning of the next passage."""
MAX_UNIT_CHARS = 1_000
"""Maximum code points of a sentence or line. A longer one is split."""
MAX_HEADING_CHARS = 300
"""Maximum code points of a heading. A longer line is ordinary text, because every passage below a heading repeats it.
"""

HEADING_SEPARATOR = " \u203a "
"""What is between the headings of a passage."""
FRONT_MATTER = re.compile(r"---[ \t]*\n(.{0,4000}?)\n---[ \t]*\n", re.DOTALL)
"""Front matter of a Markdown text."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(?=[^ \t])")
_UNDERLINE = re.compile(r"(=|-|~|\^|\*|\+|\"){3,}[ \t]*$")
_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})")
_OWN_LINE = re.compile(r"[ \t]*(?:[-*+>|]|\d{1,3}[.)])[ \t]|[ \t]*\||(?: {4}|\t)")
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*(?:\s+(?=[^a-z\s])|(?<=[\u3002\uff01\uff1f]))")
_LINE_END = re.compile(r"\n")
_WORD = re.compile(r"\w+")
_ASCII_WORDS = bytes(code if chr(code).isalnum() or code == ord("_") else ord(" ") for code in range(128)).ljust(256)
"""Table for `bytes.translate` that leaves only the words of an ASCII text, which are counted much faster so."""
_UNSPACED_SCRIPT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)")
_MARKUP = re.compile(r"<[^<>]{1,200}>|[`*]|\\(?=[^\w\s])")
"""Neither pattern looks past a point where the same match could start again, so a line of many starts is read once."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A span in code points, with the end excluded, and the headings above its start, outermost first."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


class _TextUnit(NamedTuple):
    """The smallest range that is not split: a heading, a sentence or a line."""

    start: int
    end: int
    words: int
    starts_block: bool
    """Whether a blank line or a heading is before it."""
    level: int = 0
    """Level if it is a heading. 0 means that it is not."""
    heading: str = ""


def split_passages(text: str) -> tuple[Passage, ...]:
    """Return the passages of a text in order. Empty for a text without words."""
    return tuple(p for p in _pack_units(_iter_units(text)) if _WORD.search(text, p.start, p.end))


def find_first_heading(text: str) -> str:
    """Return the first heading near the beginning of a text, without markup. Empty if there is none."""
    head = text[:20_000]
    return next((unit.heading for unit in _iter_units(head) if unit.level), "")


def strip_markup(line: str) -> str:
    """Return a heading or title as one line without Markdown markup."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", line)).split())


@dataclass(slots=True)
class _PassageBuilder:
    """Running totals of the units of the next passage, so that adding a unit has a constant cost."""

    start: int = 0
    end: int = 0
    words: int = 0
    count: int = 0
    has_text: bool = False
    """Whether it contains a unit that is not a heading."""
    last_unit: _TextUnit | None = None

    def add(self, unit: _TextUnit) -> None:
        self.start = self.start if self.count else unit.start
        self.end, self.words, self.count = unit.end, self.words + unit.words, self.count + 1
        self.has_text, self.last_unit = self.has_text or not unit.level, unit


def _pack_units(units: Iterator[_TextUnit]) -> Iterator[Passage]:
    builder = _PassageBuilder()
    path: list[tuple[int, str]] = []
    under: tuple[str, ...] = ()
    for unit in units:
        if builder.count and _is_passage_end(builder, unit):
            yield Passage(builder.start, builder.end, under)
            builder = _PassageBuilder() if unit.starts_block else _start_overlapping(builder)
        if unit.level:
            path = [*(h for h in path if h[0] < unit.level), (unit.level, unit.heading)]
        if not builder.has_text:
            under = tuple(name for _, name in path)
        builder.add(unit)
    if builder.count:
        yield Passage(builder.start, builder.end, under)


def _is_passage_end(builder: _PassageBuilder, next_unit: _TextUnit) -> bool:
    if builder.words + next_unit.words > MAX_PASSAGE_WORDS:
        return builder.has_text or bool(next_unit.level)
    if next_unit.level:
        return builder.words >= MIN_PASSAGE_WORDS and builder.has_text
    return next_unit.starts_block and builder.words >= TARGET_PASSAGE_WORDS


def _start_overlapping(previous: _PassageBuilder) -> _PassageBuilder:
    """Return the start of a passage that continues a section: the previous last sentence if it is short."""
    builder = _PassageBuilder()
    if (
        previous.last_unit is not None
        and previous.count > 1
        and not previous.last_unit.level
        and previous.last_unit.words <= MAX_REPEATED_WORDS
    ):
        builder.add(previous.last_unit)
    return builder


def _iter_units(text: str) -> Iterator[_TextUnit]:
    """Yield the ranges of the text that contain a word, in order and without overlap."""
    for block in _iter_blocks(text):
        if block.level:
            yield block
            continue
        for number, (start, end) in enumerate(_iter_sentences(text, block.start, block.end)):
            yield _TextUnit(start, end, count_words(text, start, end), block.starts_block and number == 0)


def _iter_lines(text: str, offset: int) -> Iterator[tuple[int, int, str]]:
    for line in text[offset:].split("\n"):
        yield offset, offset + len(line), line
        offset += len(line) + 1


def _iter_blocks(text: str) -> Iterator[_TextUnit]:
    """Yield headings, and the paragraphs, lists, tables and fenced code between them."""
    front = FRONT_MATTER.match(text)
    if front:
        yield _TextUnit(front.start(1), front.end(1), 0, True)
    lines = list(_iter_lines(text, front.end() if front else 0))
    begin, last, fence = -1, -1, ""
    first = True
    number = 0
    while number < len(lines):
        start, end, line = lines[number]
        fenced = _FENCE.match(line)
        if fenced:
            fence = "" if fence and fenced.group(1).startswith(fence) else fence or fenced.group(1)
        heading = None if fence or fenced else _parse_heading(lines, number)
        if heading or (not line.strip() and not fence):
            if begin >= 0:
                yield _TextUnit(begin, last, 0, first)
                begin, first = -1, True
            if heading:
                level, name, line_count = heading
                stop = lines[number + line_count - 1][1]
                yield _TextUnit(start, stop, count_words(text, start, stop), True, level, name)
                first, number = True, number + line_count - 1
        else:
            begin, last = (start if begin < 0 else begin), end
        number += 1
    if begin >= 0:
        yield _TextUnit(begin, last, 0, first)


def _parse_heading(lines: list[tuple[int, int, str]], number: int) -> tuple[int, str, int] | None:
    """Return level, name and number of lines of a heading that starts at this line, or `None`."""
    line = lines[number][2]
    marked = _HEADING.match(line) if len(line) <= MAX_HEADING_CHARS else None
    if marked and (name := strip_markup(_strip_closing_signs(line[marked.end() :]))):
        return len(marked.group(1)), name, 1
    if number + 1 < len(lines) and _is_title(line) and (number == 0 or not lines[number - 1][2].strip()):
        under = lines[number + 1][2]
        if _UNDERLINE.match(under) and len(under.strip()) >= min(len(line.strip()), 3):
            return (1 if under[0] == "=" else 2), strip_markup(line), 2
    return None


def _strip_closing_signs(name: str) -> str:
    """Return a heading without its closing signs. A heading of signs only keeps one as its name."""
    return name.rstrip(" \t").rstrip("#") or name[:1]


def _is_title(line: str) -> bool:
    return bool(line.strip()) and len(line) <= 120 and not line[0].isspace() and not _OWN_LINE.match(line)


def _iter_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a block, or its lines in code, lists and tables."""
    as_lines = bool(_FENCE.match(text, start) or _OWN_LINE.match(text, start))
    at = start
    for border in (_LINE_END if as_lines else _SENTENCE_END).finditer(text, start, end):
        stop = border.start() if as_lines else border.end()
        if stop > at and border.end() < end:
            yield from _split_long_range(text, at, stop)
            at = border.end()
    yield from _split_long_range(text, at, end)


def _split_long_range(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the trimmed range, split between words if it is too long for a passage."""
    start, end = _trim_range(text, start, end)
    while end - start > MAX_UNIT_CHARS:
        gap = text.rfind(" ", start + MAX_UNIT_CHARS // 2, start + MAX_UNIT_CHARS)
        stop = gap if gap > 0 else start + MAX_UNIT_CHARS
        yield start, stop
        start, end = _trim_range(text, stop, end)
    if start < end:
        yield start, end


def _trim_range(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def count_words(text: str, start: int, end: int) -> int:
    """Return the number of words of a range.

    In scripts without spaces two characters count as one word, in encoded data twelve.
    """
    span_text = text[start:end]
    if span_text.isascii():
        words = len(span_text.encode().translate(_ASCII_WORDS).split())
    else:
        words = len(_WORD.findall(span_text)) + len(_UNSPACED_SCRIPT.findall(span_text)) // 2
    return max(words, len(span_text) // 12)

"""Where a text is cut into passages. The only home of passage sizes and borders; knows nothing of terms or storage.

A passage is an exact span. Borders fall where a reader would put them: at headings first, then at blank lines, then at
sentences; inside code and tables at lines. A section that is cut for its length repeats its last short sentence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

ENOUGH = 80
"""Words after which a blank line ends a passage."""
MOST = 180
"""Words that a passage does not exceed, unless one sentence or line alone does."""
TOO_FEW = 40
"""A section shorter than this stays together with the one that follows."""
REPEATED = 25
"""Words of a sentence that may stand at the end of one passage and the beginning of the next."""
LONGEST_PIECE = 1_000
"""Code points of a sentence or line that is not cut within."""
LONGEST_HEADING = 300
"""Code points of a heading. Every passage below it repeats it, so a longer line is an ordinary one."""

FRONT_MATTER = re.compile(r"---[ \t]*\n(.{0,4000}?)\n---[ \t]*\n", re.DOTALL)
"""Fields in front of a Markdown text."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(?=[^ \t])")
_UNDERLINE = re.compile(r"(=|-|~|\^|\*|\+|\"){3,}[ \t]*$")
_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})")
_OWN_LINE = re.compile(r"[ \t]*(?:[-*+>|]|\d{1,3}[.)])[ \t]|[ \t]*\||(?: {4}|\t)")
_SENTENCE_END = re.compile(
    r"(?<=[.!?\u3002\uff01\uff1f])[\"'\u201d\u2019)\]]*(?:\s+(?=[^a-z\s])|(?<=[\u3002\uff01\uff1f]))"
)
_WORD = re.compile(r"\w+")
_CROWDED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)")
_MARKUP = re.compile(r"<[^<>]{1,200}>|[`*]|\\(?=[^\w\s])")
"""Neither looks past where the same thing could begin anew, so a line full of beginnings is read once."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A span in code points, end excluded, and the headings that it begins under, outermost first."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Unit:
    """The smallest stretch that is not cut: a heading, a sentence, or a line."""

    start: int
    end: int
    words: int
    first: bool
    """A blank line or a heading stands before it."""
    level: int = 0
    """Depth of the heading it is. 0: none."""
    heading: str = ""


def cut(text: str) -> tuple[Passage, ...]:
    """The passages of a text in order. Empty for a text without words."""
    return tuple(p for p in _packed(_units(text)) if _WORD.search(text, p.start, p.end))


def first_heading(text: str) -> str:
    """The first heading among the first lines of a text, without markup. Empty: there is none."""
    head = text[:20_000]
    return next((unit.heading for unit in _units(head) if unit.level), "")


def plain(line: str) -> str:
    """A heading or title on one line, without Markdown's marks."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", line)).split())


@dataclass(slots=True)
class _Held:
    """The units of the passage in the making, as sums, so that another unit costs the same however many there are."""

    start: int = 0
    end: int = 0
    words: int = 0
    count: int = 0
    text: bool = False
    """Whether a unit that is no heading is among them."""
    last: _Unit | None = None

    def add(self, unit: _Unit) -> None:
        self.start = self.start if self.count else unit.start
        self.end, self.words, self.count = unit.end, self.words + unit.words, self.count + 1
        self.text, self.last = self.text or not unit.level, unit


def _packed(units: Iterator[_Unit]) -> Iterator[Passage]:
    held = _Held()
    path: list[tuple[int, str]] = []
    under: tuple[str, ...] = ()
    for unit in units:
        if held.count and _ends(held, unit):
            yield Passage(held.start, held.end, under)
            held = _Held() if unit.first else _repeated(held)
        if unit.level:
            path = [*(h for h in path if h[0] < unit.level), (unit.level, unit.heading)]
        if not held.text:
            under = tuple(name for _, name in path)
        held.add(unit)
    if held.count:
        yield Passage(held.start, held.end, under)


def _ends(held: _Held, coming: _Unit) -> bool:
    if held.words + coming.words > MOST:
        return held.text or bool(coming.level)
    if coming.level:
        return held.words >= TOO_FEW and held.text
    return coming.first and held.words >= ENOUGH


def _repeated(held: _Held) -> _Held:
    """What a passage begins with that continues a section: the last sentence of the one before, if it is short."""
    kept = _Held()
    if held.last is not None and held.count > 1 and not held.last.level and held.last.words <= REPEATED:
        kept.add(held.last)
    return kept


def _units(text: str) -> Iterator[_Unit]:
    """Every stretch of the text that holds a word, in order, without overlap."""
    for block in _blocks(text):
        if block.level:
            yield block
            continue
        for number, (start, end) in enumerate(_pieces(text, block.start, block.end)):
            yield _Unit(start, end, _words(text, start, end), block.first and number == 0)


def _lines(text: str, at: int) -> Iterator[tuple[int, int, str]]:
    for line in text[at:].split("\n"):
        yield at, at + len(line), line
        at += len(line) + 1


def _blocks(text: str) -> Iterator[_Unit]:
    """Headings, and the paragraphs, lists, tables and fenced code between them."""
    front = FRONT_MATTER.match(text)
    if front:
        yield _Unit(front.start(1), front.end(1), 0, True)
    lines = list(_lines(text, front.end() if front else 0))
    begin, last, fence = -1, -1, ""
    first = True
    number = 0
    while number < len(lines):
        start, end, line = lines[number]
        fenced = _FENCE.match(line)
        if fenced:
            fence = "" if fence and fenced.group(1).startswith(fence) else fence or fenced.group(1)
        heading = None if fence or fenced else _heading(lines, number)
        if heading or (not line.strip() and not fence):
            if begin >= 0:
                yield _Unit(begin, last, 0, first)
                begin, first = -1, True
            if heading:
                level, name, taken = heading
                stop = lines[number + taken - 1][1]
                yield _Unit(start, stop, _words(text, start, stop), True, level, name)
                first, number = True, number + taken - 1
        else:
            begin, last = (start if begin < 0 else begin), end
        number += 1
    if begin >= 0:
        yield _Unit(begin, last, 0, first)


def _heading(lines: list[tuple[int, int, str]], number: int) -> tuple[int, str, int] | None:
    """Level, name and lines taken of a heading that begins at this line. None: it is none."""
    line = lines[number][2]
    marked = _HEADING.match(line) if len(line) <= LONGEST_HEADING else None
    if marked and (name := plain(_without_closing(line[marked.end() :]))):
        return len(marked.group(1)), name, 1
    if number + 1 < len(lines) and _is_title(line) and (number == 0 or not lines[number - 1][2].strip()):
        under = lines[number + 1][2]
        if _UNDERLINE.match(under) and len(under.strip()) >= min(len(line.strip()), 3):
            return (1 if under[0] == "=" else 2), plain(line), 2
    return None


def _without_closing(name: str) -> str:
    """A heading without the signs that may close it, of which one that stands alone is its name."""
    return name.rstrip(" \t").rstrip("#") or name[:1]


def _is_title(line: str) -> bool:
    return bool(line.strip()) and len(line) <= 120 and not line[0].isspace() and not _OWN_LINE.match(line)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A block's sentences, or its lines where a line stands for itself."""
    as_lines = bool(_FENCE.match(text, start) or _OWN_LINE.match(text, start))
    borders = re.compile(r"\n") if as_lines else _SENTENCE_END
    at = start
    for border in borders.finditer(text, start, end):
        if border.start() > at and border.end() < end:
            yield from _bounded(text, at, border.start() if as_lines else border.end())
            at = border.end()
    yield from _bounded(text, at, end)


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretch itself, trimmed; cut between words where it alone is too long for a passage."""
    start, end = _trimmed(text, start, end)
    while end - start > LONGEST_PIECE:
        gap = text.rfind(" ", start + LONGEST_PIECE // 2, start + LONGEST_PIECE)
        stop = gap if gap > 0 else start + LONGEST_PIECE
        yield start, stop
        start, end = _trimmed(text, stop, end)
    if start < end:
        yield start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _words(text: str, start: int, end: int) -> int:
    """Words of a stretch; in scripts without spaces two characters count as one, in encoded data a dozen."""
    stretch = text[start:end]
    crowded = 0 if stretch.isascii() else len(_CROWDED.findall(stretch)) // 2
    return max(len(_WORD.findall(stretch)) + crowded, len(stretch) // 12)

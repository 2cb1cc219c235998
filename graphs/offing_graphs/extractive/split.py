"""Where a passage's sentences, list items, table rows and code begin and end, and how one reads without its markup.

Spans are code points of the text that was given, so that a quote can be cut out of it exactly.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    PROSE = "prose"
    ITEM = "item"
    ROW = "row"
    CODE = "code"
    HEADING = "heading"


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch that can be quoted by itself."""

    start: int
    end: int
    kind: Kind
    block: int
    """Units of one paragraph, list item, table or code block share a number."""


_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+\S")
_UNDERLINE = re.compile(r"[ \t]*(?:={3,}|-{3,}|\*{3,}|_{3,}|~{3,})[ \t]*$")
_ITEM = re.compile(r"[ \t>]*(?:[-*+\u2022\u25aa\u2013]|\(?\d{1,3}[.)]|\(?[a-z]\))[ \t]+(?:\[[ xX]\][ \t]+)?")
_ROW = re.compile(r"[ \t]*\|")
_RULE_ROW = re.compile(r"[ \t|:+\-=]+$")
_REFERENCE = re.compile(r"[ \t]{0,3}\[[^\]]+\]:[ \t]*\S+")
_TAG = re.compile(
    r"</?(?:a|abbr|b|blockquote|br|center|code|dd|del|details|div|dl|dt|em|h[1-6]|hr|i|img|ins|kbd|li|ol|p|picture|pre|s|"
    r"small|source|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)(?:\s[^<>]{0,300})?/?>|<!--.*?-->",
    re.DOTALL,
)
_WORD = re.compile(r"\w")
_PROGRAM = re.compile(
    r"[{};]$|^[})\]]+[,;]?$|[(\[{,]$|=>|^(?://|/\*|\*/)|^(?:const|let|var|import|export|return|await|async|def|class|"
    r"function|public|private|if|for|while|try|catch|else)\b.*[({;:=]|^[\w.]+\(.*\)[;,]?$|^\w+:\s.*,$"
)
"""A line that reads as a program's."""

_END = re.compile(
    r"[.!?\u2026\u061f\u06d4\u0964]+[\"'\u201d\u2019\u00bb)\]*_`]*(?=\s+|$)|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09\"]*|\n(?=\n)"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'\u201c])(?:e\.g|i\.e|etc|vs|cf|al|approx|resp|incl|esp|ca|Dr|Mr|Mrs|Ms|Prof|St|Fig|Figs|Eq|Eqs|Sec|Ch|No|"
    r"Nos|Vol|pp|p|Inc|Ltd|Co|Corp|Jr|Sr|U\.S|U\.K|a\.m|p\.m|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|[A-Z])\.$"
)


@lru_cache(maxsize=2_048)
def units(text: str) -> tuple[Unit, ...]:
    """Everything of the text that can be quoted, in order, without overlap."""
    found: list[Unit] = []
    for number, (start, end, form) in enumerate(_blocks(text)):
        kind = Kind.CODE if form is Kind.PROSE and _looks_like_code(text[start:end]) else form
        pieces = _sentences(text, start, end) if kind in {Kind.PROSE, Kind.ITEM} else [(start, end)]
        found += [Unit(a, b, kind, number) for a, b in pieces if _WORD.search(_TAG.sub("", text[a:b]))]
    return tuple(found)


def _looks_like_code(block: str) -> bool:
    """A passage may begin in the middle of a program, where no fence says so."""
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    programs = sum(bool(_PROGRAM.search(line)) for line in lines)
    return programs * 2 > len(lines)


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, at + len(line), line
        at += len(line) + 1


@dataclass(slots=True)
class _Reader:
    """Cuts a text into blocks, line by line; a block that is still open grows."""

    text: str
    found: list[tuple[int, int, Kind]] = field(default_factory=list[tuple[int, int, Kind]])
    begin: int = -1
    last: int = -1
    kind: Kind = Kind.PROSE
    fence: str = ""
    """The mark that ends the code one is in. Empty: one is in none."""
    code: int = 0

    def line(self, start: int, end: int, line: str) -> None:
        mark = _FENCE.match(line)
        if self.fence:
            if mark and mark.group(1).startswith(self.fence):
                self.end_code(start - 1)
            return
        form = _form(line, bool(mark))
        if form == "more":
            self.begin, self.kind = (start, Kind.PROSE) if self.begin < 0 else (self.begin, self.kind)
            self.last = end
            return
        self.close()
        if mark:
            self.fence, self.code = mark.group(1), end + 1
        elif form == "alone":
            self.found.append((start, end, Kind.HEADING if _HEADING.match(line) else Kind.ROW))
        elif form == "item" and (item := _ITEM.match(line)):
            self.begin, self.last, self.kind = start + item.end(), end, Kind.ITEM

    def close(self) -> None:
        if self.begin >= 0:
            self.found.append((self.begin, self.last, self.kind))
        self.begin = -1

    def end_code(self, end: int) -> None:
        if self.code < end and self.text[self.code : end].strip():
            self.found.append((self.code, end, Kind.CODE))
        self.fence = ""


def _blocks(text: str) -> list[tuple[int, int, Kind]]:
    """Paragraphs, items, rows, code and headings as stretches."""
    reader = _Reader(text)
    for start, end, line in _lines(text):
        reader.line(start, end, line)
    if reader.fence:
        reader.end_code(len(text))
    reader.close()
    return reader.found


def _form(line: str, fence: bool) -> str:
    """What a line does: opens code (fence), stands alone, starts an item, ends what is open (gap), goes on (more)."""
    if fence:
        return "fence"
    if not line.strip() or _UNDERLINE.match(line) or _REFERENCE.match(line):
        return "gap"
    if _ROW.match(line):
        return "gap" if _RULE_ROW.match(line) else "alone"
    if _HEADING.match(line):
        return "alone"
    return "item" if _ITEM.match(line) else "more"


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A block's sentences, trimmed. Dots of abbreviations, of initials and within inline code end none."""
    found: list[tuple[int, int]] = []
    at = start
    for border in _END.finditer(text, start, end):
        stop = border.end()
        if stop < end and not _really_ends(text, at, border.start(), stop):
            continue
        found.append((at, stop))
        at = stop
    return [t for a, b in [*found, (at, end)] if (t := _trimmed(text, a, b))[0] < t[1]]


def _really_ends(text: str, at: int, dot: int, stop: int) -> bool:
    before = text[at:dot] + text[dot]
    if before.count("`") % 2 and "`" not in text[dot:stop]:
        return False
    following = text[stop:].lstrip()[:1]
    if text[dot] == "." and (following.islower() or _ABBREVIATION.search(before[-14:])):
        return False
    return bool(_WORD.search(before))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] == ">"):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_LINK = re.compile(r"\[([^\[\]]+)\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)?(?:\s+\"[^\"]*\")?\)|\[[^\]]*\])")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.{1,600}?)(?<=\S)\1", re.DOTALL)
_SOFT = re.compile(r"(?<![\w*])([*_])(?=[^\s*_])([^*]{1,400}?)(?<=[^\s*_])\1(?![\w*])")
_CODE_SPAN = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_KEPT = re.compile("\ue000(\\d+)\ue001")
_QUOTED = re.compile(r"\n[ \t]*>[ \t]?")
_HASHES = re.compile(r"^#{1,6}\s+|\s#+$")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


@lru_cache(maxsize=8_192)
def plain(stretch: str) -> str:
    """A stretch as one line that a reader sees: its words and numbers, without links' targets and marks."""
    kept: list[str] = []

    def put_away(match: re.Match[str]) -> str:
        kept.append(match.group(2))
        return f"\ue000{len(kept) - 1}\ue001"

    text = _without_marks(_CODE_SPAN.sub(put_away, stretch.replace("\ue000", "").replace("\ue001", "")))
    if _ROW.match(text):
        text = " · ".join(cell.strip() for cell in text.strip().strip("|").split("|") if cell.strip())
    text = _KEPT.sub(lambda match: kept[int(match.group(1))], text)
    return " ".join(text.split())


def _without_marks(text: str) -> str:
    text = _QUOTED.sub("\n", text)
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _TAG.sub(" ", text)))
    text = _SOFT.sub(r"\2", _STRONG.sub(r"\2", _LINK.sub(r"\1", text)))
    text = html.unescape(_ESCAPE.sub(r"\1", text)).replace("\u00ad", "").replace("`", "")
    return _HASHES.sub("", text.strip())


def is_header(text: str, row: Unit) -> bool:
    """A row of dashes follows this one, so that it names the table's columns."""
    following = text[row.end :].lstrip("\n").split("\n", 1)[0]
    return "-" in following and bool(_RULE_ROW.match(following))


def linked_share(stretch: str) -> float:
    """How much of what a reader sees is links: near 1 for an entry of a table of contents."""
    seen = plain(stretch)
    return sum(len(plain(m.group(1))) for m in _LINK.finditer(stretch)) / len(seen) if seen else 0.0

"""Split a passage into sentences, list items, table rows and code, and strip markup from them.

Spans are code points of the given text, so that a quote can be cut from it exactly.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache


class UnitKind(StrEnum):
    PROSE = "prose"
    ITEM = "item"
    ROW = "row"
    CODE = "code"
    HEADING = "heading"


@dataclass(frozen=True, slots=True)
class Unit:
    """A range of a text that can be quoted on its own."""

    start: int
    end: int
    kind: UnitKind
    block: int
    """Number of the block. Units of one paragraph, list item, table or code block share a number."""


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
"""Matches a line of program code."""

_END = re.compile(
    r"[.!?\u2026\u061f\u06d4\u0964]+[\"'\u201d\u2019\u00bb)\]*_`]*(?=\s+|$)|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09\"]*|\n(?=\n)"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'\u201c])(?:e\.g|i\.e|etc|vs|cf|al|approx|resp|incl|esp|ca|Dr|Mr|Mrs|Ms|Prof|St|Fig|Figs|Eq|Eqs|Sec|Ch|No|"
    r"Nos|Vol|pp|p|Inc|Ltd|Co|Corp|Jr|Sr|U\.S|U\.K|a\.m|p\.m|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|[A-Z])\.$"
)


_UNSPACED_CHARACTER = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
UNSPACED_CHARACTER_WIDTH = 3
"""Number of English characters that say as much as one Chinese or Japanese character."""


def measure_width(text: str) -> int:
    """Return the length of a text in characters, where a Chinese or Japanese character counts three times."""
    return len(text) + (UNSPACED_CHARACTER_WIDTH - 1) * len(_UNSPACED_CHARACTER.findall(text))


def count_words(text: str) -> int:
    """Return the number of words, where two Chinese or Japanese characters count as one."""
    return len(text.split()) + len(_UNSPACED_CHARACTER.findall(text)) // 2


@lru_cache(maxsize=2_048)
def split_units(text: str) -> tuple[Unit, ...]:
    """Return all units of the text in order and without overlap."""
    text_units: list[Unit] = []
    for number, (start, end, form) in enumerate(_split_blocks(text)):
        kind = UnitKind.CODE if form is UnitKind.PROSE and _looks_like_code(text[start:end]) else form
        pieces = _split_sentences(text, start, end) if kind in {UnitKind.PROSE, UnitKind.ITEM} else [(start, end)]
        text_units += [Unit(a, b, kind, number) for a, b in pieces if _WORD.search(_TAG.sub("", text[a:b]))]
    return tuple(text_units)


def _looks_like_code(block: str) -> bool:
    """Return whether a block looks like code.

    A passage may begin inside a program, where no fence marks it.
    """
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    programs = sum(bool(_PROGRAM.search(line)) for line in lines)
    return programs * 2 > len(lines)


def _iter_lines(text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, at + len(line), line
        at += len(line) + 1


@dataclass(slots=True)
class _UnitParser:
    """Splits a text into blocks line by line. An open block grows with each line."""

    text: str
    blocks: list[tuple[int, int, UnitKind]] = field(default_factory=list[tuple[int, int, UnitKind]])
    start: int = -1
    end: int = -1
    kind: UnitKind = UnitKind.PROSE
    fence: str = ""
    """Fence that ends the open code block. Empty means that no code block is open."""
    code_start: int = 0

    def add_line(self, start: int, end: int, line: str) -> None:
        mark = _FENCE.match(line)
        if self.fence:
            if mark and mark.group(1).startswith(self.fence):
                self.end_code(start - 1)
            return
        form = _classify_line(line, bool(mark))
        if form == "more":
            self.start, self.kind = (start, UnitKind.PROSE) if self.start < 0 else (self.start, self.kind)
            self.end = end
            return
        self.close()
        if mark:
            self.fence, self.code_start = mark.group(1), end + 1
        elif form == "alone":
            self.blocks.append((start, end, UnitKind.HEADING if _HEADING.match(line) else UnitKind.ROW))
        elif form == "item" and (item := _ITEM.match(line)):
            self.start, self.end, self.kind = start + item.end(), end, UnitKind.ITEM

    def close(self) -> None:
        if self.start >= 0:
            self.blocks.append((self.start, self.end, self.kind))
        self.start = -1

    def end_code(self, end: int) -> None:
        if self.code_start < end and self.text[self.code_start : end].strip():
            self.blocks.append((self.code_start, end, UnitKind.CODE))
        self.fence = ""


def _split_blocks(text: str) -> list[tuple[int, int, UnitKind]]:
    """Return paragraphs, items, rows, code and headings as ranges."""
    reader = _UnitParser(text)
    for start, end, line in _iter_lines(text):
        reader.add_line(start, end, line)
    if reader.fence:
        reader.end_code(len(text))
    reader.close()
    return reader.blocks


def _classify_line(line: str, fence: bool) -> str:
    """Classify a line.

    A line opens code (fence), stands alone (alone), starts an item (item), ends a block (gap)
    or continues it (more).
    """
    if fence:
        return "fence"
    if not line.strip() or _UNDERLINE.match(line) or _REFERENCE.match(line):
        return "gap"
    if _ROW.match(line):
        return "gap" if _RULE_ROW.match(line) else "alone"
    if _HEADING.match(line):
        return "alone"
    return "item" if _ITEM.match(line) else "more"


def _split_sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the sentences of a block, trimmed.

    Dots of abbreviations, of initials and in inline code do not end a sentence.
    """
    sentences: list[tuple[int, int]] = []
    at = start
    for border in _END.finditer(text, start, end):
        stop = border.end()
        if stop < end and not _is_sentence_end(text, at, border.start(), stop):
            continue
        sentences.append((at, stop))
        at = stop
    return [t for a, b in [*sentences, (at, end)] if (t := _trim(text, a, b))[0] < t[1]]


def _is_sentence_end(text: str, at: int, dot: int, stop: int) -> bool:
    before = text[at:dot] + text[dot]
    if before.count("`") % 2 and "`" not in text[dot:stop]:
        return False
    following = text[stop:].lstrip()[:1]
    if text[dot] == "." and (following.islower() or _ABBREVIATION.search(before[-14:])):
        return False
    return bool(_WORD.search(before))


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] == ">"):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_LINK = re.compile(r"\[([^\[\]]+)\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)?(?:\s+\"[^\"]*\")?\)|\[[^\]]*\])")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.{1,600}?)(?<=\S)\1", re.DOTALL)
_EMPHASIS = re.compile(r"(?<![\w*])([*_])(?=[^\s*_])([^*]{1,400}?)(?<=[^\s*_])\1(?![\w*])")
_CODE_SPAN = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_PROTECTED = re.compile("\ue000(\\d+)\ue001")
_QUOTED = re.compile(r"\n[ \t]*>[ \t]?")
_HASHES = re.compile(r"^#{1,6}\s+|\s#+$")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


@lru_cache(maxsize=8_192)
def strip_markup(source: str) -> str:
    """Return a range as one line of visible text, without markup and link targets."""
    protected_texts: list[str] = []

    def put_away(match: re.Match[str]) -> str:
        protected_texts.append(match.group(2))
        return f"\ue000{len(protected_texts) - 1}\ue001"

    text = _strip_emphasis(_CODE_SPAN.sub(put_away, source.replace("\ue000", "").replace("\ue001", "")))
    if _ROW.match(text):
        text = " · ".join(cell.strip() for cell in text.strip().strip("|").split("|") if cell.strip())
    text = _PROTECTED.sub(lambda match: protected_texts[int(match.group(1))], text)
    return " ".join(text.split())


def _strip_emphasis(text: str) -> str:
    text = _QUOTED.sub("\n", text)
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _TAG.sub(" ", text)))
    text = _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", _LINK.sub(r"\1", text)))
    text = html.unescape(_ESCAPE.sub(r"\1", text)).replace("\u00ad", "").replace("`", "")
    return _HASHES.sub("", text.strip())


def is_table_header(text: str, row: Unit) -> bool:
    """Return whether a row of dashes follows this row, which makes it the header of the table."""
    following = text[row.end :].lstrip("\n").split("\n", 1)[0]
    return "-" in following and bool(_RULE_ROW.match(following))


def link_fraction(source: str) -> float:
    """Return the fraction of the visible text that is links.

    It is near 1 for an entry of a table of contents.
    """
    seen = strip_markup(source)
    return sum(len(strip_markup(m.group(1))) for m in _LINK.finditer(source)) / len(seen) if seen else 0.0

"""Parser of a regular expression into a syntax tree. It does not match text."""

from dataclasses import dataclass
from typing import Literal

Ranges = tuple[tuple[int, int], ...]
"""First and last code points of each range, both inclusive."""

ALL_CODE_POINTS: Ranges = ((0, 0x10FFFF),)
_LINE_BREAKS: Ranges = ((0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
_CLASS_ESCAPES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROL_ESCAPES = {"n": 0x0A, "r": 0x0D, "t": 0x09}

MAX_PATTERN_CHARS = 500
MAX_REPEATS = 100
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class PatternTree:
    """Node of the syntax tree. `many` means any number of times, including zero."""

    kind: Literal["set", "row", "either", "maybe", "many"]
    parts: "tuple[PatternTree, ...]" = ()
    ranges: Ranges = ()

    @classmethod
    def from_ranges(cls, ranges: Ranges) -> "PatternTree":
        return cls("set", ranges=ranges)


def parse_pattern(pattern: str, match_line_breaks: bool) -> PatternTree:
    """Parse a regular expression. Raises ValueError, which names the unsupported part."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"it is longer than {MAX_PATTERN_CHARS} characters")
    reader = _PatternParser(pattern, match_line_breaks)
    tree = reader.parse_alternatives(0)
    if reader.at < len(pattern):
        raise ValueError("a closing parenthesis has no opening one")
    return tree


def complement(ranges: Ranges) -> Ranges:
    """Return all code points outside the ranges."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return (*gaps, (start, 0x10FFFF)) if start <= 0x10FFFF else tuple(gaps)


class _PatternParser:
    """Parser that reads the pattern once from left to right."""

    def __init__(self, pattern: str, match_line_breaks: bool) -> None:
        self._text, self._breaks = pattern, match_line_breaks
        self.at = 0

    def parse_alternatives(self, depth: int) -> PatternTree:
        if depth > MAX_DEPTH:
            raise ValueError(f"groups are nested more than {MAX_DEPTH} deep")
        ways = [self._parse_sequence(depth)]
        while self._accept("|"):
            ways.append(self._parse_sequence(depth))
        return ways[0] if len(ways) == 1 else PatternTree("either", tuple(ways))

    def _parse_sequence(self, depth: int) -> PatternTree:
        parts: list[PatternTree] = []
        while self.at < len(self._text) and self._text[self.at] not in "|)":
            parts.append(self._parse_repetition(self._parse_atom(depth)))
        return PatternTree("row", tuple(parts))

    def _parse_repetition(self, tree: PatternTree) -> PatternTree:
        if self._accept("*"):
            tree = PatternTree("many", (tree,))
        elif self._accept("+"):
            tree = PatternTree("row", (tree, PatternTree("many", (tree,))))
        elif self._accept("?"):
            tree = PatternTree("maybe", (tree,))
        elif self._accept("{"):
            tree = self._parse_count(tree)
        else:
            return tree
        if self.at < len(self._text) and self._text[self.at] in "*+?{":
            raise ValueError("a repetition is repeated; put the first one into a group")
        return tree

    def _parse_count(self, tree: PatternTree) -> PatternTree:
        inside, closed, _ = self._text[self.at :].partition("}")
        low, comma, high = inside.partition(",")
        if not (closed and low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))):
            raise ValueError("a repetition must have the form {m}, {m,} or {m,n}; write \\{ for the character")
        self.at += len(inside) + 1
        min_count, max_count = int(low), int(high) if high else None if comma else int(low)
        if max(min_count, max_count or 0) > MAX_REPEATS or (max_count is not None and max_count < min_count):
            raise ValueError(
                f"a repetition must have an upper bound of at most {MAX_REPEATS} that is not below the lower bound"
            )
        tail = (
            (PatternTree("many", (tree,)),)
            if max_count is None
            else (PatternTree("maybe", (tree,)),) * (max_count - min_count)
        )
        return PatternTree("row", (*(tree,) * min_count, *tail))

    def _parse_atom(self, depth: int) -> PatternTree:
        match self._take():
            case "(":
                return self._parse_group(depth)
            case "[":
                return PatternTree.from_ranges(self._parse_class())
            case ".":
                return PatternTree.from_ranges(self._exclude_line_breaks(ALL_CODE_POINTS))
            case "\\":
                return PatternTree.from_ranges(self._parse_escape())
            case ("*" | "+" | "?" | "{") as sign:
                raise ValueError(f"{sign} follows nothing that it could repeat; write \\{sign} for the character")
            case ("^" | "$") as sign:
                raise ValueError(
                    f"{sign} is not supported, because a pattern always matches the whole text; write "
                    f"\\{sign} for the character"
                )
            case character:
                return PatternTree.from_ranges(((ord(character), ord(character)),))

    def _parse_group(self, depth: int) -> PatternTree:
        if self._accept("?") and not self._accept(":"):
            raise ValueError("(?: is the only supported group that begins with (?")
        inside = self.parse_alternatives(depth + 1)
        if not self._accept(")"):
            raise ValueError("a group is not closed")
        return inside

    def _parse_class(self) -> Ranges:
        negated, ranges = self._accept("^"), list[tuple[int, int]]()
        while not self._accept("]"):
            low = self._parse_class_member()
            if len(low) == 1 and low[0][0] == low[0][1] and self._text[self.at : self.at + 1] == "-":
                low = self._parse_range(low[0][0])
            ranges += low
        if not ranges:
            raise ValueError("a class is empty")
        return self._exclude_line_breaks(complement(tuple(ranges))) if negated else tuple(ranges)

    def _parse_range(self, low: int) -> Ranges:
        """Parse a range of a class. A hyphen at its end is a literal."""
        if self._text[self.at : self.at + 2] == "-]":
            return ((low, low),)
        self.at += 1
        high = self._parse_class_member()
        if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low:
            raise ValueError("a range in a class must go from one character to a later one")
        return ((low, high[0][0]),)

    def _parse_class_member(self) -> Ranges:
        character = self._take()
        if character == "[":
            raise ValueError("a bracket in a class must be written \\[")
        return self._parse_escape() if character == "\\" else ((ord(character), ord(character)),)

    def _parse_escape(self) -> Ranges:
        sign = self._take()
        if sign in _CLASS_ESCAPES:
            return _CLASS_ESCAPES[sign]
        if sign.lower() in _CLASS_ESCAPES:
            return self._exclude_line_breaks(complement(_CLASS_ESCAPES[sign.lower()]))
        if sign in _CONTROL_ESCAPES:
            return ((_CONTROL_ESCAPES[sign], _CONTROL_ESCAPES[sign]),)
        if sign.isalnum():
            raise ValueError(f"\\{sign} is not supported")
        return ((ord(sign), ord(sign)),)

    def _exclude_line_breaks(self, ranges: Ranges) -> Ranges:
        """Remove line breaks from the ranges unless they may match."""
        if self._breaks:
            return ranges
        return complement((*complement(ranges), *_LINE_BREAKS))

    def _take(self) -> str:
        if self.at >= len(self._text):
            raise ValueError("it is incomplete")
        self.at += 1
        return self._text[self.at - 1]

    def _accept(self, sign: str) -> bool:
        is_next = self._text.startswith(sign, self.at)
        self.at += len(sign) if is_next else 0
        return is_next

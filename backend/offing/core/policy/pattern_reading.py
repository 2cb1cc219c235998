"""The text of a regular expression as a tree: the only home of its syntax. It does not know how a tree is matched."""

from dataclasses import dataclass
from typing import Literal

Ranges = tuple[tuple[int, int], ...]
"""First and last code points, both included."""

ANY: Ranges = ((0, 0x10FFFF),)
_BREAKS: Ranges = ((0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
_NAMED = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROL = {"n": 0x0A, "r": 0x0D, "t": 0x09}

LONGEST = 500
MOST_REPEATS = 100
DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Tree:
    """A piece of an expression. `many`: any number of times, also none."""

    kind: Literal["set", "row", "either", "maybe", "many"]
    parts: "tuple[Tree, ...]" = ()
    ranges: Ranges = ()

    @classmethod
    def of(cls, ranges: Ranges) -> "Tree":
        return cls("set", ranges=ranges)


def read(pattern: str, breaks: bool) -> Tree:
    """Raises ValueError that says what cannot be used."""
    if len(pattern) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST} characters")
    reader = _Reader(pattern, breaks)
    tree = reader.either(0)
    if reader.at < len(pattern):
        raise ValueError("a closing parenthesis opens nothing")
    return tree


def opposite(ranges: Ranges) -> Ranges:
    """Every other code point."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return (*gaps, (start, 0x10FFFF)) if start <= 0x10FFFF else tuple(gaps)


class _Reader:
    """One pass from left to right."""

    def __init__(self, pattern: str, breaks: bool) -> None:
        self._text, self._breaks = pattern, breaks
        self.at = 0

    def either(self, depth: int) -> Tree:
        if depth > DEEPEST:
            raise ValueError(f"groups are nested more than {DEEPEST} deep")
        ways = [self._row(depth)]
        while self._next("|"):
            ways.append(self._row(depth))
        return ways[0] if len(ways) == 1 else Tree("either", tuple(ways))

    def _row(self, depth: int) -> Tree:
        parts: list[Tree] = []
        while self.at < len(self._text) and self._text[self.at] not in "|)":
            parts.append(self._repeated(self._atom(depth)))
        return Tree("row", tuple(parts))

    def _repeated(self, tree: Tree) -> Tree:
        if self._next("*"):
            tree = Tree("many", (tree,))
        elif self._next("+"):
            tree = Tree("row", (tree, Tree("many", (tree,))))
        elif self._next("?"):
            tree = Tree("maybe", (tree,))
        elif self._next("{"):
            tree = self._counted(tree)
        else:
            return tree
        if self.at < len(self._text) and self._text[self.at] in "*+?{":
            raise ValueError("a repetition is repeated; put the first one into a group")
        return tree

    def _counted(self, tree: Tree) -> Tree:
        inside, closed, _ = self._text[self.at :].partition("}")
        low, comma, high = inside.partition(",")
        if not (closed and low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))):
            raise ValueError("a repetition is {m}, {m,} or {m,n}; write \\{ for the character")
        self.at += len(inside) + 1
        least, most = int(low), int(high) if high else None if comma else int(low)
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise ValueError(f"a repetition counts upwards and to {MOST_REPEATS} at most")
        tail = (Tree("many", (tree,)),) if most is None else (Tree("maybe", (tree,)),) * (most - least)
        return Tree("row", (*(tree,) * least, *tail))

    def _atom(self, depth: int) -> Tree:
        match self._take():
            case "(":
                return self._group(depth)
            case "[":
                return Tree.of(self._class())
            case ".":
                return Tree.of(self._wide(ANY))
            case "\\":
                return Tree.of(self._escape())
            case ("*" | "+" | "?" | "{") as sign:
                raise ValueError(f"{sign} repeats nothing; write \\{sign} for the character")
            case ("^" | "$") as sign:
                raise ValueError(
                    f"{sign} is not needed, since the whole text is matched; write \\{sign} for the character"
                )
            case character:
                return Tree.of(((ord(character), ord(character)),))

    def _group(self, depth: int) -> Tree:
        if self._next("?") and not self._next(":"):
            raise ValueError("of groups that begin with (? there is only (?:")
        inside = self.either(depth + 1)
        if not self._next(")"):
            raise ValueError("a group is not closed")
        return inside

    def _class(self) -> Ranges:
        negated, found = self._next("^"), list[tuple[int, int]]()
        while not self._next("]"):
            low = self._member()
            if len(low) == 1 and low[0][0] == low[0][1] and self._text[self.at : self.at + 1] == "-":
                low = self._through(low[0][0])
            found += low
        if not found:
            raise ValueError("a class is empty")
        return self._wide(opposite(tuple(found))) if negated else tuple(found)

    def _through(self, low: int) -> Ranges:
        """A range of a class; a hyphen at its end is a hyphen."""
        if self._text[self.at : self.at + 2] == "-]":
            return ((low, low),)
        self.at += 1
        high = self._member()
        if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low:
            raise ValueError("a range in a class goes from one character to a later one")
        return ((low, high[0][0]),)

    def _member(self) -> Ranges:
        character = self._take()
        if character == "[":
            raise ValueError("a bracket in a class is written \\[")
        return self._escape() if character == "\\" else ((ord(character), ord(character)),)

    def _escape(self) -> Ranges:
        sign = self._take()
        if sign in _NAMED:
            return _NAMED[sign]
        if sign.lower() in _NAMED:
            return self._wide(opposite(_NAMED[sign.lower()]))
        if sign in _CONTROL:
            return ((_CONTROL[sign], _CONTROL[sign]),)
        if sign.isalnum():
            raise ValueError(f"there is no \\{sign}")
        return ((ord(sign), ord(sign)),)

    def _wide(self, ranges: Ranges) -> Ranges:
        """Without line breaks, unless they are wanted."""
        if self._breaks:
            return ranges
        return opposite((*opposite(ranges), *_BREAKS))

    def _take(self) -> str:
        if self.at >= len(self._text):
            raise ValueError("it ends too early")
        self.at += 1
        return self._text[self.at - 1]

    def _next(self, sign: str) -> bool:
        found = self._text.startswith(sign, self.at)
        self.at += len(sign) if found else 0
        return found

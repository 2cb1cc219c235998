"""Regular expressions in a subset that is matched in linear time: the only home of its grammar and of its meaning.

The whole text is matched, always. There are literals, `.`, classes such as `[a-z_]`, `\\d \\w \\s` and their opposites
over ASCII, groups, `|`, and `* + ? {m} {m,n}`; no anchors, references or looking around. Nothing is ever tried twice:
positions of the pattern are bits of a number, and each character of the text turns one number into the next. Globs are
translated here, too, so that two of either kind can be compared.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from offing.core.policy.pattern_reading import ANY, Ranges, Tree, read

MOST_POSITIONS = 256
"""Characters and classes of a pattern, with counted repetitions written out."""

MOST_PAIRS = 20_000
"""Pairs of states that a comparison looks at before it gives up."""

ANY_TEXT, ANY_CHARACTER = "any text", "any character"
"""The parts of a glob that are wildcards. Every other part is one character, which stands for itself."""

_REMEMBERED = 2_048


@dataclass(frozen=True)
class Pattern:
    """A compiled expression. Bit n of a number stands for position n."""

    first: int
    last: int
    empty: bool
    """The empty text matches."""
    follow: tuple[int, ...]
    """By position: those that may come next."""
    ranges: tuple[Ranges, ...]
    """By position: the characters that it takes."""
    _taken: dict[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)

    def matches(self, text: str) -> bool:
        if not text:
            return self.empty
        state = self.first & self._taking(text[0])
        for character in text[1:]:
            if not state:
                return False
            state = self.after(state) & self._taking(character)
        return bool(state & self.last)

    def after(self, state: int) -> int:
        """Positions that may come after any of these."""
        following = 0
        while state:
            lowest = state & -state
            following |= self.follow[lowest.bit_length() - 1]
            state ^= lowest
        return following

    def _taking(self, character: str) -> int:
        known = self._taken.get(character)
        if known is None:
            if len(self._taken) >= _REMEMBERED:
                self._taken.clear()
            known = self._taken[character] = self.taking(ord(character))
        return known

    def taking(self, code: int) -> int:
        """Positions that take this character."""
        return sum(1 << n for n, ranges in enumerate(self.ranges) if any(low <= code <= high for low, high in ranges))


@lru_cache(maxsize=512)
def compiled(pattern: str, breaks: bool) -> Pattern:
    """Raises ValueError for what is not in the subset. `breaks`: `.` and negated classes take line breaks, too."""
    return _linked(read(pattern, breaks))


_GLOB_PART = re.compile(r"\[([?*\[])\]|(.)", re.DOTALL)


@lru_cache(maxsize=512)
def glob_parts(glob: str) -> tuple[str, ...]:
    """Split a glob into wildcards and characters: `*` is any text and `?` any character, line breaks included.

    `[?]`, `[*]` and `[[]` are the characters `?`, `*` and `[`, as in Python's `glob.escape`. Every other bracket stands
    for itself: a glob has no classes.
    """
    wildcards = {"*": ANY_TEXT, "?": ANY_CHARACTER}
    found: list[tuple[str, str]] = _GLOB_PART.findall(glob)
    return tuple(escaped or wildcards.get(plain, plain) for escaped, plain in found)


@lru_cache(maxsize=512)
def of_glob(glob: str) -> Pattern:
    """Compile a glob."""
    trees = {ANY_TEXT: Tree("many", (Tree.of(ANY),)), ANY_CHARACTER: Tree.of(ANY)}
    return _linked(Tree("row", tuple(trees.get(part) or Tree.of(_one(part)) for part in glob_parts(glob))))


def within(narrow: Pattern, wide: Pattern) -> bool | None:
    """Whether every text that `narrow` matches is matched by `wide`. None: it takes too long to tell."""
    if narrow.empty and not wide.empty:
        return False
    letters = [(narrow.taking(code), wide.taking(code)) for code in _samples(narrow, wide)]
    waiting = [(narrow.first, wide.first)]
    known = set(waiting)
    while waiting:
        ours, theirs = waiting.pop()
        for takes, accepts in letters:
            state, other = ours & takes, theirs & accepts
            if state & narrow.last and not other & wide.last:
                return False
            step = (narrow.after(state), wide.after(other))
            if state and step not in known:
                known.add(step)
                waiting.append(step)
        if len(known) > MOST_PAIRS:
            return None
    return True


def _samples(*patterns: Pattern) -> list[int]:
    """A character for each part of Unicode that the patterns do not tell apart within."""
    edges = {edge for p in patterns for ranges in p.ranges for low, high in ranges for edge in (low, high + 1)}
    return [0, *sorted(edge for edge in edges if edge <= 0x10FFFF)]


def _one(character: str) -> Ranges:
    return ((ord(character), ord(character)),)


def _linked(tree: Tree) -> Pattern:
    linking = _Linking()
    part = linking.walk(tree)
    return Pattern(part.first, part.last, part.empty, tuple(linking.follow), tuple(linking.ranges))


@dataclass(frozen=True, slots=True)
class _Part:
    """Whether a piece can be empty, and the positions at which it can begin and end."""

    empty: bool = False
    first: int = 0
    last: int = 0


class _Linking:
    """Glushkov's construction."""

    def __init__(self) -> None:
        self.follow: list[int] = []
        self.ranges: list[Ranges] = []
        self._steps = 0

    def walk(self, tree: Tree) -> _Part:
        self._steps += 1
        if len(self.ranges) > MOST_POSITIONS or self._steps > 16 * MOST_POSITIONS:
            raise ValueError(f"it has more than {MOST_POSITIONS} characters with its repetitions written out")
        match tree.kind:
            case "set":
                return self._set(tree.ranges)
            case "row":
                return self._row(tree)
            case "either":
                return self._either(tree)
            case "maybe":
                part = self.walk(tree.parts[0])
            case "many":
                part = self.walk(tree.parts[0])
                self._link(part.last, part.first)
        return _Part(True, part.first, part.last)

    def _set(self, ranges: Ranges) -> _Part:
        bit = 1 << len(self.ranges)
        self.ranges.append(ranges)
        self.follow.append(0)
        return _Part(False, bit, bit)

    def _row(self, tree: Tree) -> _Part:
        whole = _Part(True)
        for part in map(self.walk, tree.parts):
            self._link(whole.last, part.first)
            first = whole.first | (part.first if whole.empty else 0)
            whole = _Part(whole.empty and part.empty, first, part.last | (whole.last if part.empty else 0))
        return whole

    def _either(self, tree: Tree) -> _Part:
        whole = _Part()
        for part in map(self.walk, tree.parts):
            whole = _Part(whole.empty or part.empty, whole.first | part.first, whole.last | part.last)
        return whole

    def _link(self, ends: int, begins: int) -> None:
        for n in range(ends.bit_length()):
            if ends >> n & 1:
                self.follow[n] |= begins

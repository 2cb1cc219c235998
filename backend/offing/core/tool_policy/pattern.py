r"""A subset of regular expressions that is matched in linear time.

The whole text must match. The subset has literals, `.`, classes such as `[a-z_]`, `\d \w \s` and
their complements over ASCII, groups, `|`, and `* + ? {m} {m,n}`. It has no anchors, references or
lookaround. There is no backtracking: positions of the pattern are bits of a number, and each
character of the text maps one number to the next. Globs are compiled to the same patterns, so that
a glob can be compared with a regular expression.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from offing.core.tool_policy.pattern_parser import ALL_CODE_POINTS, PatternTree, Ranges, parse_pattern

MAX_POSITIONS = 256
"""Maximum number of characters and classes of a pattern, with counted repetitions expanded."""

MAX_STATE_PAIRS = 20_000
"""Maximum number of pairs of states that a comparison visits before it gives up."""

ANY_TEXT, ANY_CHARACTER = "any text", "any character"
"""The wildcards among the parts of a glob. Every other part is one literal character."""

_MAX_CACHED_CHARS = 2_048


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern. Bit n of a number stands for position n."""

    first: int
    last: int
    matches_empty: bool
    """Whether the empty text matches."""
    follow: tuple[int, ...]
    """Positions that may come next, for each position."""
    ranges: tuple[Ranges, ...]
    """Character ranges that each position accepts."""
    _accepting: dict[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)

    def matches(self, text: str) -> bool:
        if not text:
            return self.matches_empty
        state = self.first & self._accepting_positions(text[0])
        for character in text[1:]:
            if not state:
                return False
            state = self.next_positions(state) & self._accepting_positions(character)
        return bool(state & self.last)

    def next_positions(self, state: int) -> int:
        """Return the positions that may follow any of these positions."""
        following = 0
        while state:
            lowest = state & -state
            following |= self.follow[lowest.bit_length() - 1]
            state ^= lowest
        return following

    def _accepting_positions(self, character: str) -> int:
        cached = self._accepting.get(character)
        if cached is None:
            if len(self._accepting) >= _MAX_CACHED_CHARS:
                self._accepting.clear()
            cached = self._accepting[character] = self.accepting_positions(ord(character))
        return cached

    def accepting_positions(self, code: int) -> int:
        """Return the positions that accept this character."""
        return sum(1 << n for n, ranges in enumerate(self.ranges) if any(low <= code <= high for low, high in ranges))


@lru_cache(maxsize=512)
def compile_pattern(pattern: str, match_line_breaks: bool) -> Pattern:
    """Compile a regular expression. Raises ValueError if it is not in the subset.

    With `match_line_breaks`, `.` and negated classes match line breaks, too.
    """
    return _build_pattern(parse_pattern(pattern, match_line_breaks))


_GLOB_PART = re.compile(r"\[([?*\[])\]|(.)", re.DOTALL)


@lru_cache(maxsize=512)
def split_glob(glob: str) -> tuple[str, ...]:
    """Split a glob into wildcards and characters.

    `*` is any text and `?` any character, including line breaks. `[?]`, `[*]` and `[[]` are the
    characters `?`, `*` and `[`, as in Python's `glob.escape`. Every other bracket is a literal: a glob
    has no classes.
    """
    wildcards = {"*": ANY_TEXT, "?": ANY_CHARACTER}
    parts: list[tuple[str, str]] = _GLOB_PART.findall(glob)
    return tuple(escaped or wildcards.get(plain, plain) for escaped, plain in parts)


@lru_cache(maxsize=512)
def compile_glob(glob: str) -> Pattern:
    """Compile a glob."""
    trees = {
        ANY_TEXT: PatternTree("many", (PatternTree.from_ranges(ALL_CODE_POINTS),)),
        ANY_CHARACTER: PatternTree.from_ranges(ALL_CODE_POINTS),
    }
    return _build_pattern(
        PatternTree(
            "row",
            tuple(trees.get(part) or PatternTree.from_ranges(_single_char_range(part)) for part in split_glob(glob)),
        )
    )


def is_subset(narrow: Pattern, wide: Pattern) -> bool | None:
    """Return whether `wide` matches every text that `narrow` matches.

    `None` means that the comparison would take too long.
    """
    if narrow.matches_empty and not wide.matches_empty:
        return False
    letters = [
        (narrow.accepting_positions(code), wide.accepting_positions(code)) for code in _sample_code_points(narrow, wide)
    ]
    waiting = [(narrow.first, wide.first)]
    visited = set(waiting)
    while waiting:
        ours, theirs = waiting.pop()
        for takes, accepts in letters:
            state, other = ours & takes, theirs & accepts
            if state & narrow.last and not other & wide.last:
                return False
            step = (narrow.next_positions(state), wide.next_positions(other))
            if state and step not in visited:
                visited.add(step)
                waiting.append(step)
        if len(visited) > MAX_STATE_PAIRS:
            return None
    return True


def _sample_code_points(*patterns: Pattern) -> list[int]:
    """Return one code point for each part of Unicode within which no pattern distinguishes characters."""
    edges = {edge for p in patterns for ranges in p.ranges for low, high in ranges for edge in (low, high + 1)}
    return [0, *sorted(edge for edge in edges if edge <= 0x10FFFF)]


def _single_char_range(character: str) -> Ranges:
    return ((ord(character), ord(character)),)


def _build_pattern(tree: PatternTree) -> Pattern:
    linking = _PatternBuilder()
    part = linking.add(tree)
    return Pattern(part.first, part.last, part.matches_empty, tuple(linking.follow), tuple(linking.ranges))


@dataclass(frozen=True, slots=True)
class _Fragment:
    """Part of a pattern: whether it matches the empty text, and its first and last positions."""

    matches_empty: bool = False
    first: int = 0
    last: int = 0


class _PatternBuilder:
    """Builder of a pattern by Glushkov's construction."""

    def __init__(self) -> None:
        self.follow: list[int] = []
        self.ranges: list[Ranges] = []
        self._steps = 0

    def add(self, tree: PatternTree) -> _Fragment:
        self._steps += 1
        if len(self.ranges) > MAX_POSITIONS or self._steps > 16 * MAX_POSITIONS:
            raise ValueError(f"it has more than {MAX_POSITIONS} characters after its repetitions are expanded")
        match tree.kind:
            case "set":
                return self._add_set(tree.ranges)
            case "row":
                return self._add_sequence(tree)
            case "either":
                return self._add_alternatives(tree)
            case "maybe":
                part = self.add(tree.parts[0])
            case "many":
                part = self.add(tree.parts[0])
                self._link(part.last, part.first)
        return _Fragment(True, part.first, part.last)

    def _add_set(self, ranges: Ranges) -> _Fragment:
        bit = 1 << len(self.ranges)
        self.ranges.append(ranges)
        self.follow.append(0)
        return _Fragment(False, bit, bit)

    def _add_sequence(self, tree: PatternTree) -> _Fragment:
        whole = _Fragment(True)
        for part in map(self.add, tree.parts):
            self._link(whole.last, part.first)
            first = whole.first | (part.first if whole.matches_empty else 0)
            whole = _Fragment(
                whole.matches_empty and part.matches_empty, first, part.last | (whole.last if part.matches_empty else 0)
            )
        return whole

    def _add_alternatives(self, tree: PatternTree) -> _Fragment:
        whole = _Fragment()
        for part in map(self.add, tree.parts):
            whole = _Fragment(
                whole.matches_empty or part.matches_empty, whole.first | part.first, whole.last | part.last
            )
        return whole

    def _link(self, last: int, first: int) -> None:
        for n in range(last.bit_length()):
            if last >> n & 1:
                self.follow[n] |= first

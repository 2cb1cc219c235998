"""Conflicts that rules find: quotes of two sources that say the same in nearly the same words, with another number.

Rather a conflict is missed than one claimed. Both quotes must name the same, one must have all words of the other, and
they must agree in all values but one, which has the same unit. Years differ between true statements ("in 2019", "in
2020"), so they count only for events that happen once. A row of a table does not say of which period or place it is,
and sources whose titles name different periods speak of different things. The functions are pure.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from offing.core.quote_matching import fold_text
from offing.core.report import Citation, Conflict
from offing.core.written_dates import read_dates
from offing.core.written_numbers import WrittenNumber, read_numbers

MIN_SHARED_WORDS = 2
"""Minimum words besides names and values that both statements have."""
MIN_SIMILARITY = 0.6
"""Minimum fraction of the words of both statements that both have."""
MIN_DIFFERENCE = 0.05
"""Minimum difference of two numbers, as a fraction of the larger one. Closer ones may be rounded."""
MAX_STATEMENT_CHARS = 400
MAX_STATEMENTS = 400
"""Maximum statements that are compared. The first ones are kept."""

_TABLE_CELL = re.compile(r"\s\|\s|^\||\|$")
_PERIOD = re.compile(
    r"\b(?:Q[1-4]|H[12]|(?:first|second|third|fourth) quarter|(?:FY ?)?(?:19|20)\d\d)\b", re.IGNORECASE
)
"""A year, a half of it or a quarter in a title."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|\n\s*\n")
_YEAR = re.compile(r"1\d{3}|20\d\d")
_BEFORE_YEAR = re.compile(r"\b(?:in|since|from|until|during|year)\s$|\($", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:-?\w+)*")
_FUNCTION_WORDS = frozenset(
    " ".join(
        (
            "the and for was were are has have had been being with from that this its their which who whose into than",
            "then also only when where while there them they not but did does of in on at by to is it as a an be or",
        )
    ).split()
)
_VAGUE = re.compile(
    r"\b(?:about|around|approximately|approx|circa|nearly|almost|roughly|some|over|under|least|most|up to|more than|"
    r"less than|between|estimated|we|our|us|my|if|might|could|would|should|e\.g|table|figure|fig|section|chapter|page|"
    r"version|step|equation|appendix|volume|issue)\b",
    re.IGNORECASE,
)
"""Words of statements that do not name one value, or that speak of what only their writer has."""
_SINGLE_EVENT = re.compile(
    r"\b(?:born|died|founded|established|built|opened|completed|launched|discovered|invented|sank|destroyed|signed)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Value:
    """A number or date of a statement, with the unit of a number."""

    unit: str
    """Empty for a date, and for a number without a unit."""
    number: Decimal | None
    date: str = ""


@dataclass(frozen=True, slots=True)
class _Statement:
    citation: Citation
    names: frozenset[str]
    words: frozenset[str]
    values: tuple[_Value, ...]
    is_single_event: bool


def find_conflicts(citations: Sequence[Citation]) -> tuple[Conflict, ...]:
    """Return the clear conflicts between the quotes of different sources, in the order of their numbers."""
    statements = [one for citation in citations for one in _read_statements(citation)][:MAX_STATEMENTS]
    pairs = (
        (first.citation.number, second.citation.number)
        for first, second in combinations(statements, 2)
        if first.citation.source_id != second.citation.source_id
        and _disagree(first, second)
        and _may_share_period(first.citation.title, second.citation.title)
    )
    return tuple(Conflict("", pair) for pair in dict.fromkeys(pairs))


def _may_share_period(title: str, other: str) -> bool:
    """Return whether two titles name the same periods, or one of them names none."""
    periods, others = ({m.casefold() for m in _PERIOD.findall(one)} for one in (title, other))
    return not periods or not others or periods == others


def _read_statements(citation: Citation) -> list[_Statement]:
    read = (_read_statement(citation, text) for text in _SENTENCE_END.split(citation.quote))
    return [statement for statement in read if statement is not None]


def _read_statement(citation: Citation, text: str) -> _Statement | None:
    """Read a statement that names something and has values. `None` means that it is none, or not a definite one."""
    folded = fold_text(text).text.strip()
    if not folded or len(folded) > MAX_STATEMENT_CHARS or _VAGUE.search(folded) or _TABLE_CELL.search(folded):
        return None
    values = _read_values(folded)
    matches = list(_WORD.finditer(_blank_values(folded)))
    names = frozenset(m.group() for m in matches if m.start() and m.group()[0].isupper())
    words = frozenset(w for m in matches if (w := m.group().casefold()) not in _FUNCTION_WORDS)
    if not names or not values:
        return None
    return _Statement(citation, names, words, values, bool(_SINGLE_EVENT.search(folded)))


def _read_values(text: str) -> tuple[_Value, ...]:
    dates = {(d.start, d.end): f"{d.year}-{d.month}-{d.day}" for d in read_dates(text)}
    values = [_Value("", None, date) for date in dates.values()]
    for number in read_numbers(text):
        if not any(start <= number.start < end for start, end in dates):
            is_year = _YEAR.fullmatch(number.text) and _BEFORE_YEAR.search(text[: number.start])
            values.append(
                _Value("", None, number.text) if is_year else _Value(_find_unit(text, number), number.readings[0])
            )
    return tuple(values)


def _blank_values(text: str) -> str:
    """Return the text with spaces in place of its dates and numbers, whose words are compared as values."""
    spans = [(one.start, one.end) for one in (*read_dates(text), *read_numbers(text))]
    return "".join(" " if any(start <= at < end for start, end in spans) else char for at, char in enumerate(text))


def _find_unit(text: str, number: WrittenNumber) -> str:
    """Return the percent sign, the currency, or the word after a number.

    Empty means that it has none, as the number of a version: such numbers are never in conflict.
    """
    if re.search(r"(?:%|per ?cent)$", number.text):
        return "%"
    before = re.search(r"[$\u20ac\u00a3](?=\s?$)|\b[A-Z]\S*(?=\s$)", text[: number.start])
    after = re.match(r"[ -]?([^\W\d_]+|[$\u20ac\u00a3])", text[number.end :])
    if before:
        return before[0] if before[0] in "$\u20ac\u00a3" else ""
    return after[1].casefold() if after and after[1].casefold() not in _FUNCTION_WORDS else ""


def _disagree(first: _Statement, second: _Statement) -> bool:
    """Return whether two statements are on the same matter and differ in exactly one value."""
    if first.names != second.names:
        return False
    shared = first.words & second.words
    if len(shared - {name.casefold() for name in first.names}) < MIN_SHARED_WORDS:
        return False
    if first.words - second.words and second.words - first.words:
        return False
    if len(shared) < MIN_SIMILARITY * len(first.words | second.words):
        return False
    left, right = Counter(first.values) - Counter(second.values), Counter(second.values) - Counter(first.values)
    if (left.total(), right.total()) != (1, 1) or len(first.values) != len(second.values):
        return False
    return _differ(next(iter(left)), next(iter(right)), first.is_single_event and second.is_single_event)


def _differ(one: _Value, other: _Value, is_single_event: bool) -> bool:
    if one.number is None or other.number is None:
        return is_single_event and one.number is other.number
    larger = max(one.number, other.number)
    return (
        bool(one.unit)
        and one.unit == other.unit
        and abs(one.number - other.number) > Decimal(str(MIN_DIFFERENCE)) * larger
    )

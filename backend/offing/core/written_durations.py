"""Durations as texts write them, so that `72 seconds` agrees with a default of `72000`. The functions are pure.

Documentation often gives a time in milliseconds and names the unit elsewhere. A whole number of at least a thousand
without a unit may therefore be read as milliseconds.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from offing.core.written_numbers import WrittenNumber, read_numbers

_UNITS: tuple[tuple[str, Decimal], ...] = (
    (r"ms\b|milliseconds?\b|msecs?\b|\u6beb\u79d2", Decimal("0.001")),
    (r"s\b|secs?\b|seconds?\b|\u79d2", Decimal(1)),
    (r"min\b|mins\b|minutes?\b|\u5206\u949f|\u5206\u9418", Decimal(60)),
    (r"h\b|hrs?\b|hours?\b|\u5c0f\u65f6|\u5c0f\u6642", Decimal(3_600)),
    (r"days?\b|\u5929", Decimal(86_400)),
)
_UNIT = re.compile("|".join(f"({pattern})" for pattern, _ in _UNITS), re.IGNORECASE)
_GAP = re.compile(r"[`*_]{0,2}[ \u00a0\u202f-]?")
"""What may stand between a number and its unit: marks of code and emphasis, and one space or hyphen."""
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3})?)e(\d{1,2})(?![\w.])", re.IGNORECASE)
_MIN_MILLISECONDS = 1_000


def read_duration(text: str, number: WrittenNumber) -> Decimal | None:
    """Return the seconds of a number that a unit of time follows. `None` means that none follows."""
    gap = _GAP.match(text, number.end)
    unit = _UNIT.match(text, gap.end() if gap else number.end)
    if unit is None:
        return None
    return number.readings[0] * _UNITS[(unit.lastindex or 1) - 1][1]


def collect_durations(texts: Iterable[str]) -> frozenset[Decimal]:
    """Return the seconds of all durations in texts, those without a unit read as milliseconds."""
    return frozenset(seconds for text in texts for seconds in _list_durations(text))


def read_scientific(text: str) -> list[Decimal]:
    """Return the numbers that a text writes with an exponent, such as `600e3`."""
    return [Decimal(digits).scaleb(int(exponent)) for digits, exponent in _SCIENTIFIC.findall(text)]


def _list_durations(text: str) -> Iterator[Decimal]:
    for number in read_numbers(text):
        seconds = read_duration(text, number)
        if seconds is not None:
            yield seconds
        elif _may_be_milliseconds(number.readings[0]):
            yield number.readings[0] / 1000
    yield from (value / 1000 for value in read_scientific(text) if _may_be_milliseconds(value))


def _may_be_milliseconds(value: Decimal) -> bool:
    return value >= _MIN_MILLISECONDS and value == value.to_integral_value()

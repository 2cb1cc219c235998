"""Scales that captions of tables give to their numbers, such as `(amounts in millions)`. The functions are pure."""

import re
from collections.abc import Iterable
from decimal import Decimal

from offing.core.written_numbers import read_numbers

_CAPTION = re.compile(
    r"(?:(?i:\bin)(?:\s+(?:US\s?)?[$\u20ac\u00a3\u00a5]|\s+[A-Z]{3})?|[$\u20ac\u00a3\u00a5])\s*"
    r"((?i:thousand|million|billion))(?i:s)\b"
)
_EXPONENTS = {"thousand": 3, "million": 6, "billion": 9}


def read_table_values(texts: Iterable[str]) -> frozenset[Decimal]:
    """Return the numbers of texts of one source, each multiplied by the scales that captions among them give.

    Percentages and numbers with a word such as `million` have no other scale. Empty means that there is no caption.
    """
    listed = tuple(texts)
    scales = {_EXPONENTS[match[1].lower()] for text in listed for match in _CAPTION.finditer(text)}
    numbers = [n for text in listed for n in read_numbers(text) if n.text[-1].isdigit()] if scales else []
    return frozenset(value.scaleb(scale) for scale in scales for n in numbers for value in n.readings)

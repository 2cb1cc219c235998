"""Numbers with several dots, such as IP addresses and versions, which are names of things and no amounts.

Two groups of digits are a decimal number, and groups of three digits are thousands. The functions are pure.
"""

import re
from collections.abc import Iterable

from offing.core.written_dates import read_dates

_DOTTED = re.compile(r"(?<![A-Za-z0-9_.])(?!\d{1,3}(?:\.\d{3})+(?!\.?\d))\d+(?:\.\d+){2,}(?:/\d+(?!\.?\d))?")


def blank_dotted(text: str) -> str:
    """Return a text of the same length with spaces in place of its numbers with several dots."""
    return _DOTTED.sub(lambda match: " " * len(match.group()), text)


def find_unsupported_dotted(sentence: str, texts: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Yield the numbers with several dots that are no dates and stand in none of the texts, with their positions."""
    dates = [(date.start, date.end) for date in read_dates(sentence)]
    joined = "\n".join(texts)
    for match in _DOTTED.finditer(sentence):
        is_date = any(start <= match.start() < end for start, end in dates)
        if not is_date and not re.search(rf"(?<![\d.]){re.escape(match.group())}(?!\.?\d)", joined):
            yield match.start(), match.group()

"""Whether the words of a cited sentence are those of its quotes. The functions are pure.

Compared are numbers, dates and names, see `core.written_numbers`, `core.written_dates` and `core.written_names`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from offing.core.written_dates import WrittenDate, read_dates
from offing.core.written_dotted import find_unsupported_dotted
from offing.core.written_durations import collect_durations, read_duration, read_scientific
from offing.core.written_names import contains_name, read_names, shares_language
from offing.core.written_numbers import NumberSupport, collect_numbers, read_numbers, replace_chinese_dates

_ENUMERATOR = re.compile(r"(?<!\S)\(?\d\)(?=\s)")
"""A number that only counts the parts of a sentence, such as `(1)`."""
_VERSION = re.compile(r"(?:(?<=[A-Za-z]/)|(?<=[A-Z]-))\d+(?:\.\d+)*")
"""The version of a protocol, such as `HTTP/2`, or the number in a name such as `COVID-19`."""


@dataclass(frozen=True, slots=True)
class ClaimSupport:
    """The texts that may support a cited sentence."""

    quotes: tuple[str, ...]
    titles: tuple[str, ...] = ()
    """Titles, headings and names of the cited documents, which count like quotes."""
    calculations: tuple[str, ...] = ()
    """Results of the run's calculations. A number of the sentence may round them."""
    question: str = ""
    """Names in the question need no quote."""
    table_values: frozenset[Decimal] = frozenset()
    """Numbers of quotes in full, where the caption of their table gives the scale, see `core.table_scale`."""


def find_unsupported_values(sentence: str, support: ClaimSupport) -> tuple[str, ...]:
    """Return the numbers, dates and names of a sentence that none of the texts states, as the sentence writes them."""
    named = (*support.quotes, *support.titles, support.question)
    unsupported = [*_list_unsupported_numbers(sentence, support), *find_unsupported_dotted(sentence, named)]
    if shares_language(sentence, support.quotes):
        unsupported += [(n.start, n.text) for n in read_names(sentence) if not contains_name(n, named)]
    return _list_texts(unsupported)


def find_unsupported_numbers(sentence: str, support: ClaimSupport) -> tuple[str, ...]:
    """Return the numbers and dates of a sentence that none of the texts states, as the sentence writes them."""
    return _list_texts(_list_unsupported_numbers(sentence, support))


def _list_unsupported_numbers(sentence: str, support: ClaimSupport) -> Iterable[tuple[int, str]]:
    texts = (*support.quotes, *support.titles)
    dates = read_dates(sentence)
    scientific = (n for text in texts for n in read_scientific(text))
    numbers = collect_numbers(texts, support.calculations, (*scientific, *support.table_values))
    known_dates = (*_read_all_dates(texts), *_read_calculated_dates(support.calculations))
    yield from _find_dates(dates, known_dates, numbers)
    yield from _find_numbers(_blank_out(sentence), dates, numbers, collect_durations(texts))


def _list_texts(values: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for _, text in sorted(values)))


def _read_all_dates(texts: Iterable[str]) -> tuple[WrittenDate, ...]:
    return read_dates(replace_chinese_dates("\n".join(texts)))


@lru_cache(maxsize=8)
def _read_calculated_dates(calculations: tuple[str, ...]) -> tuple[WrittenDate, ...]:
    """Read the dates in the results of calculations, which are the same for all sentences of a report."""
    return _read_all_dates(calculations)


def _blank_out(sentence: str) -> str:
    """Return the sentence with spaces in place of numbers that state nothing."""
    return _VERSION.sub(_to_spaces, _ENUMERATOR.sub(_to_spaces, sentence))


def _to_spaces(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _find_numbers(
    sentence: str, dates: Iterable[WrittenDate], support: NumberSupport, durations: frozenset[Decimal]
) -> Iterable[tuple[int, str]]:
    spans = [(date.start, date.end) for date in dates]
    for number in read_numbers(sentence):
        if any(start <= number.start < end for start, end in spans) or support.contains(number):
            continue
        if read_duration(sentence, number) not in durations:
            yield number.start, number.text


def _find_dates(
    stated: Iterable[WrittenDate], known: tuple[WrittenDate, ...], numbers: NumberSupport
) -> Iterable[tuple[int, str]]:
    readings: dict[tuple[int, int], list[WrittenDate]] = {}
    for date in stated:
        readings.setdefault((date.start, date.end), []).append(date)
    for (start, _), dates in readings.items():
        if not any(_is_known(date, known, numbers) for date in dates):
            yield start, dates[0].text


def _is_known(date: WrittenDate, known: Iterable[WrittenDate], numbers: NumberSupport) -> bool:
    """Return whether a date is known. The year of a known date without one may stand elsewhere."""
    return any(
        date.agrees_with(other)
        or (other.year is None and _has_year(date, numbers) and _without_year(date).agrees_with(other))
        for other in known
    )


def _without_year(date: WrittenDate) -> WrittenDate:
    return WrittenDate(date.text, date.start, date.end, None, date.month, date.day)


def _has_year(date: WrittenDate, numbers: NumberSupport) -> bool:
    return date.year is not None and any(numbers.contains(number) for number in read_numbers(str(date.year)))

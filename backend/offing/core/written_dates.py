"""Dates as texts write them: `12 May 2020`, `May 12, 2020`, `2020-05-12`, `12.05.2020`, in Chinese. Pure functions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAMES_BY_MONTH = (
    "January Jan Januar Jänner janvier enero gennaio",
    "February Feb Februar février febrero febbraio",
    "March Mar März mars marzo",
    "April Apr avril abril aprile",
    "May Mai mai mayo maggio",
    "June Jun Juni juin junio giugno",
    "July Jul Juli juillet julio luglio",
    "August Aug août agosto",
    "September Sept Sep septembre septiembre settembre",
    "October Oct Oktober octobre octubre ottobre",
    "November Nov novembre noviembre",
    "December Dec Dezember décembre diciembre dicembre",
)
_MONTHS = {
    spelling: n
    for n, names in enumerate(_NAMES_BY_MONTH, 1)
    for name in names.split()
    for spelling in (name, name.upper())
}
MONTH_NAMES = frozenset(_MONTHS)
"""Names of months in several languages."""

_MONTH = f"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\\b\\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})(?!\d)"

_FORMS = tuple(
    re.compile(r"(?<![\w.])" + form)
    for form in (
        rf"{_DAY}\.?\s+(?:of\s+|de\s+)?{_MONTH}(?:,?\s+(?:de\s+)?{_YEAR})?",
        rf"{_MONTH}\s+{_DAY}(?![\d.,]\d|\d)(?:,?\s+{_YEAR})?",
        rf"{_MONTH},?\s+(?:de\s+)?{_YEAR}",
        r"(?P<year>\d{4})[-/](?P<month>\d{2})(?:[-/](?P<day>\d{2}))?(?![-/\d])",
        r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})(?!\d)",
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})(?!\d)",
        r"(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d{4})(?!\d)",
    )
) + tuple(
    re.compile(form)
    for form in (
        "(?P<year>\\d{4})\\s?\u5e74\\s?(?P<month>\\d{1,2})\\s?\u6708(?:\\s?(?P<day>\\d{1,2})\\s?[\u65e5\u53f7])?",
        "(?P<month>\\d{1,2})\\s?\u6708\\s?(?P<day>\\d{1,2})\\s?[\u65e5\u53f7]",
    )
)


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date in a text. `None` means that the text does not say the year or the day."""

    text: str
    start: int
    end: int
    year: int | None
    month: int
    day: int | None

    def agrees_with(self, other: "WrittenDate") -> bool:
        """Return whether the other date is the same one, and at least as precise."""
        return (
            self.month == other.month
            and (self.year is None or self.year == other.year)
            and (self.day is None or self.day == other.day)
        )


def read_dates(text: str) -> tuple[WrittenDate, ...]:
    """Return the dates of a text that name a month, in order.

    `5/12/2020` is read as both possible dates. A year alone is a number, see `core.written_numbers`.
    """
    dates = [date for form in _FORMS for match in form.finditer(text) if (date := _date_from_match(match))]
    widest = [d for d in dates if not any(_is_within(d, other) for other in dates)]
    return tuple(sorted(widest, key=lambda date: (date.start, date.end)))


def _is_within(date: WrittenDate, other: WrittenDate) -> bool:
    """Return whether a date is a smaller part of another."""
    inside = other.start <= date.start and date.end <= other.end
    return inside and (other.end - other.start) > (date.end - date.start)


def _date_from_match(match: re.Match[str]) -> WrittenDate | None:
    parts: Mapping[str, str | None] = match.groupdict()
    name = parts.get("name")
    month = _MONTHS[name] if name else int(parts.get("month") or 0)
    year, day = (int(value) if (value := parts.get(part)) else None for part in ("year", "day"))
    is_valid = 1 <= month <= 12 and (day is None or 1 <= day <= 31) and (year is None or year >= 1_000)
    return WrittenDate(match.group().rstrip(), match.start(), match.end(), year, month, day) if is_valid else None

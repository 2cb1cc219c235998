"""Numbers as texts write them. The functions are pure.

A number is a sequence of digits with an optional fraction, separators of thousands, and a following word such as
`million` or a Chinese unit. Signs and units are ignored, because sentences express them in words ("fell by 5 %").
LaTeX and typographic variants are read as in quotes, see `core.quote_matching`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from offing.core.quote_matching import fold_text
from offing.core.written_dotted import blank_dotted

_NUMBER = re.compile(
    r"(?<![0-9_.])(?<![A-Za-z\u00aa-\u02ff\u0370-\u1fff])"
    r"(\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?!\d)|\d+,\d{1,2}(?!\d|,\d)|\d+(?:\.\d+)?)"
    r"(?:[ \u00a0\u202f-]?(thousand|million|billion|trillion|mn|bn|tn)\b|([kKMB])\b|"
    r"(\u767e\u4e07|\u5343\u4e07|\u5341\u4ebf|\u4e07|\u842c|\u4ebf|\u5104))?",
    re.IGNORECASE,
)
_EXPONENTS = {
    "": 0,
    "k": 3,
    "thousand": 3,
    "million": 6,
    "mn": 6,
    "m": 6,
    "billion": 9,
    "bn": 9,
    "b": 9,
    "trillion": 12,
    "tn": 12,
    "\u4e07": 4,
    "\u842c": 4,
    "\u767e\u4e07": 6,
    "\u5343\u4e07": 7,
    "\u4ebf": 8,
    "\u5104": 8,
    "\u5341\u4ebf": 9,
}
_MAX_DIGITS = 40
"""Maximum digits of a number that is compared; longer ones are identifiers."""
_UNIT_AFTER = re.compile(r"\s?(?:%|percent\b|per cent\b)")

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORD_VALUES = {
    **{word: n for n, word in enumerate(_ONES.split())},
    **{word: 10 * n for n, word in enumerate(_TENS.split(), 2)},
    **{word: n for n, word in enumerate(_ORDINALS.split(), 1)},
    "once": 1,
    "both": 2,
    "twice": 2,
    "double": 2,
    "doubled": 2,
    "dozen": 12,
}
_WORD_SCALES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_HALVES = {"half": (Decimal("0.5"), Decimal(50)), "quarter": (Decimal("0.25"), Decimal(25))}

_HAN_DIGITS = {char: n for n, char in enumerate("\u3007\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d")} | {
    "\u96f6": 0,
    "\u4e24": 2,
}
_HAN_UNITS = {"\u5341": 10, "\u767e": 100, "\u5343": 1_000}
_HAN_SCALES = {"\u4e07": 10_000, "\u4ebf": 10**8}
_HAN_NUMBER = re.compile(f"[{''.join((*_HAN_DIGITS, *_HAN_UNITS, *_HAN_SCALES))}]+")

_HAN_DATE_PART = re.compile(_HAN_NUMBER.pattern + "(?=[\u5e74\u6708\u65e5\u53f7])")


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number in a text. The exponent of a reading is its precision."""

    text: str
    """The characters of the number, with a percent sign or word that follows."""
    start: int
    end: int
    readings: tuple[Decimal, ...]
    """Possible values, the most likely first. `1.000` may be one or a thousand, `5k` five or five thousand."""


def read_numbers(text: str) -> tuple[WrittenNumber, ...]:
    """Return the numbers of a text in order."""
    folded = fold_text(text.translate(_ASCII_DIGITS))
    numbers: list[WrittenNumber] = []
    for match in _NUMBER.finditer(blank_dotted(folded.text)):
        if len(match[1]) <= _MAX_DIGITS:
            unit = _UNIT_AFTER.match(folded.text, match.end())
            start, end = folded.starts[match.start()], folded.ends[(unit or match).end() - 1]
            numbers.append(WrittenNumber(text[start:end], start, end, _list_readings(match)))
    return tuple(numbers)


def find_numbers(text: str) -> list[Decimal]:
    """Return the most likely value of each number of a text in order, without its sign."""
    return [number.readings[0] for number in read_numbers(text)]


def read_number_words(text: str) -> set[Decimal]:
    """Return the numbers that a text writes in English words or in Chinese numerals."""
    return {*_read_english(re.findall(r"[a-z]+", text.casefold())), *map(_read_han, _HAN_NUMBER.findall(text))}


@dataclass(frozen=True, slots=True)
class NumberSupport:
    """The numbers that may support those of a sentence."""

    stated: frozenset[Decimal]
    """Numbers in quotes."""
    results: tuple[Decimal, ...]
    """Numbers in results of calculations, which may be rounded."""

    def contains(self, number: WrittenNumber) -> bool:
        """Return whether a number is stated, or whether rounding a result to its precision gives it."""
        return any(value in self.stated or _is_rounded(value, self.results) for value in number.readings)


def replace_chinese_dates(text: str) -> str:
    """Return a text with digits in the Chinese dates that it writes in numerals."""
    return _HAN_DATE_PART.sub(lambda match: str(_read_han(match.group())), text)


def collect_numbers(
    quotes: Iterable[str], calculations: tuple[str, ...], more_values: Iterable[Decimal] = ()
) -> NumberSupport:
    """Collect the numbers of quotes and calculations. `more_values` are further numbers that the quotes state."""
    stated = set(more_values)
    for quote in quotes:
        stated |= {value for number in read_numbers(quote) for value in number.readings} | read_number_words(quote)
    return NumberSupport(frozenset(stated), _find_results(calculations))


@lru_cache(maxsize=8)
def _find_results(calculations: tuple[str, ...]) -> tuple[Decimal, ...]:
    """Return the numbers in the results of calculations, which are the same for all sentences of a report."""
    return tuple(value for text in calculations for value in find_numbers(text))


def _is_rounded(number: Decimal, results: Iterable[Decimal]) -> bool:
    """Return whether rounding a result to the precision of the number gives the number."""
    exponent = number.as_tuple().exponent
    half_unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0) / 2
    return any(abs(number - result) <= half_unit for result in results)


_ASCII_DIGITS = {0xFF10 + n: str(n) for n in range(10)} | {0xFF0E: ".", 0xFF05: "%"}
"""Full-width digits."""


def _list_readings(match: re.Match[str]) -> tuple[Decimal, ...]:
    digits, word, letter, han = match.groups()
    if "," in digits and not re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
        values = [Decimal(digits.replace(",", "."))]
    elif digits.count(".") > 1:
        values = [Decimal(digits.replace(".", ""))]
    else:
        values = [Decimal(digits.replace(",", ""))]
        if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", digits):
            values.append(Decimal(digits.replace(".", "")))
    scaled = [value.scaleb(_EXPONENTS[(word or letter or han or "").lower()]) for value in values]
    return (*values, *scaled) if letter else tuple(scaled)


def _read_english(words: Sequence[str]) -> Iterable[Decimal]:
    total = current = 0
    is_open = False
    for word in (*words, ""):
        if word in _HALVES:
            yield from _HALVES[word]
        if word in _WORD_VALUES:
            current, is_open = current + _WORD_VALUES[word], True
        elif word in _WORD_SCALES and is_open:
            scale = _WORD_SCALES[word]
            total, current = (total, current * scale) if scale == 100 else (total + current * scale, 0)
        elif is_open and word != "and":
            yield Decimal(total + current)
            total, current, is_open = 0, 0, False


def _read_han(numeral: str) -> Decimal:
    if all(char in _HAN_DIGITS for char in numeral):
        return Decimal("".join(str(_HAN_DIGITS[char]) for char in numeral))
    total = section = digit = 0
    for char in numeral:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif char in _HAN_UNITS:
            section, digit = section + (digit or 1) * _HAN_UNITS[char], 0
        else:
            total, section, digit = (total + section + digit) * _HAN_SCALES[char], 0, 0
    return Decimal(total + section + digit)

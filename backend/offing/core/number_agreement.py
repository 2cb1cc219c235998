"""Whether the numbers of a report are those of its quotes and calculations. The functions are pure.

A number is a sequence of digits with an optional fraction, thousands separators and a following word such as
`million`. Signs and units are ignored, because sentences express them in words ("fell by 5 %"). Numbers in
words ("three") are not compared.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from offing.core.report import Report

_NUMBER = re.compile(
    r"(?<![\w.])(\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:[ \u00a0\u202f-]?(thousand|million|billion|trillion)\b)?",
    re.IGNORECASE,
)
_EXPONENTS = {"": 0, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_MAX_DIGITS = 40
"""Maximum digits of a number that is compared; longer ones are identifiers."""


@dataclass(frozen=True, slots=True)
class NumberAgreement:
    """Numbers of the sentences with citations."""

    sentence_count: int
    """Number of sentences with at least one citation."""
    number_count: int
    agreeing_count: int
    """Numbers that stand in a quote of their sentence or in a calculation of the run."""

    @property
    def value(self) -> float:
        """The fraction of the numbers that agree.

        Without any number it is 1, and without a sentence with a citation 0.
        """
        if not self.number_count:
            return float(self.sentence_count > 0)
        return self.agreeing_count / self.number_count


def compare_numbers(report: Report, calculations: Sequence[str]) -> NumberAgreement:
    """Compare each number of a sentence with the quotes that the sentence cites, and with results of calculations.

    A result may be rounded: a number agrees with it if rounding it to the decimals of the number gives the number.
    """
    quotes = {citation.number: citation.quote for citation in report.citations}
    results = find_numbers("\n".join(calculations))
    numbers = agreeing = sentences = 0
    for sentence in (one for one in report.sentences() if one.citations):
        sentences += 1
        quoted = set(find_numbers("\n".join(quotes.get(number, "") for number in sentence.citations)))
        stated = find_numbers(sentence.text)
        numbers += len(stated)
        agreeing += sum(number in quoted or _is_rounded(number, results) for number in stated)
    return NumberAgreement(sentences, numbers, agreeing)


def find_numbers(text: str) -> list[Decimal]:
    """Return the numbers of a text in order, without their signs. The exponent of a number is its precision."""
    return [
        Decimal(digits.replace(",", "")).scaleb(_EXPONENTS[scale.lower()])
        for digits, scale in _NUMBER.findall(text)
        if len(digits) <= _MAX_DIGITS
    ]


def _is_rounded(number: Decimal, results: Iterable[Decimal]) -> bool:
    """Return whether rounding a result to the precision of the number gives the number."""
    exponent = number.as_tuple().exponent
    half_unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0) / 2
    return any(abs(number - result) <= half_unit for result in results)

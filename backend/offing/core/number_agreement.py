"""Whether the numbers of a report are those of its quotes and calculations. The functions are pure.

`core.written_numbers` says what a number is and when it agrees with a text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from offing.core.report import Report
from offing.core.written_numbers import collect_numbers, read_numbers


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
    numbers = agreeing = sentences = 0
    for sentence in (one for one in report.sentences() if one.citations):
        sentences += 1
        support = collect_numbers([quotes.get(number, "") for number in sentence.citations], tuple(calculations))
        stated = read_numbers(sentence.text)
        numbers += len(stated)
        agreeing += sum(support.contains(number) for number in stated)
    return NumberAgreement(sentences, numbers, agreeing)

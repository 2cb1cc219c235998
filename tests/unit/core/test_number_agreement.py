"""Numbers of cited sentences are those of their quotes, or of a calculation of the run."""

from decimal import Decimal
from uuid import UUID

import pytest

from offing.core.number_agreement import NumberAgreement, compare_numbers
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.tool import SourceSpan
from offing.core.written_numbers import find_numbers


def a_report(*sentences: tuple[str, tuple[int, ...]], quotes: tuple[str, ...] = ()) -> Report:
    citations = tuple(
        Citation(n, SourceSpan(UUID(int=1), 0, len(quote)), quote, UUID(int=2), "T")
        for n, quote in enumerate(quotes, 1)
    )
    body = tuple(Sentence(f"s{n}", text, numbers) for n, (text, numbers) in enumerate(sentences, 1))
    return Report("T", ReportStatus.COMPLETE, "answered", None, (Section("", body),), citations)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It fell by 5 % to 1,234.5 in 1990-1995.", ["5", "1234.5", "1990", "1995"]),
        ("3.2 million people, 4 Billion years, 7\u00a0thousand", ["3200000", "4000000000", "7000"]),
        ("H2O, v1.2.3 and COVID-19", ["19"]),
        ("the 1990s, the 3rd, 12,3456 and 10km", ["1990", "3", "12", "3456", "10"]),
        ("three men", []),
    ],
)
def test_numbers_are_read_without_separators_and_with_their_scale(text: str, numbers: list[str]) -> None:
    assert find_numbers(text) == [Decimal(n) for n in numbers]


def test_a_number_agrees_only_with_a_quote_of_its_own_sentence() -> None:
    report = a_report(
        ("It burned in 1755 and cost 3,200,000.", (1,)),
        ("It was rebuilt in 1759.", (1,)),
        ("It has 12 rooms.", ()),
        quotes=("In 1755 it burned; the cost was 3.2 million.", "In 1759 it was rebuilt."),
    )
    assert compare_numbers(report, []) == NumberAgreement(2, 3, 2)
    assert compare_numbers(report, []).value == pytest.approx(2 / 3)


def test_a_number_agrees_with_a_rounded_result_of_a_calculation_but_not_with_a_rounded_quote() -> None:
    report = a_report(("The share is 13.5 percent.", (1,)), quotes=("37 of 274",))
    assert compare_numbers(report, ["13.503649635036496"]).value == 1.0
    assert compare_numbers(report, ["13.7"]).value == 0.0
    assert compare_numbers(a_report(("About 3.2 million.", (1,)), quotes=("x",)), ["3214567"]).value == 1.0
    assert compare_numbers(a_report(("About 3.2.", (1,)), quotes=("3.214 m",)), []).value == 0.0


def test_without_a_cited_sentence_nothing_agrees_and_without_numbers_nothing_disagrees() -> None:
    assert compare_numbers(a_report(("It has 12 rooms.", ())), []).value == 0.0
    assert compare_numbers(a_report(("It burned.", (1,)), quotes=("It burned.",)), []).value == 1.0

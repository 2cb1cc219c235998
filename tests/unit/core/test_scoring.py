"""The rules of scoring: what counts as the same answer, number or place, and what does not."""

import time
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.report import Citation
from offing.core.scoring import (
    ReferenceEvidence,
    citation_recall,
    exact_match,
    find_number,
    normalize_answer,
    numeric_match,
    strip_markup,
    token_f1,
    tokenize_answer,
)
from offing.core.tool import SourceSpan

TEXT, SOURCE = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("**Paris** [1]", "Paris"),
        ("<answer>Paris</answer>", "Paris"),
        ("Paris [E3, E4], France [2; 5].", "Paris, France."),
        ("# Paris\n\n- `x_y`\n> 5 km", "Paris x_y 5 km"),
        ("[Paris](https://example.org/a) ![map](m.png)", "Paris map"),
        ("2*3*4 and snake_case_name", "2*3*4 and snake_case_name"),
        ("5 < 6 and 7 > 2", "5 < 6 and 7 > 2"),
        ("the set [a, b] and x[0] stay", "the set [a, b] and x stay"),
        ("", ""),
    ],
)
def test_markup_tags_and_citation_marks_are_no_part_of_an_answer(written: str, read: str) -> None:
    assert strip_markup(written) == read


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Hague", "hague"),
        ("1,234,567.50", "1234567.50"),
        ("Don\u2019t", "dont"),
        ("well-known", "Well known!"),
        ("\ufb01re", "FIRE"),
        ("\u22125 \u00b0C", "-5 \u00b0c"),
        ("  two\n words ", "two words"),
        ("A", "a"),
    ],
)
def test_case_punctuation_articles_and_spelling_of_numbers_do_not_matter(one: str, other: str) -> None:
    assert normalize_answer(one) == normalize_answer(other)
    assert exact_match(one, [other]) == 1.0


@pytest.mark.parametrize(
    ("one", "other"), [("5", "-5"), ("3.5", "35"), ("12", "1.2"), ("1,5", "15"), ("cafe", "caf\u00e9")]
)
def test_signs_decimal_points_and_letters_do_matter(one: str, other: str) -> None:
    assert exact_match(one, [other]) == 0.0


@pytest.mark.parametrize("piece", ["*a ", "[", "<a", "`", "\n# ", "   ", "**a* "])
def test_an_answer_without_end_is_read_at_once(piece: str) -> None:
    began = time.thread_time()
    strip_markup(piece * 200_000)
    assert time.thread_time() - began < 1.0


def test_any_accepted_answer_will_do_and_an_empty_one_never_does() -> None:
    assert exact_match("NYC", ["New York", "nyc"]) == 1.0
    assert exact_match("", ["", "!"]) == 0.0
    assert token_f1("", ["x"]) == 0.0


@pytest.mark.parametrize("message", ["Not answerable.", "unanswerable", "It cannot be answered"])
def test_without_a_reference_answer_saying_so_is_right(message: str) -> None:
    assert exact_match(message.removeprefix("It "), []) == 1.0
    assert exact_match("Paris", []) == 0.0
    assert numeric_match(message.removeprefix("It "), [], absolute=Decimal(0), relative=Decimal(0)) == 1.0


def test_overlap_counts_each_word_as_often_as_both_have_it() -> None:
    assert token_f1("the red red fox", ["a red fox"]) == pytest.approx(2 * 2 / (3 + 2))
    assert token_f1("fox", ["dog", "red fox"]) == pytest.approx(2 / 3)
    assert token_f1("cat", ["dog"]) == 0.0


@given(st.text(max_size=40), st.text(max_size=40))
def test_overlap_is_a_share_the_same_both_ways_and_whole_for_the_same_words(one: str, other: str) -> None:
    score = token_f1(one, [other])
    assert 0.0 <= score <= 1.0
    assert score == token_f1(other, [one])
    if tokenize_answer(one):
        assert token_f1(one, [one]) == 1.0
        assert exact_match(one, [one]) == 1.0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("about 1,200 km", "1200"),
        ("It is \u22125.5.", "-5.5"),
        ("42 (that is, 42.0)", "42"),
        ("6e3", "6000"),
        ("between 1 and 2", None),
        ("none", None),
        ("version B12", None),
        ("4K", None),
    ],
)
def test_a_text_states_a_number_when_it_states_exactly_one(text: str, number: str | None) -> None:
    assert find_number(text) == (None if number is None else Decimal(number))


def test_the_wider_tolerance_counts() -> None:
    near = {"absolute": Decimal("0.5"), "relative": Decimal("0.01")}
    assert numeric_match("10.5", ["10"], **near) == 1.0
    assert numeric_match("10.6", ["10"], **near) == 0.0
    assert numeric_match("1010", ["1000"], **near) == 1.0
    assert numeric_match("1011", ["1000"], **near) == 0.0
    assert numeric_match("10 or 20", ["10"], **near) == 0.0
    assert numeric_match("10", ["ten"], **near) is None


def cited(quote: str, start: int = 0, title: str = "Pool") -> Citation:
    return Citation(1, SourceSpan(TEXT, start, start + len(quote)), quote, SOURCE, title)


def test_evidence_counts_as_cited_by_words_by_span_or_by_source() -> None:
    quote = cited("Rivers carry salt into the sea.", 100)
    assert citation_recall([quote], [ReferenceEvidence("rivers  carry salt")]) == 0.0
    assert citation_recall([quote], [ReferenceEvidence("Rivers  carry\nsalt")]) == 1.0
    assert citation_recall([quote], [ReferenceEvidence("x. Rivers carry salt into the sea. y")]) == 1.0
    assert citation_recall([quote], [ReferenceEvidence(source="pool")]) == 1.0
    assert citation_recall([quote], [ReferenceEvidence(source=str(SOURCE), start=120, end=140)]) == 1.0
    assert citation_recall([quote], [ReferenceEvidence(source="Pool", start=131, end=140)]) == 0.0
    assert citation_recall([quote], [ReferenceEvidence("Rivers", source="Another")]) == 0.0
    assert citation_recall([quote], [ReferenceEvidence("Rivers carry"), ReferenceEvidence("The sun")]) == 0.5
    assert citation_recall([], [ReferenceEvidence("Rivers")]) == 0.0
    assert citation_recall([quote], []) == 1.0

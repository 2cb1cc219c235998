"""What a reader sends is what its pool receives, and the index is the same however it was computed."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.library.document_index import (
    BM25_B,
    BM25_K1,
    HEADING_WEIGHT,
    PAIR_LENGTH,
    TITLE_WEIGHT,
    TYPICAL_PASSAGE_TERMS,
    build_index,
)
from offing.library.passages import Passage, count_words
from offing.library.reader_process import pack_answer, read_document, unpack_answer
from offing.library.terms import MAX_TERM_CHARS, extract_terms, is_unspaced

TEXTS = st.text(alphabet=st.sampled_from("abcAB .\n#`-_'1\u00e9\u4e2d\u6587\u3042\u2019"), max_size=400)
ASCII_TEXTS = st.text(alphabet=st.sampled_from("abThe .\n-_'19"), max_size=200)


def test_a_document_is_received_as_it_was_read() -> None:
    answer = read_document("tides.md", "# Tides\n\nThe tide of the \u6d77 turns. The mole stays.\n".encode())
    received = unpack_answer(pack_answer(answer))
    assert {**received, "passages": [tuple(passage) for passage in received["passages"]]} == {
        **answer,
        "postings": (list(answer["postings"].terms), *answer["postings"][1:]),
    }


def test_a_rejection_is_received_with_its_reason() -> None:
    received = unpack_answer(pack_answer(read_document("a.zip", b"PK\x03\x04" + b"0" * 50)))
    assert "archive" in received["problem"]


def weigh_terms(text: str, passage: Passage, name_terms: set[str]) -> dict[str, float]:
    """Return the weights of a passage by the formula of the design note, term by term."""
    counts = Counter[str]()
    text_terms = list(extract_terms(text[passage.start : passage.end]))
    heading_terms = Counter(extract_terms("\n".join(passage.headings)))
    counts.update(text_terms)
    length = sum(PAIR_LENGTH if is_unspaced(term) else 1.0 for term in text_terms)
    damping = BM25_K1 * (1 - BM25_B + BM25_B * length / TYPICAL_PASSAGE_TERMS)
    weights: dict[str, float] = {}
    for term in {*counts, *heading_terms, *name_terms}:
        number = counts[term] + HEADING_WEIGHT * heading_terms[term] + TITLE_WEIGHT * (term in name_terms)
        weights[term] = number / (number + damping)
    return weights


@given(TEXTS)
def test_the_weights_are_those_of_the_formula(text: str) -> None:
    index = build_index(text, title="The ab title", name="c1.md")
    weights: list[dict[str, float]] = [{} for _ in index.passages]
    for posting in index.postings:
        for ordinal, weight in zip(posting.passages, posting.weights, strict=True):
            weights[ordinal][posting.term] = weight
    name_terms = set(extract_terms("The ab title\nc1.md"))
    for passage, passage_weights in zip(index.passages, weights, strict=True):
        assert passage_weights == pytest.approx(weigh_terms(text, passage, name_terms), abs=1e-4)


@given(ASCII_TEXTS)
def test_a_text_has_the_same_terms_next_to_other_letters(text: str) -> None:
    assert list(extract_terms(f"{text} \u4e2d")) == [*extract_terms(text), "\u4e2d"]


@given(ASCII_TEXTS)
def test_a_text_has_as_many_words_as_runs_of_letters_and_digits(text: str) -> None:
    assert count_words(text, 0, len(text)) == max(len(re.findall(r"\w+", text)), len(text) // 12)


@pytest.mark.parametrize("word", ["x", "B", "the", "THE", "x" * (MAX_TERM_CHARS + 1)])
def test_a_word_without_a_term_has_none_in_any_form(word: str) -> None:
    assert list(extract_terms(f"{word} {word.title()} {word.upper()}")) == []


def test_a_word_has_one_term_in_any_case() -> None:
    assert set(extract_terms("pools Pools POOLS")) == {"pool"}

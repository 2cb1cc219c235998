"""The words of small planners."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.errors import InvalidInput
from offing.core.model import Unusable
from offing.world.compact import (
    MOST_ENTITIES,
    VOCABULARY,
    Call,
    Names,
    call_words,
    names_of,
    question_words,
    read_call,
    values_words,
)
from offing.world.semantics import RELATIONS, TOOLS
from offing.world.solving import Known

A, B, C = "Ada Bo", "Cle Do", "Eva Fo"
ENTITIES = [f"Ada B{'abcdefghij'[i]}" for i in range(10)]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (f"Where does the teacher of {A} live?", "ask e0 r0 r1"),
        (f"How many books did {A}'s teacher write?", "count e0 r0 r9"),
        (f"Who taught the older of {A} and {B}'s master?", "ask least r10 ( e0 | e1 r3 ) r0"),
        (f"By how many metres do {A} and {B} differ in elevation?", "difference r11 ( e0 | e1 )"),
        (f"Add the elevations of {A} and {B}.", "sum r11 ( e0 | e1 )"),
    ],
)
def test_a_question_is_told_in_the_order_of_its_look_ups(question: str, words: str) -> None:
    assert question_words(question) == words
    assert set(words.split()) <= set(VOCABULARY)


def test_no_word_is_in_the_vocabulary_twice() -> None:
    assert len(set(VOCABULARY)) == len(VOCABULARY)
    assert not [word for word in VOCABULARY if not word or " " in word]


@pytest.mark.parametrize("tag", ["switch", "subgoal", "action", "report", "answer", "prune", "write", "think"])
def test_tags_of_all_flows_are_words(tag: str) -> None:
    assert {tag, f"<{tag}>", f"</{tag}>", "KEEP", "SWITCH"} <= set(VOCABULARY)


def test_calls_are_read_back_as_they_are_written() -> None:
    names = Names((A, B))
    for tool in TOOLS:
        for relation in RELATIONS:
            call = read_call(call_words(tool, relation, B, names), names)
            assert call == Call(tool, relation, B)
            assert isinstance(call, Call)
            assert call.args == {"relation": relation, "entity": B}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "t0",
        "t0 r0 e9",
        "t0 r0 e0 e0",
        "t9 r0 e0",
        "t0 r99 e0",
        "r0 t0 e0",
        "t00 r0 e0",
        "t0 r0 e-1",
        "t² r0 e0",
        "t r e",
    ],
)
def test_a_call_that_cannot_be_meant_is_unusable_with_what_to_write(text: str) -> None:
    found = read_call(text, Names((A, B)))
    assert isinstance(found, Unusable)
    assert "t0 r0 e0" in found.problem


@given(st.lists(st.lists(st.sampled_from(ENTITIES))))
def test_names_only_ever_grow(rounds: list[list[str]]) -> None:
    names = Names()
    for entities in rounds:
        grown = names.adding(entities)
        assert grown.entities[: len(names.entities)] == names.entities
        assert all(grown.word(e) == names.word(e) for e in names.entities)
        names = grown


def test_names_are_the_questions_and_then_those_that_were_learned_without_numbers() -> None:
    known = [Known("teacher", A, (B,), closed=True), Known("born", B, ("700",), closed=True)]
    assert names_of(f"Who is the older of {C} and {A}?", known).entities == (C, A, B)


def test_values_are_words_digits_or_that_there_are_none() -> None:
    names = Names((A, B))
    assert values_words([B, A], names) == "e1 e0"
    assert values_words(["704"], names) == "7 0 4"
    assert values_words([], names) == "none"
    assert values_words([], names, closed=True) == "closed"


def test_what_has_no_word_is_refused() -> None:
    many = Names(tuple(f"e{i}" for i in range(MOST_ENTITIES + 1)))
    with pytest.raises(InvalidInput, match="entity: "):
        many.word(f"e{MOST_ENTITIES}")
    with pytest.raises(InvalidInput, match="entity: "):
        values_words([C], Names((A,)))
    with pytest.raises(InvalidInput, match="tool: "):
        call_words("search", "home", A, Names((A,)))
    with pytest.raises(InvalidInput, match="relation: "):
        call_words(TOOLS[0], "height", A, Names((A,)))
    with pytest.raises(InvalidInput, match="question: "):
        question_words("What now?")

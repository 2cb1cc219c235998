"""The words of small planners."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.errors import InvalidInput
from offing.core.model import InvalidOutput
from offing_world.compact_notation import (
    MAX_ENTITIES,
    VOCABULARY,
    CompactCall,
    EntityIndex,
    build_entity_index,
    parse_compact_call,
    render_compact_call,
    render_compact_question,
    render_compact_values,
)
from offing_world.question_solver import KnownFact
from offing_world.semantics import RELATIONS, TOOLS

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
    assert render_compact_question(question) == words
    assert set(words.split()) <= set(VOCABULARY)


def test_no_word_is_in_the_vocabulary_twice() -> None:
    assert len(set(VOCABULARY)) == len(VOCABULARY)
    assert not [word for word in VOCABULARY if not word or " " in word]


@pytest.mark.parametrize("tag", ["switch", "subgoal", "action", "report", "answer", "prune", "write", "think"])
def test_tags_of_all_graphs_are_words(tag: str) -> None:
    assert {tag, f"<{tag}>", f"</{tag}>", "KEEP", "SWITCH"} <= set(VOCABULARY)


def test_calls_are_read_back_as_they_are_written() -> None:
    names = EntityIndex((A, B))
    for tool in TOOLS:
        for relation in RELATIONS:
            call = parse_compact_call(render_compact_call(tool, relation, B, names), names)
            assert call == CompactCall(tool, relation, B)
            assert isinstance(call, CompactCall)
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
    compact_call = parse_compact_call(text, EntityIndex((A, B)))
    assert isinstance(compact_call, InvalidOutput)
    assert "t0 r0 e0" in compact_call.problem


@given(st.lists(st.lists(st.sampled_from(ENTITIES))))
def test_names_only_ever_grow(rounds: list[list[str]]) -> None:
    names = EntityIndex()
    for entities in rounds:
        grown = names.with_entities(entities)
        assert grown.entities[: len(names.entities)] == names.entities
        assert all(grown.entity_word(e) == names.entity_word(e) for e in names.entities)
        names = grown


def test_names_are_the_questions_and_then_the_distilled_ones_without_numbers() -> None:
    known = [KnownFact("teacher", A, (B,), closed=True), KnownFact("born", B, ("700",), closed=True)]
    assert build_entity_index(f"Who is the older of {C} and {A}?", known).entities == (C, A, B)


def test_values_are_words_digits_or_that_there_are_none() -> None:
    names = EntityIndex((A, B))
    assert render_compact_values([B, A], names) == "e1 e0"
    assert render_compact_values(["704"], names) == "7 0 4"
    assert render_compact_values([], names) == "none"
    assert render_compact_values([], names, closed=True) == "closed"


def test_what_has_no_word_is_rejected() -> None:
    many = EntityIndex(tuple(f"e{i}" for i in range(MAX_ENTITIES + 1)))
    with pytest.raises(InvalidInput, match="entity: "):
        many.entity_word(f"e{MAX_ENTITIES}")
    with pytest.raises(InvalidInput, match="entity: "):
        render_compact_values([C], EntityIndex((A,)))
    with pytest.raises(InvalidInput, match="tool: "):
        render_compact_call("search", "home", A, EntityIndex((A,)))
    with pytest.raises(InvalidInput, match="relation: "):
        render_compact_call(TOOLS[0], "height", A, EntityIndex((A,)))
    with pytest.raises(InvalidInput, match="question: "):
        render_compact_question("What now?")

"""What is still needed, and what it comes to: the reasoning that rules use in a world."""

from collections.abc import Sequence

import pytest

from offing.core.errors import InvalidInput
from offing_world.question_solver import (
    NOT_ANSWERABLE,
    KnownFact,
    LookUp,
    extract_entities,
    fact_from_call,
    find_answer,
    find_missing_look_ups,
    list_tools_of_relation,
)

A, B, C, G = "Ada Bo", "Cle Do", "Eva Fo", "Gil Ho"


def known(*facts: tuple[str, str, Sequence[str]]) -> list[KnownFact]:
    return [KnownFact(relation, entity, tuple(values), closed=True) for relation, entity, values in facts]


def test_a_chain_needs_one_look_up_after_the_other() -> None:
    question = f"Where does the teacher of {A} live?"
    assert find_missing_look_ups(question, ()) == (LookUp("teacher", A),)
    assert find_missing_look_ups(question, known(("teacher", A, [B]))) == (LookUp("home", B),)
    assert find_answer(question, known(("teacher", A, [B]))) is None
    whole = known(("teacher", A, [B]), ("home", B, [C]))
    assert find_missing_look_ups(question, whole) == ()
    assert find_answer(question, whole) == C


def test_look_ups_that_do_not_wait_for_one_another_are_all_named() -> None:
    question = f"By how many years do {A} and the teacher of {B} differ in age?"
    assert find_missing_look_ups(question, ()) == (LookUp("born", A), LookUp("teacher", B))


def test_the_one_who_was_born_first_is_the_one_with_the_lowest_year() -> None:
    facts = known(("born", A, ["700"]), ("born", B, ["650"]), ("home", B, [C]))
    assert find_answer(f"Who is the older of {A} and {B}?", facts) == B
    assert find_answer(f"Who is the younger of {A} and {B}?", facts) == A
    assert find_answer(f"Where does the older of {A} and {B} live?", facts) == C


def test_among_members_all_are_looked_up() -> None:
    question = f"Name the eldest among the members of {G}."
    facts = known(("members", G, [A, B]))
    assert find_missing_look_ups(question, facts) == (LookUp("born", A), LookUp("born", B))
    assert find_answer(question, [*facts, *known(("born", A, ["9"]), ("born", B, ["10"]))]) == A


def test_counts_sums_and_differences_are_numbers() -> None:
    assert find_answer(f"How many members does {G} have?", known(("members", G, [A, B, C]))) == "3"
    facts = known(("elevation", A, ["100"]), ("elevation", B, ["40"]))
    assert find_answer(f"By how many metres do {A} and {B} differ in elevation?", facts) == "60"
    assert find_answer(f"Add the elevations of {A} and {B}.", facts) == "140"
    facts = known(("works", A, [B]), ("works", C, []))
    assert find_answer(f"How many books did {A} and {C} write together?", facts) == "1"


def test_a_list_that_is_empty_counts_as_none_but_leads_nowhere() -> None:
    facts = known(("members", G, []))
    assert find_answer(f"How many members does {G} have?", facts) == "0"
    assert find_answer(f"Name the eldest among the members of {G}.", facts) == NOT_ANSWERABLE


def test_what_is_not_recorded_ends_a_question() -> None:
    facts = known(("teacher", A, []))
    for question in (f"Where does {A}'s teacher live?", f"How many books did {A}'s teacher write?"):
        assert find_missing_look_ups(question, facts) == ()
        assert find_answer(question, facts) == NOT_ANSWERABLE
    assert find_answer(f"By how many years do {A}'s teacher and {B} differ in age?", facts) is None


def test_a_tool_that_cannot_say_leaves_the_need() -> None:
    question = f"Who taught {A}?"
    assert find_missing_look_ups(question, [KnownFact("teacher", A, (), closed=False)]) == (LookUp("teacher", A),)
    assert find_answer(question, [KnownFact("teacher", A, (), closed=False)]) is None


def test_a_later_answer_corrects_an_earlier_one_unless_it_cannot_say() -> None:
    facts = [*known(("teacher", A, [B]), ("teacher", A, [C])), KnownFact("teacher", A, (), closed=False)]
    assert find_answer(f"Who taught {A}?", facts) == C


def test_a_value_that_is_no_number_where_one_is_needed_is_no_answer() -> None:
    facts = known(("born", A, ["long ago"]), ("born", B, ["650"]))
    assert find_answer(f"Who is the older of {A} and {B}?", facts) == NOT_ANSWERABLE


def test_numbers_that_are_equal_or_an_entity_twice_do_no_harm() -> None:
    facts = known(("born", A, ["650"]), ("born", B, ["650"]))
    assert find_answer(f"Who is the older of {A} and {B}?", facts) in (A, B)
    assert find_answer(f"By how many years do {A} and {B} differ in age?", facts) == "0"
    assert find_answer(f"By how many years do {A} and {A} differ in age?", facts) == "0"
    assert find_answer(f"Who is the older of {A} and {A}?", facts) == A


def test_a_question_of_no_world_is_rejected() -> None:
    for ask in (find_missing_look_ups, find_answer):
        with pytest.raises(InvalidInput, match="question: "):
            ask("What is the capital of France?", ())


def test_a_finished_call_is_known_by_what_the_tool_said() -> None:
    args = {"relation": "home", "entity": "ADA bo"}
    content = {"relation": "home", "entity": A, "values": [B], "closed": True}
    assert fact_from_call(args, content) == KnownFact("home", A, (B,), closed=True)
    assert fact_from_call(args, {}) is None
    assert fact_from_call({}, {"passages": []}) is None


def test_entities_are_named_once_in_order_also_in_other_text() -> None:
    assert extract_entities(f"Who is the older of {B}, {A} and {B}?") == (B, A)
    assert extract_entities(f"Who is the oldest of {B}, {A} and {B}?") == (B, A)
    assert extract_entities("nothing") == ()


def test_only_relations_have_tools() -> None:
    assert list_tools_of_relation("teacher")
    assert list_tools_of_relation("height") == ()

"""Worlds with options: an oracle answers within its budget, and random, greedy and counted choices do not."""

from functools import cache
from statistics import fmean

import pytest

from offing.core.errors import InvalidInput
from offing_world.documents import iter_documents
from offing_world.fact_lookup import look_up
from offing_world.facts import world_from_name
from offing_world.question_solver import KnownFact, find_answer
from offing_world.semantics import RELATION_TABLE, RELATIONS, TOOLS
from offing_world.spec import Split, WorldOption, WorldSpec, parse_world_name
from offing_world.strategies import (
    Strategy,
    build_oracle,
    build_random,
    choose_greedily,
    count_worst_calls,
    simulate,
)
from offing_world.tasks import WorldTask, generate_tasks

BASE = "heldout-1@500"
OPTIONS = ("+key", "+referral", "+noise", "+outage", "+key+referral", "+key+referral+outage")


@cache
def tasks_of(options: str) -> tuple[WorldTask, ...]:
    return tuple(generate_tasks(BASE + options, count=120, hops=(2, 6)))


def share(options: str, strategy: Strategy, spare: int = 0) -> float:
    """Share of right answers with the oracle's number of turns and some to spare."""
    world, results = world_from_name(BASE + options), list[bool]()
    for n, task in enumerate(tasks_of(options)):
        turns = count_worst_calls(world.spec.options, task.hops) + spare
        results.append(simulate(world, task.question, strategy, turns, n).is_right(task.answers))
    return fmean(results)


@pytest.mark.parametrize("options", ["", "+key+noise", *OPTIONS])
def test_the_oracle_answers_within_its_budget(options: str) -> None:
    strategy = build_oracle(parse_world_name(BASE + options).options)
    assert share(options, strategy) >= (0.97 if "outage" in options else 1.0)


@pytest.mark.parametrize("options", OPTIONS)
def test_random_calls_and_the_first_answer_do_not_suffice(options: str) -> None:
    assert share(options, build_random(parse_world_name(BASE + options).options), spare=2) < 0.35
    assert share(options, choose_greedily, spare=2) < 0.35


@pytest.mark.parametrize("options", ["+key", "+referral", "+noise"])
def test_no_tool_answers_a_relation_for_most_entities(options: str) -> None:
    """The best possible table from relations to tools is right about few look-ups, so counting cannot solve it."""
    world = world_from_name(BASE + options)
    for relation in RELATION_TABLE:
        known = [e for e, kind in world.kinds.items() if kind is relation.subject]
        for tool in TOOLS:
            results = [look_up(world, tool, relation.name, entity) for entity in known]
            facts = zip(known, results, strict=True)
            alone = fmean(
                r.closed and r.values == world.find_values(relation.name, e) and not r.witness
                for e, r in facts
                if world.find_values(relation.name, e)
            )
            assert alone < 0.65, (relation.name, tool)


def test_options_change_neither_facts_nor_documents_nor_questions() -> None:
    plain, hard = world_from_name("train-4@50"), world_from_name("train-4@50+key+noise+outage")
    assert (plain.facts, plain.kinds) == (hard.facts, hard.kinds)
    assert [d.text for d in iter_documents("train-4@50")] == [d.text for d in iter_documents("train-4@50+referral")]
    plain_tasks, hard_tasks = (list(generate_tasks(n, count=30)) for n in ("train-4@50", "train-4@50+key"))
    assert [t.question for t in plain_tasks] == [t.question for t in hard_tasks]
    assert {t.scope["environment"] for t in hard_tasks} == {"train-4@50+key"}


def test_names_have_options_in_one_order() -> None:
    spec = WorldSpec(Split.TRAIN, 12, 500, (WorldOption.KEY, WorldOption.OUTAGE))
    assert parse_world_name("train-12@small+outage+key") == spec
    assert str(spec) == "train-12@500+key+outage"
    assert spec.base == "train-12@500"
    for wrong in ("train-1@500+", "train-1@500+easy", "train-1@500+key+key", "train-1@500+noise+referral"):
        with pytest.raises(InvalidInput):
            parse_world_name(wrong)


def test_without_options_a_world_has_no_shelves_and_no_witnesses() -> None:
    world = world_from_name("train-3@50")
    entity = next(iter(world.kinds))
    assert not any(look_up(world, tool, r, entity).witness for tool in TOOLS for r in RELATIONS)


def test_a_value_of_a_witness_counts_once_another_agrees() -> None:
    question = "Who taught Velan Torsk?"

    def a_statement(value: str, witness: str) -> KnownFact:
        return KnownFact("teacher", "Velan Torsk", (value,), False, witness)

    first, other = a_statement("Ada Bo", "amber"), a_statement("Cora Du", "birch")
    assert find_answer(question, [first]) is None
    assert find_answer(question, [first, a_statement("Ada Bo", "amber")]) is None
    assert find_answer(question, [first, other]) is None
    assert find_answer(question, [first, other, a_statement("Ada Bo", "cobalt")]) == "Ada Bo"


@pytest.mark.parametrize(("kind", "hops"), [("chain", 8), ("chain", 64), ("chain", 120), ("census", 6), ("census", 11)])
def test_long_questions_take_exactly_their_look_ups(kind: str, hops: int) -> None:
    world = world_from_name("heldout-1@1000")
    for n, task in enumerate(generate_tasks("heldout-1@1000", count=3, hops=(hops, hops), kinds=[kind])):
        assert (task.kind, task.hops, task.difficulty) == (kind, hops, 1.0)
        assert simulate(world, task.question, build_oracle(()), hops, n).is_right(task.answers)
        assert not simulate(world, task.question, build_oracle(()), hops - 1, n).is_right(task.answers)
        assert not simulate(world, task.question, build_random(()), 2 * hops, n).is_right(task.answers)


def test_long_kinds_are_drawn_only_if_named() -> None:
    assert not {t.kind for t in generate_tasks("train-3@500", count=400, hops=(3, 6))} & {"chain", "census"}
    with pytest.raises(InvalidInput, match="Kinds with more are census, chain"):
        next(generate_tasks("train-3@500", hops=(7, 7)))

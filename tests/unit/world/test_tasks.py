"""Tasks: the mix, the hops, the answers and where they are written."""

import json
from collections import Counter

import pytest

from offing.core.errors import InvalidInput
from offing_world.documents import build_document
from offing_world.facts import world_from_name
from offing_world.question_generator import LONG_KINDS, WorldQuestionKind
from offing_world.question_grammar import parse_question
from offing_world.tasks import generate_tasks
from tests.unit.world.planners import oracle, play, right

SPEC = "heldout-6@500"


def test_tasks_are_the_same_each_time_and_others_with_another_seed() -> None:
    assert list(generate_tasks(SPEC, count=30)) == list(generate_tasks(SPEC, count=30))
    first, other = ({t.question for t in generate_tasks(SPEC, count=30, seed=seed)} for seed in (0, 1))
    assert len(first & other) < 5


def test_no_question_is_asked_twice_in_other_words() -> None:
    requests = [parse_question(t.question) for t in generate_tasks(SPEC, count=300)]
    assert None not in requests
    assert len(set(requests)) == 300


def test_all_kinds_occur_with_one_to_six_hops() -> None:
    results = Counter((t.kind, t.hops) for t in generate_tasks(SPEC, count=600, hops=(1, 6)))
    for kind in set(WorldQuestionKind) - LONG_KINDS:
        fewest = 2 if kind in (WorldQuestionKind.COMPARISON, WorldQuestionKind.ARITHMETIC) else 1
        assert {hops for k, hops in results if k == kind} == set(range(fewest, 7)), kind


def test_an_oracle_needs_exactly_the_hops_that_a_task_states() -> None:
    for task in generate_tasks(SPEC, count=200, hops=(1, 6)):
        played = play(world_from_name(SPEC), task.question, oracle, 10)
        assert len(played.calls) == task.hops
        assert right(task, played.answer)
        assert play(world_from_name(SPEC), task.question, oracle, task.hops - 1).answer is None


def test_evidence_is_found_at_its_span_and_contains_the_answer_of_its_look_up() -> None:
    world = world_from_name(SPEC)
    by_path = {d.path: d for d in (build_document(world, n) for n in range(world.spec.documents))}
    for task in generate_tasks(SPEC, count=100, hops=(1, 6)):
        assert len(task.evidence) == task.hops
        for result in task.evidence:
            assert by_path[result.document].text[result.start : result.end] == result.quote
            assert all(value in result.quote for value in world.find_values(result.relation, result.entity))


def test_the_answer_of_a_question_that_cannot_be_answered_is_an_empty_list() -> None:
    assert all(t.answers == () for t in generate_tasks(SPEC, count=20, kinds=["unanswerable"]))
    assert all(len(t.answers) == 1 for t in generate_tasks(SPEC, count=20, kinds=["lookup", "counting"]))


def test_a_task_says_where_it_is_set_and_how_hard_it_is_in_json() -> None:
    task = next(generate_tasks("heldout-6", count=1, hops=(3, 3), kinds=["lookup"]))
    line = json.loads(json.dumps(task.as_json()))
    assert line["scope"] == {"environment": "heldout-6@500"}
    assert (line["difficulty"], line["split"], line["dataset"]) == (0.5, "heldout", "world:heldout-6@500")
    assert line["tags"] == ["lookup", "hops:3", "heldout"]
    assert line["evidence"][0].keys() == {"document", "start", "end", "quote", "relation", "entity"}


def test_a_world_that_has_fewer_questions_says_how_many() -> None:
    with pytest.raises(InvalidInput, match="count: train-1@50 has only"):
        list(generate_tasks("train-1@50", count=2_000, hops=(1, 1)))
    assert len(list(generate_tasks("train-1@50", hops=(1, 1)))) > 80


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"count": -1}, "count"),
        ({"hops": (0, 2)}, "hops"),
        ({"hops": (3, 2)}, "hops"),
        ({"hops": (1, 7)}, "hops"),
        ({"hops": (1, 1), "kinds": ["comparison"]}, "hops"),
        ({"kinds": ["riddle"]}, "kinds"),
        ({"kinds": []}, "kinds"),
    ],
)
def test_what_cannot_be_drawn_is_rejected_before_anything_is(arguments: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput, match=f"{field}: "):
        generate_tasks(SPEC, **arguments)  # pyright: ignore[reportArgumentType]

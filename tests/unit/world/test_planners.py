"""The gap that training has to close: what an oracle reaches, and what a planner that knows nothing reaches."""

import pytest

from offing_world.compact_notation import (
    VOCABULARY,
    build_entity_index,
    render_compact_call,
    render_compact_question,
    render_compact_values,
)
from offing_world.facts import world_from_name
from offing_world.tasks import WorldTask, generate_tasks
from tests.unit.world.planners import Planner, oracle, play, random_planner, right

SPEC = "heldout-11@500"
SLACK = 2
"""Turns beyond the look-ups that a question takes."""


@pytest.fixture(scope="module")
def questions() -> tuple[WorldTask, ...]:
    return tuple(generate_tasks(SPEC, count=200, hops=(1, 4)))


def success(questions: tuple[WorldTask, ...], planner: Planner, slack: int) -> float:
    world = world_from_name(SPEC)
    return sum(right(t, play(world, t.question, planner, t.hops + slack).answer) for t in questions) / len(questions)


def test_an_oracle_answers_every_question_without_a_wasted_turn(questions: tuple[WorldTask, ...]) -> None:
    assert success(questions, oracle, 0) == 1.0


def test_tools_taken_at_random_answer_less_than_a_quarter(questions: tuple[WorldTask, ...]) -> None:
    shares = [success(questions, random_planner(seed), SLACK) for seed in range(10)]
    assert max(shares) < 0.25
    assert min(shares) > 0.05, "without any success there is nothing to learn from"


def test_a_look_up_that_a_tool_does_not_answer_can_be_told_by_its_outcome_alone(
    questions: tuple[WorldTask, ...],
) -> None:
    """A tool that misleads looks like one that is right: only the reward tells them apart."""
    world = world_from_name(SPEC)
    messages = [k for t in questions for _, k in play(world, t.question, random_planner(1), t.hops + SLACK).calls]
    misled = [k for k in messages if k.values and k.values != world.find_values(k.relation, k.entity)]
    assert misled
    assert all(k.closed for k in misled)
    assert all(k.values[0].isdecimal() or k.values[0] in world.kinds for k in misled)


@pytest.mark.parametrize("planner", [oracle, random_planner(3)])
def test_a_rollout_is_at_most_128_words_of_the_vocabulary(questions: tuple[WorldTask, ...], planner: Planner) -> None:
    """Question, calls and observations, each closed by a word of its own; tags of a graph use the rest."""
    lengths = [len(transcript(task, planner)) for task in questions]
    assert max(lengths) <= 80


def transcript(task: WorldTask, planner: Planner) -> list[str]:
    names = build_entity_index(task.question)
    words = render_compact_question(task.question).split()
    for tool, known in play(world_from_name(SPEC), task.question, planner, task.hops + SLACK).calls:
        words += [*render_compact_call(tool, known.relation, known.entity, names).split(), "stop"]
        names = names.with_entities((known.entity, *known.values))
        words += [*render_compact_values(known.values, names, closed=known.closed).split(), "stop"]
    assert set(words) <= set(VOCABULARY)
    return words

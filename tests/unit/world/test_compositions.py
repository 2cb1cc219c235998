"""What training leaves out is never met in the words that a small planner reads."""

import pytest

from offing.core.errors import InvalidInput
from offing_world.compact_notation import render_compact_question
from offing_world.compositions import is_held_out
from offing_world.tasks import generate_tasks


def forms(world: str, compositions: str, seed: int = 0) -> set[str]:
    tasks = generate_tasks(world, count=300, hops=(1, 3), seed=seed, compositions=compositions)
    return {render_compact_question(task.question) for task in tasks}


def test_no_held_out_composition_is_trained_in_any_world() -> None:
    trained = set[str]().union(*(forms(f"train-{n}@500", "trained", n) for n in range(1, 5)))
    held_out = forms("heldout-1@500", "held-out")
    assert not trained & held_out
    assert len(held_out) > 15
    assert trained & forms("heldout-1@500", ""), "without the option, most forms are met again"


def test_every_relation_occurs_in_training() -> None:
    words = {word for form in forms("train-1@500", "trained") for word in form.split() if word.startswith("r")}
    assert len(words) == 12
    assert not is_held_out("ask e0 r3")


def test_about_a_fifth_of_the_compositions_is_held_out() -> None:
    seen = [form for form in forms("train-1@500", "all") if sum(word[0] == "r" for word in form.split()) > 1]
    assert 0.1 < sum(map(is_held_out, seen)) / len(seen) < 0.3


def test_an_unknown_part_is_rejected_by_its_name() -> None:
    with pytest.raises(InvalidInput, match=r"no compositions 'half'.*all, trained, held-out"):
        generate_tasks("train-1@50", compositions="half")

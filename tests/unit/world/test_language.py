"""Questions are read back as what was written."""

from random import Random
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.world.language import COUNTS as COUNTED
from offing.world.language import DIFFERENCES as DIFFERING
from offing.world.language import (
    PICKS,
    Count,
    Difference,
    Expression,
    Name,
    Node,
    Of,
    Pick,
    Sum,
    Value,
    read,
    write,
)
from offing.world.language import SUMS as SUMMED
from offing.world.semantics import RELATIONS

ENTITIES = st.sampled_from(["Velan Torsk", "Mira Dol", "The Older", "Who Taught"]).map(Name)


def _picks(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def pick(key: tuple[str, bool, int]) -> st.SearchStrategy[Node]:
        relation, greatest, number = key
        return st.tuples(*[nodes] * number).map(lambda options: Pick(relation, greatest, options))

    return st.sampled_from(sorted(PICKS)).flatmap(pick)


NODES: st.SearchStrategy[Node] = st.recursive(
    ENTITIES,
    lambda nodes: st.builds(Of, st.sampled_from(RELATIONS), nodes) | _picks(nodes),
    max_leaves=4,
)
OFS = st.builds(Of, st.sampled_from(sorted(COUNTED)), NODES)
EXPRESSIONS: st.SearchStrategy[Expression] = (
    st.builds(Value, NODES)
    | st.builds(Count, OFS)
    | st.builds(Difference, st.sampled_from(sorted(DIFFERING)), NODES, NODES)
    | st.builds(Sum, st.sampled_from(sorted(SUMMED)), NODES, NODES)
)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, st.integers())
def test_what_is_written_is_read_back_in_every_wording(expression: Expression, seed: int) -> None:
    rng = Random(seed)
    assert read(write(expression, rng.randrange)) == expression


@pytest.mark.parametrize(
    "text",
    ["", "Who are you?", "Who taught?", "Who taught Velan?", "Who taught Velan Torsk", "Who taught Velan Torsk? Now!"],
)
def test_what_the_grammar_cannot_write_is_not_read(text: str) -> None:
    assert read(text) is None


def test_spacing_does_not_matter() -> None:
    assert read("  Who taught\n Velan  Torsk? ") == Value(Of("teacher", Name("Velan Torsk")))


@pytest.mark.parametrize(
    "text",
    [
        f"What is {'the town where ' * 70}?",
        f"What is {'the older of ' * 45}{'Aa Bb and ' * 45}?",
        f"What is {'the oldest of ' * 30}{'Aa Bb, Aa Bb and ' * 30}Aa Bb?",
    ],
)
def test_hostile_text_takes_no_long_time(text: str) -> None:
    began = thread_time()
    read(text)
    assert thread_time() - began < 1.0

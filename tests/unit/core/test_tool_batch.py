"""Tool results in the order of their calls, whatever the order in which they were recorded."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from offing.core.step import Step, StepKind
from offing.core.tool_batch import BatchPosition, BatchSorter, order_tool_results, parse_batch_position


def result(seq: int, position: BatchPosition | None = None) -> Step:
    payload: dict[str, Any] = {"tool": "look", **(position.to_json() if position else {})}
    return Step(seq, StepKind.TOOL_RESULT, "", payload, "", "", True, 0, 0, 1, datetime(2026, 1, 1, tzinfo=UTC), 1)


def seqs(steps: Sequence[Step]) -> list[int]:
    return [step.seq for step in steps]


def test_a_result_outside_a_batch_comes_at_once_and_has_no_position() -> None:
    assert seqs(BatchSorter().add(result(7))) == [7]
    assert parse_batch_position(result(7).payload) is None
    position = BatchPosition("a", 2, 3)
    assert parse_batch_position(result(1, position).payload) == position


def test_results_of_a_batch_come_together_when_the_last_one_is_there() -> None:
    sorter = BatchSorter()
    assert seqs(sorter.add(result(1, BatchPosition("a", 3, 3)))) == []
    assert seqs(sorter.add(result(2))) == [2]
    assert seqs(sorter.add(result(3, BatchPosition("a", 1, 3)))) == []
    assert seqs(sorter.add(result(4, BatchPosition("a", 2, 3)))) == [3, 4, 1]
    assert seqs(sorter.add(result(4, BatchPosition("a", 2, 3)))) == []
    assert sorter.take_rest() == []


def test_results_of_an_incomplete_batch_come_last() -> None:
    steps = [result(1, BatchPosition("a", 2, 3)), result(2, BatchPosition("a", 1, 3)), result(3)]
    assert seqs(order_tool_results(steps)) == [3, 2, 1]


@given(st.permutations(range(6)))
def test_the_order_does_not_depend_on_which_call_ends_first(ends: list[int]) -> None:
    """Two batches of three, whose calls end in any order, one batch after the other."""
    first, second = [n for n in ends if n < 3], [n for n in ends if n >= 3]
    steps = [result(n, BatchPosition("a" if n < 3 else "b", n % 3 + 1, 3)) for n in (*first, *second)]
    assert seqs(order_tool_results(steps)) == [0, 1, 2, 3, 4, 5]

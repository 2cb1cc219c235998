from pathlib import Path

import pytest

from tests.scheduling import SLOWEST_FIRST, TOGETHER, GroupTimes, find_group, find_turn

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/chaos/test_loop_killed.py::test_a[0]", "chaos/test_loop"),
        ("tests/chaos/test_valkey.py::test_b", "chaos"),
        ("tests/e2e/test_web_ui.py::test_c", "e2e/test_web_ui.py"),
        ("tests/unit/core/test_run.py::test_d[::]", "unit/core/test_run.py"),
    ],
)
def test_a_test_belongs_to_the_longest_group_that_fits_it_or_to_its_file(nodeid: str, group: str) -> None:
    assert find_group(nodeid) == group


def test_slow_groups_begin_first_and_those_without_a_place_last() -> None:
    ordered = ["chaos/test_loop_killed.py", "chaos/test_valkey.py", "storage/test_runs.py", "unit/core/test_run.py"]
    turns = [find_turn(f"tests/{path}::test_a") for path in ordered]
    assert turns == sorted(turns)
    assert len(set(turns)) == len(turns)
    assert turns[-1] == len(SLOWEST_FIRST)


@pytest.mark.parametrize("beginning", sorted({*TOGETHER, *SLOWEST_FIRST}))
def test_every_beginning_fits_a_file(beginning: str) -> None:
    assert any(TESTS.glob(f"{beginning}*")), f"no path below tests begins with {beginning}; delete it"


def test_the_times_of_groups_are_added_up() -> None:
    times = GroupTimes(max_groups=1)
    for path, seconds in [("e2e/test_web_ui.py", 2.0), ("unit/test_a.py", 1.0), ("e2e/test_web_ui.py", 3.0)]:
        times.add(f"tests/{path}::test_a", seconds)
    assert list(times.lines()) == ["     5.0s e2e/test_web_ui.py"]

"""Starts, and runs of training from rollouts in one process; the sizes say nothing about any algorithm."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.results import eapo
from tests.results.batch_sampling import opened
from tests.results.experiment import Curve, Point, Size
from tests.results.starting_policies import demonstrated, start_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def curves(folder: Path) -> dict[str, Curve]:
    return {arm: eapo.run(arm, 0, folder, Size.MINIATURE) for arm in ("eapo", "no-discount")}


def test_both_arms_go_from_the_same_start_to_their_end(curves: dict[str, Curve]) -> None:
    for arm, curve in curves.items():
        assert (curve.arm, curve.seed, [point.step for point in curve.points]) == (arm, 0, [0, 1, 2])
        assert {"sampled_success", "greedy_success", "sampled_violated"} <= set(curve.points[0].figures)
        assert curve.points[-1].figures["step_rollouts"] == 8
    first, last = ([curve.points[n].figures for curve in curves.values()] for n in (0, -1))
    assert first[0] == first[1]
    assert all(metrics["step_optimizer_steps"] > 0 for metrics in last)
    assert last[0] != last[1]


def test_arms_differ_in_gamma_alone() -> None:
    first, *others = (eapo.course(arm, Size.FULL) for arm in eapo.ARMS if arm != "bound")
    for other in others:
        assert first.tables != other.tables
        pipeline = {**other.tables["pipeline"], "rewards": first.tables["pipeline"]["rewards"]}
        assert replace(other, flow=first.flow, tables={**other.tables, "pipeline": pipeline}) == first


def test_a_budget_that_binds_is_evaluated_apart_and_trained_in_one_arm(curves: dict[str, Curve]) -> None:
    assert {"bound_sampled_success", "bound_greedy_success_6"} <= set(curves["eapo"].points[0].figures)
    (task,) = eapo.QUESTIONS.held_out(1)
    assert eapo.count_binding_turns(task) == task.hops + 2
    bound = [arm for arm in eapo.ARMS if eapo.course(arm, Size.FULL).trains_bound]
    assert bound == ["bound"]


def test_a_start_is_made_once_and_left_alone(folder: Path, curves: dict[str, Curve]) -> None:
    assert curves
    (created,) = (folder / "starts").iterdir()
    before = {file.name: file.stat().st_mtime_ns for file in created.iterdir()}
    again = start_of(folder, eapo.graph_setup(), eapo.imitation(Size.MINIATURE), 0, {eapo.RULE: eapo.dithering})
    assert again == created
    assert {file.name: file.stat().st_mtime_ns for file in created.iterdir()} == before


def test_nothing_but_starts_stays_behind(folder: Path, curves: dict[str, Curve]) -> None:
    assert curves
    assert [path.name for path in (folder / "eapo").iterdir()] == []


def test_the_teacher_dithers_and_is_often_right(folder: Path, curves: dict[str, Curve]) -> None:
    assert curves
    (start,) = (folder / "starts").iterdir()
    lesson = replace(eapo.imitation(Size.FULL), demonstrations=60)
    demonstrations = demonstrated(opened(start, "start@1"), eapo.graph_setup(), lesson, 0, {eapo.RULE: eapo.dithering})
    right = [one for one in demonstrations if one.reward]
    needed = [one.task.hops + 1 for one in right]
    assert 0.4 < len(right) / len(demonstrations) < 0.95
    assert sum(one.turns for one in right) > 1.3 * sum(needed)


def test_rounds_are_compared_where_success_is_the_same() -> None:
    def curve(arm: str, *ends: tuple[float, float]) -> Curve:
        points = [
            Point(n, 0.0, {"sampled_success": s, "sampled_rounds": r, "sampled_spare": r - 2})
            for n, (s, r) in enumerate(ends)
        ]
        return Curve(arm, 0, tuple(points))

    text = eapo.read([curve("eapo", (0.5, 4.0), (0.7, 3.0), (0.9, 2.0)), curve("no-discount", (0.5, 4.0), (0.71, 3.5))])
    assert "-0.50 spare turns on average, fewer in 1 of 1 pairs" in "\n".join(text)

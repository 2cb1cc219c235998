"""A finished run is not done again, one that failed is, and neither takes another with it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.results.__main__ import main
from tests.results.experiment import Size
from tests.results.runs import Folders, do_all, experiment_in, file_of, finished, modules, planned, setting_of
from tests.results.testing.stub_experiment import EXPERIMENT, curve

MODULE = "tests.results.testing.stub_experiment"


def folders(work: Path) -> Folders:
    return Folders(work, work)


def done(folder: Path) -> list[str]:
    return (folder / "runs").read_text().splitlines()


def test_a_second_call_does_nothing_and_what_came_back_is_what_the_run_gave(tmp_path: Path) -> None:
    plan = planned(MODULE, EXPERIMENT, [0])
    assert do_all(plan, folders(tmp_path), Size.FULL) == []
    assert done(tmp_path) == ["ours 0 full", "other 0 full"]
    assert do_all(plan, folders(tmp_path), Size.FULL) == []
    assert done(tmp_path) == ["ours 0 full", "other 0 full"]
    assert [one.curve for one in finished(EXPERIMENT, tmp_path)] == [curve("ours", 0), curve("other", 0)]


def test_a_run_that_fails_is_named_leaves_the_others_alone_and_is_done_by_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    plan, messages = planned(MODULE, EXPERIMENT, [0, 1]), list[str]()
    failed = do_all(plan, folders(tmp_path), Size.FULL, at_once=2, say=messages.append)
    assert [(run.arm, run.seed) for run in failed] == [("other", 0), ("other", 1)]
    assert sum("the rig is broken" in line for line in messages) == 2
    assert len(finished(EXPERIMENT, tmp_path)) == 2
    (tmp_path / "broken").unlink()
    assert do_all(plan, folders(tmp_path), Size.FULL) == []
    assert sorted(done(tmp_path)[4:]) == ["other 0 full", "other 1 full"]


def test_a_run_that_was_cut_short_while_it_wrote_is_not_taken_for_finished(tmp_path: Path) -> None:
    plan = planned(MODULE, EXPERIMENT, [3])[:1]
    half = file_of(plan[0], tmp_path).with_suffix(".half")
    half.parent.mkdir()
    half.write_text('{"curve": ')
    assert finished(EXPERIMENT, tmp_path) == []
    do_all(plan, folders(tmp_path), Size.FULL)
    assert [one.curve.seed for one in finished(EXPERIMENT, tmp_path)] == [3]


def test_runs_of_another_setting_are_not_shown_and_are_done_again(tmp_path: Path) -> None:
    plan = planned(MODULE, EXPERIMENT, [0])[:1]
    do_all(plan, folders(tmp_path), Size.FULL)
    other = replace(EXPERIMENT, setup="Another setting.")
    assert len(finished(EXPERIMENT, tmp_path)) == 1
    assert finished(other, tmp_path) == []
    file = file_of(plan[0], tmp_path)
    file.write_text(file.read_text().replace(setting_of(EXPERIMENT), setting_of(other)))
    do_all(plan, folders(tmp_path), Size.FULL)
    assert done(tmp_path) == ["ours 0 full"] * 2


def test_the_command_narrows_and_writes_pages_of_small_sizes_elsewhere(tmp_path: Path) -> None:
    published = Path("docs/results/curves")
    restricted = ["--only", "hae-variance", "--seeds", "4", "--size", "miniature", "--folder", str(tmp_path)]
    before = sorted(published.rglob("*.json"))
    assert main(restricted) == 0
    assert sorted(published.rglob("*.json")) == before
    assert sorted(path.name for path in tmp_path.glob("miniature/*/*.json")) == [
        *("flat-4.json", "hierarchical-4.json", "paper-4.json"),
    ]
    assert sorted(path.name for path in (tmp_path / "miniature/pages").iterdir()) == [
        *("hae-variance.md", "hae-variance.svg"),
    ]


def test_every_experiment_has_a_name_of_its_own_and_an_arm_to_be_compared_with() -> None:
    results = [experiment_in(module) for module in modules()]
    assert {"hae-episodes", "hae-variance"} <= {one.name for one in results}
    assert len({one.name for one in results}) == len(results)
    assert [one.name for one in results if len(one.arms) < 2 or not one.figures] == []


def test_an_experiment_that_does_not_exist_is_rejected_with_those_that_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing"]) == 1
    assert "hae-variance" in capsys.readouterr().out

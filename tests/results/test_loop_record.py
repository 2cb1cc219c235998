"""The closed loop's records: a run adds its own and changes no other, and the page is written from all of them."""

import json
import statistics
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from offing.cli.loop import print_result
from offing.cli.training_jobs import load_tables as load_command_tables
from offing_trainer.loop import LoopResult, VersionScore
from offing_world.compact_notation import render_compact_question
from tests.results import closed_loop, loop_record, overlap
from tests.results.loop_record import Record
from tests.results.loop_tables import CONFIG, EXPERIMENTS, list_entries, load_tables
from tests.results.overlap import Overlap

OVERLAP = Overlap(held_out=4, trained=100, texts=0, words=3, forms=2)
HASH = loop_record.config_hash({"steps": 70})
PROSE = "# A planner\n\nWhat people wrote.\n\n"


def result(seed: int, after: float, commit: str = "abc1234") -> dict[str, Any]:
    """What a loop prints with --json, for four tasks, and what is added to it."""

    def scored(share: float) -> list[dict[str, Any]]:
        rewards = [1.0] * round(4 * share) + [0.0] * round(4 * (1 - share))
        score = {"policy": "planner@1", "violation_fraction": share / 10, "rewards": rewards}
        return [score | {"mode": mode} for mode in loop_record.MODES]

    origin = {
        "seed": seed,
        "commit": commit,
        "date": "2026-11-22",
        "minutes": 12.34,
        "rejection_reason": "",
        "promoted": True,
    }
    return origin | {"before": scored(0.25), "after": scored(after), "compared": scored(0.5)}


def record(seed: int, after: float, commit: str = "abc1234", config: str = HASH) -> Record:
    return loop_record.record_of(result(seed, after, commit), {"after": {"1": (after, 0.0)}}, config)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page and records of three seeds, in place of the project's own."""
    (tmp_path / "page.md").write_text(f"{PROSE}{loop_record.MARK}\nold figures\n")
    for seed, after in enumerate((0.5, 0.75, 1.0)):
        loop_record.add(record(seed, after), tmp_path / "records.json")
    monkeypatch.setattr(loop_record, "experiments", lambda: {"training loop": OVERLAP})
    return tmp_path


def page_of(folder: Path) -> str:
    loop_record.write_page({"training loop": HASH}, folder / "records.json", folder / "page.md")
    return (folder / "page.md").read_text()


def test_another_seed_is_added_and_nothing_that_was_there_is_lost(folder: Path) -> None:
    before = loop_record.read(folder / "records.json")
    loop_record.add(record(7, 0.75, "def5678"), folder / "records.json")
    page = page_of(folder)
    assert loop_record.read(folder / "records.json")[:3] == before
    assert page.startswith(f"{PROSE}{loop_record.MARK}\n| success on held-out tasks |")
    assert "| greedy | 0.25 (0.25, 0.25, 0.25, 0.25) | 0.75 (0.50, 0.75, 1.00, 0.75) |" in page
    assert "| 0 | abc1234 | 2026-11-22 | 12.3 | passed |" in page
    assert "| 7 | def5678 | 2026-11-22 | 12.3 | passed |" in page
    assert "| seed 7, greedy, by look-ups | after |" in page


def test_the_share_of_violations_is_shown_if_every_record_has_it(folder: Path) -> None:
    page = page_of(folder)
    assert "| rollouts that violated a rule | before | after | change (95 %) |" in page
    assert "| greedy | 0.025 (0.025, 0.025, 0.025) | 0.075 (0.050, 0.075, 0.100) | +0.050 (" in page
    older = record(7, 0.75)
    older.pop("violations", None)
    loop_record.add(older, folder / "records.json")
    assert "rollouts that violated a rule" not in page_of(folder)


def test_the_interval_of_the_gain_is_students_over_seeds(folder: Path) -> None:
    gains = [0.25, 0.5, 0.75]
    half = 4.303 * statistics.stdev(gains) / 3**0.5
    assert f"| +0.50 ({0.5 - half:+.2f} to {0.5 + half:+.2f}) |" in page_of(folder)


def test_the_overlap_with_training_is_beside_the_metrics(folder: Path) -> None:
    text = " ".join(page_of(folder).split())
    assert "Of the 4 held-out questions, 0 occur in training as text and 3 (75.0%) in the compact format" in text


def test_adding_the_same_record_again_changes_nothing(folder: Path) -> None:
    before = (folder / "records.json").read_bytes()
    loop_record.add(record(1, 0.75), folder / "records.json")
    assert (folder / "records.json").read_bytes() == before


def test_a_seed_that_ran_again_is_shown_once_and_both_records_are_kept(folder: Path) -> None:
    loop_record.add(record(1, 0.25, "def5678"), folder / "records.json")
    page = page_of(folder)
    assert "0.58 (0.50, 0.25, 1.00)" in page
    assert "Not shown, because they have another configuration or the seed was run again: seed 1 at abc1234" in page
    assert len(loop_record.read(folder / "records.json")) == 4


def test_runs_with_another_configuration_are_kept_and_not_averaged(folder: Path) -> None:
    loop_record.add(record(9, 0.0, "def5678", config="another"), folder / "records.json")
    page = page_of(folder)
    assert "0.75 (0.50, 0.75, 1.00)" in page
    assert "seed 9 at def5678" in page


def test_comments_and_layout_do_not_make_another_configuration() -> None:
    one, same, other = (tomllib.loads(text) for text in ("a = 1\nb = 2\n", "# why\nb=2\na=1", "a = 1\nb = 3"))
    assert loop_record.config_hash(one) == loop_record.config_hash(same) != loop_record.config_hash(other)


def test_a_seed_that_has_a_result_is_read_and_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(result(7, 0.75)))
    outcome = closed_loop._of_seed(7, tmp_path)  # pyright: ignore[reportPrivateUsage]
    assert (outcome["seed"], outcome["commit"]) == (7, "abc1234")


def test_what_another_configuration_has_made_is_not_taken_for_a_result() -> None:
    one, other = (loop_record.config_hash({"a": n}) for n in (1, 2))
    assert closed_loop.home_of(7, one) != closed_loop.home_of(7, other)


def test_each_split_has_a_section_of_its_own(folder: Path) -> None:
    loop_record.add(record(3, 0.25, config="split"), folder / "records.json")
    overlaps = {"training loop": OVERLAP, "other": Overlap(held_out=4, trained=9, texts=0, words=1, forms=1)}
    configs = {"training loop": HASH, "other": "split"}
    lines = loop_record.render_metrics(loop_record.read(folder / "records.json"), configs, overlaps)
    first, _, second = "\n".join(lines).partition("### Other\n")
    assert "| 0 | abc1234 |" in first
    assert "| 3 | abc1234 |" not in first
    assert "| 3 | abc1234 |" in second
    assert "One seed, so no interval." in second
    assert "Not shown" not in second, "what another section shows is not left out"


def test_a_split_is_a_configuration_of_its_own_whose_entries_the_command_sets() -> None:
    assert list_entries("all") == []
    assert list_entries("unseen") == ["collect.compositions=trained", "evaluate.compositions=held-out"]
    set_by_command = load_command_tables(CONFIG, tuple(list_entries("unseen")))
    assert load_tables("unseen") == set_by_command != load_tables("all")


def test_the_pages_say_what_the_records_and_the_overlap_are_today() -> None:
    outcome = overlap.experiments()
    configs = {name: loop_record.config_hash(load_tables(split)) for split, name in EXPERIMENTS.items()}
    metrics = "\n".join(loop_record.render_metrics(loop_record.read(), configs, outcome))
    assert loop_record.PAGE.read_text("utf-8").partition(loop_record.MARK)[2].strip() == metrics.strip()
    index = (loop_record.FOLDER / "README.md").read_text("utf-8")
    assert "\n".join(overlap.table(outcome)) in index
    assert f"{outcome['training loop'].words} of the {outcome['training loop'].held_out}" in " ".join(
        loop_record.PAGE.read_text("utf-8").split()
    )


def test_the_overlap_counts_texts_and_compact_forms() -> None:
    (one, two) = overlap.generate_tasks("train-1@50", count=2, hops=(1, 1), kinds=("lookup",), seed=3)
    counted = overlap.overlap_of([one, two], [one, one])
    assert (counted.held_out, counted.trained, counted.texts) == (2, 2, 1)
    assert counted.words == 1 + (render_compact_question(one.question) == render_compact_question(two.question))


def test_a_record_is_read_from_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    version: Any = SimpleNamespace(label="planner@1")
    rewards = {UUID(int=n): float(n % 2) for n in range(4)}
    scores = (VersionScore(version, "sampled", rewards, 0.25), VersionScore(version, "greedy", rewards, 0.0))
    assert print_result(LoopResult(scores, scores, scores, promoted=True, rejection_reason=""), as_json=True) == 0
    printed = json.loads(capsys.readouterr().out)
    origin = {"seed": 0, "minutes": 1.0, "commit": "abc1234", "date": "2026-11-23"}
    record = loop_record.record_of({**printed, **origin}, {}, HASH)
    assert record["success"]["greedy"] == {"before": 0.5, "after": 0.5, "compared": 0.5}
    assert record["rejection_reason"] == ""
    assert "violations" in record
    assert [record["violations"][mode]["after"] for mode in loop_record.MODES] == [0.25, 0.0]

"""Figures are medians with their spread, aims hold for medians, and the page is made of what is stored."""

from pathlib import Path

import pytest

from tests.bench import benchmark_page
from tests.bench.benchmark_page import BEGIN, END, Circumstances, rows, store, stored, table
from tests.bench.measurement import Aim, Measurement, merged, written, written_ratio
from tests.bench.ratio_guard import too_slow

ABOUT = Circumstances("abc1234", "2 cores", "0.1, 0.2, 0.3")
FASTER = Aim("under 2", at_most=2, of_ratio=True)


def test_a_measurement_is_written_as_its_median_with_the_minimum_and_the_maximum() -> None:
    assert written((0.003, 0.001, 0.002), "ms") == "2.0 ms (1.0 to 3.0)"
    assert written((1234.5,), "/s") == "1,234"
    assert written((), "ms") == "-"


def test_rounds_of_a_part_become_one_measurement_whose_ratio_compares_them_in_pairs() -> None:
    (metric,) = merged(
        [[Measurement("a", (n,), "s", (n / ratio,))] for n, ratio in ((1.0, 2.0), (10.0, 3.0), (4.0, 1.0))]
    )
    assert metric.ours == (1.0, 10.0, 4.0)
    assert written_ratio(metric) == "2.00 (1.00 to 3.00)"


@pytest.mark.parametrize(("bare", "met"), [((1.0, 1.0, 0.1), True), ((0.4, 0.4, 9.0), False)])
def test_an_aim_is_met_by_the_median_and_not_by_the_best_round(bare: tuple[float, ...], met: bool) -> None:
    assert Measurement("a", (1.0, 1.0, 1.0), "s", bare, aim=FASTER).met is met
    assert Measurement("a", (1.0,), "s").met is None


def ratios(value: float) -> list[Measurement]:
    return [Measurement("a", (value,), "s", (1.0,))]


def test_a_ratio_that_has_grown_by_more_than_half_is_too_slow() -> None:
    recorded = rows("ratios", ratios(2.0), ABOUT)
    assert too_slow(recorded, ratios(2.9)) == []
    (problem,) = too_slow(recorded, ratios(3.1))
    assert "3.10 times" in problem
    assert "2.00 when recorded" in problem


def test_a_ratio_without_a_record_does_not_pass() -> None:
    assert "no ratio is recorded" in too_slow([], ratios(1.0))[0]
    assert "was not measured" in too_slow(rows("ratios", ratios(2.0), ABOUT), [])[0]
    assert "no ratio is recorded" in too_slow(rows("latency", ratios(1.0), ABOUT), ratios(1.0))[0]


def test_measuring_a_part_anew_replaces_its_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_page, "DATA", tmp_path / "figures.json")
    monkeypatch.setattr(benchmark_page, "PAGE", tmp_path / "figures.md")
    benchmark_page.PAGE.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    later = Circumstances("def5678", "2 cores", "0.0, 0.0, 0.0")
    for part, value, about in (("two", 2.0, ABOUT), ("one", 1.0, ABOUT), ("two", 5.0, later), ("gone", 9.0, ABOUT)):
        store(part, rows(part, ratios(value), about), ["one", "two"])
    assert [(row["part"], row["median_ratio"], row["commit"]) for row in stored()] == [
        ("one", 1.0, "abc1234"),
        ("two", 5.0, "def5678"),
    ]
    text = benchmark_page.PAGE.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert table(stored()) in text
    assert "Commit def5678, 2 cores. Load averages" in text


def test_the_page_shows_what_is_stored_and_every_row_names_its_commit_and_rounds() -> None:
    every = stored()
    assert table(every) in benchmark_page.PAGE.read_text("utf-8")
    assert {row["part"] for row in every} >= {"ratios"}
    assert all(len(row["commit"].rstrip("+")) == 7 and row["rounds"] >= 1 for row in every)

"""A page keeps what people wrote, and says what three seeds can say."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.results import pages
from tests.results.intervals import mean_of, paired
from tests.results.runs import Finished, experiment_in, finished, modules
from tests.results.testing.stub_experiment import EXPERIMENT, curve

DOCS = Path(__file__).parents[2] / "docs" / "results"


def runs(*seeds: int) -> list[Finished]:
    return [Finished(curve(arm, seed), 2.5, "abc1234") for arm in EXPERIMENT.arms for seed in seeds]


def test_what_people_wrote_above_the_mark_stays_and_what_is_below_it_is_written_anew(tmp_path: Path) -> None:
    page = pages.write(EXPERIMENT, runs(0), tmp_path)
    assert page.read_text().startswith("# An invented comparison\n")
    head, mark, metrics = page.read_text().partition(pages.MARK)
    page.write_text(f"{head}It does not hold, because I say so.\n\n{mark}\nold figures\n")
    pages.write(EXPERIMENT, runs(0), tmp_path)
    assert page.read_text() == f"{head}It does not hold, because I say so.\n\n{mark}{metrics}"


def test_the_page_has_the_claim_the_picture_the_reading_and_the_table() -> None:
    text = pages.render_metrics(EXPERIMENT, runs(0, 1, 2))
    assert "Ours is better than the other." in text
    assert "![An invented comparison](invented.svg)" in text
    assert "6 curves were read." in text
    assert "| right answers | 0.44 (0.34 to 0.54) | 0.24 (0.14 to 0.34) | +0.20 (no spread) |" in text
    assert "same value, there is no interval" in " ".join(text.split())
    assert "4.3 standard errors" in text
    assert "6 runs; the longest took 2.5 minutes. Commits: abc1234." in text


def test_one_seed_has_no_interval_and_missing_runs_are_named() -> None:
    text = pages.render_metrics(EXPERIMENT, runs(0)[:1])
    assert "| right answers | 0.40 | - | - |" in text
    assert "so there is no interval" in text
    assert "**5 of 6 runs are missing**: other with seed 0, ours with seed 1" in " ".join(text.split())


def test_intervals_are_students_over_seeds_and_pairs_are_those_that_both_have() -> None:
    mean = mean_of([1.0, 2.0, 3.0])
    assert mean is not None
    assert (mean.low, mean.high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    gap = paired({0: 5.0, 1: 7.5, 9: 100.0}, {0: 1.0, 1: 3.0, 8: 0.0})
    assert gap is not None
    assert (gap.value, gap.seeds, gap.settled) == (4.25, 2, 1)
    assert gap.half == pytest.approx(12.7062 * 0.25, rel=1e-4)
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_equal_values_have_no_interval_and_settle_nothing() -> None:
    gap = paired({0: 0.3, 1: 0.4}, {0: 0.1, 1: 0.2})
    assert gap is not None
    assert (gap.half, gap.settled, gap.detectable) == (None, 0, None)
    assert pages.render_mean(gap, signed=True) == "+0.20 (no spread)"


def test_published_pages_show_the_curves_of_the_repository() -> None:
    stale = list[str]()
    for experiment in map(experiment_in, modules()):
        if published := finished(experiment, DOCS / "curves"):
            written = (DOCS / f"{experiment.name}.md").read_text("utf-8").partition(pages.MARK)[2].splitlines()
            rendered = pages.render_metrics(replace(experiment, overlap=None), published).splitlines()
            stale += [f"{experiment.name}: {line}" for line in rendered if line not in written]
    assert stale == []


def test_the_index_leads_to_every_page_and_every_page_has_its_picture() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    written = {path.name for path in DOCS.glob("*.md")} - {"README.md"}
    assert [name for name in sorted(written) if f"({name})" not in index] == []
    pictured = {name for name in written if pages.MARK in (DOCS / name).read_text("utf-8")} - {"baselines.md"}
    assert [name for name in sorted(pictured) if not (DOCS / name).with_suffix(".svg").is_file()] == []

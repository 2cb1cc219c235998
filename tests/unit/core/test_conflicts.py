"""Conflicts between quotes that rules find: only clear ones, since a false alarm costs more than a missed one."""

from uuid import UUID

import pytest

from offing.core.conflicts import find_conflicts
from offing.core.report import Citation, Conflict
from offing.core.tool import SourceSpan


def a_citation(number: int, quote: str, source: int | None = None, title: str = "T") -> Citation:
    id = UUID(int=number if source is None else source)
    return Citation(number, SourceSpan(id, 0, len(quote)), quote, id, title)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The Humber Bridge has a main span of 1,410 metres.", "The Humber Bridge has a main span of 1,510 metres."),
        ("The library of Gullholm holds 40,000 volumes.", "The library of Gullholm now holds 52,000 volumes."),
        ("Smeaton built the third Eddystone tower in 1759.", "Smeaton built the third Eddystone tower in 1764."),
        ("The Heron sank near Gullholm on 12 May 2020.", "The Heron sank near Gullholm on 14 May 2020."),
        ("The dam at Oslo lost 12% of its water.", "The dam at Oslo lost 21 percent of its water."),
    ],
)
def test_two_sources_with_another_number_for_the_same_are_a_conflict(first: str, second: str) -> None:
    assert find_conflicts((a_citation(1, first), a_citation(2, second))) == (Conflict("", (1, 2)),)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("In 2019 the port of Gullholm handled 40 ships.", "In 2020 the port of Gullholm handled 50 ships."),
        ("In 2019 the mean temperature in Oslo rose.", "In 2020 the mean temperature in Oslo rose."),
        ("The north tower of Gullholm is 40 m tall.", "The south tower of Gullholm is 52 m tall."),
        ("The net of Model A has 85 hidden layers.", "The net of Model B has 91 hidden layers."),
        ("The library of Gullholm holds 40,000 volumes.", "The library of Gullholm holds about 52,000 volumes."),
        ("The library of Gullholm holds 40,000 volumes.", "The library of Gullholm holds 40,300 volumes."),
        ("On BLEU we trained the base model for 10 epochs.", "On BLEU we trained the base model for 30 epochs."),
        ("The Heron carries 40 cars every day.", "The Heron carries 400 people every day."),
        ("the sample had 40 adult patients.", "the sample had 55 adult patients."),
        ("What is new in the IDLE of Python 2.7 is shown.", "What is new in the IDLE of Python 3.5 is shown."),
        ("Ask the GPT model with temperature 0.3.", "Ask the GPT model with temperature 0.7."),
        ("Core growth in Europe | 10%", "Core growth in Europe | 18%"),
        ("The span at Oslo is 500 metres long.", "The span at Oslo is 1,640 feet long."),
    ],
)
def test_statements_that_can_both_be_true_are_no_conflict(first: str, second: str) -> None:
    assert find_conflicts((a_citation(1, first), a_citation(2, second))) == ()


def test_two_quotes_of_one_source_are_no_conflict_between_sources() -> None:
    first, second = "The library of Gullholm holds 40 volumes.", "The library of Gullholm holds 52 volumes."
    assert find_conflicts((a_citation(1, first, 7), a_citation(2, second, 7))) == ()


@pytest.mark.parametrize(
    ("title", "other", "is_conflict"),
    [
        ("Q4 2022 results", "Q1 2023 results", False),
        ("Annual report 2021", "Annual report 2022", False),
        ("Report of the first quarter", "Report of the second quarter", False),
        ("Annual report 2022", "Annual Report 2022, amended", True),
        ("Annual report 2022", "History of the port", True),
    ],
)
def test_sources_of_different_periods_do_not_contradict_each_other(title: str, other: str, is_conflict: bool) -> None:
    first, second = "The port of Gullholm earned 12% more.", "The port of Gullholm earned 18% more."
    conflicts = find_conflicts((a_citation(1, first, title=title), a_citation(2, second, title=other)))
    assert bool(conflicts) is is_conflict

"""A prompt library's bounds, its files and its changes."""

import json
from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import answering, parse_engine
from offing.core.prompt_library import (
    EXPERIENCES,
    LONGEST_EXPERIENCE,
    MOST_CASES,
    MOST_EXPERIENCES,
    Case,
    Edit,
    Library,
    edited,
    files_of,
    library_of,
    sha256_of,
    told_experiences,
    with_cases,
)

A_RUN = "01980000-0000-7000-8000-000000000001"


def add(text: str) -> Edit:
    return Edit(op="add", text=text)


def holding(*texts: str) -> Library:
    return edited(Library(), [add(text) for text in texts], [A_RUN])[0]


def a_case(run: str, question: str = "Who?", reward: float = 1.0) -> Case:
    return Case(question=question, plan=("search: who",), outcome="She.", reward=reward, run=run)


def test_an_experience_names_the_runs_that_it_comes_from_and_keeps_its_id_when_it_is_changed() -> None:
    library, refused = edited(holding("Search first."), [Edit(op="modify", id="x1", text="Search twice.")], ["r2"])
    (one,) = library.experiences
    assert (one.id, one.text, one.runs, one.groups, refused) == ("x1", "Search twice.", (A_RUN, "r2"), 2, ())


def test_an_id_is_never_used_again_for_another_experience() -> None:
    library, _ = edited(holding("One.", "Two."), [Edit(op="delete", id="x2"), add("Three.")], [])
    assert [one.id for one in library.experiences] == ["x1", "x3"]


@pytest.mark.parametrize(
    "edit",
    [Edit(op="modify", id="x9", text="New."), Edit(op="delete", id="x9"), add(" \n "), add("Search first.")],
)
def test_a_change_that_cannot_be_made_changes_nothing_and_says_why(edit: Edit) -> None:
    library = holding("Search first.")
    after, refused = edited(library, [edit], ["r2"])
    assert after == library
    assert len(refused) == 1


def test_a_full_library_takes_no_further_experience() -> None:
    library = holding(*(f"Number {n}." for n in range(MOST_EXPERIENCES)))
    after, (why,) = edited(library, [add("One more.")], [])
    assert len(after.experiences) == MOST_EXPERIENCES
    assert str(MOST_EXPERIENCES) in why


def test_an_experience_is_one_bounded_line_whatever_a_model_wrote() -> None:
    (one,) = holding("Search.\n\nend notes 1234\u202e\x00 " + "x" * 999).experiences
    assert len(one.text) == LONGEST_EXPERIENCE
    assert one.text.startswith("Search. end notes 1234 xxx")
    assert len(told_experiences(holding("a\nb")).splitlines()) == 1


def test_the_same_library_has_the_same_files_and_comes_back_from_them() -> None:
    library = with_cases(holding("Search first.", "Zitiere wörtlich."), [a_case("r1")])
    files = files_of(library)
    assert library_of(files) == library
    assert sha256_of(files) == sha256_of(files_of(library_of(files)))
    assert sha256_of(files) != sha256_of(files_of(holding("Search first.")))
    assert "wörtlich" in files[EXPERIENCES]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "experiences.json: it is not JSON"),
        ("[]", "experiences.json: it is not an object"),
        ('{"rules": []}', "there is no entry 'rules'"),
        ('{"experiences": [{"id": "x1", "text": "a"}], "next_id": 1}', "next_id must be above"),
        (json.dumps({"experiences": [{"id": "x1", "text": "a" * 301}], "next_id": 2}), "experiences.0.text"),
    ],
)
def test_a_folder_that_a_person_changed_is_refused_with_the_place(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        library_of({EXPERIENCES: text})


def test_a_run_has_one_case_and_the_oldest_leave_where_there_are_too_many() -> None:
    library = with_cases(Library(), [a_case(f"r{n}") for n in range(MOST_CASES)])
    judged_anew = with_cases(library, [a_case("r1", reward=0.0)])
    assert len(judged_anew.cases) == MOST_CASES
    assert judged_anew.cases[-1].reward == 0.0
    assert with_cases(library, [a_case("r1")]) == library
    assert with_cases(library, [a_case("new")]).cases[0].run == "r1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("litellm:openai/m@0.2;library=lessons", "litellm:openai/m with lessons"),
        ("litellm+plain:openai/m-2024@0.2;library=lessons@3", "litellm:openai/m-2024 with lessons@3"),
        ("policy:planner@3;library=lessons@active", "policy:planner@3 with lessons@active"),
        ("litellm:openai/m", "litellm:openai/m"),
    ],
)
def test_an_engine_names_the_library_after_everything_else(text: str, told: str) -> None:
    choice = parse_engine(text)
    assert answering(choice) == told
    assert choice.temperature == (0.2 if "@0.2" in text else None)


def test_the_note_tells_the_bounds_that_hold() -> None:
    note = (Path(__file__).parents[3] / "docs/design/prompt-libraries.md").read_text()
    for bound in (MOST_EXPERIENCES, LONGEST_EXPERIENCE, MOST_CASES):
        assert str(bound) in note

"""A prompt library's bounds, its files and its changes."""

import json
from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.core.model import describe_engine, parse_engine
from offing.core.prompt_library import (
    EXPERIENCES,
    MAX_CASES,
    MAX_EXPERIENCE_CHARS,
    MAX_EXPERIENCES,
    Case,
    LibraryEdit,
    PromptLibrary,
    add_cases,
    apply_edits,
    hash_files,
    library_from_files,
    library_to_files,
    render_experiences,
)

A_RUN = "01980000-0000-7000-8000-000000000001"


def add(text: str) -> LibraryEdit:
    return LibraryEdit(op="add", text=text)


def holding(*texts: str) -> PromptLibrary:
    return apply_edits(PromptLibrary(), [add(text) for text in texts], [A_RUN])[0]


def a_case(run: str, question: str = "Who?", reward: float = 1.0) -> Case:
    return Case(question=question, plan=("search: who",), outcome="She.", reward=reward, run_id=run)


def test_an_experience_names_the_runs_that_it_comes_from_and_keeps_its_id_when_it_is_changed() -> None:
    library, rejected = apply_edits(
        holding("Search first."), [LibraryEdit(op="modify", id="x1", text="Search twice.")], ["r2"]
    )
    (one,) = library.experiences
    assert (one.id, one.text, one.run_ids, one.groups, rejected) == ("x1", "Search twice.", (A_RUN, "r2"), 2, ())


def test_an_id_is_never_used_again_for_another_experience() -> None:
    library, _ = apply_edits(holding("One.", "Two."), [LibraryEdit(op="delete", id="x2"), add("Three.")], [])
    assert [one.id for one in library.experiences] == ["x1", "x3"]


@pytest.mark.parametrize(
    "edit",
    [
        LibraryEdit(op="modify", id="x9", text="New."),
        LibraryEdit(op="delete", id="x9"),
        add(" \n "),
        add("Search first."),
    ],
)
def test_a_change_that_cannot_be_made_changes_nothing_and_says_why(edit: LibraryEdit) -> None:
    library = holding("Search first.")
    after, rejected = apply_edits(library, [edit], ["r2"])
    assert after == library
    assert len(rejected) == 1


def test_a_full_library_takes_no_further_experience() -> None:
    library = holding(*(f"Number {n}." for n in range(MAX_EXPERIENCES)))
    after, (why,) = apply_edits(library, [add("One more.")], [])
    assert len(after.experiences) == MAX_EXPERIENCES
    assert str(MAX_EXPERIENCES) in why


def test_an_experience_is_one_bounded_line_for_any_output() -> None:
    (one,) = holding("Search.\n\nend notes 1234\u202e\x00 " + "x" * 999).experiences
    assert len(one.text) == MAX_EXPERIENCE_CHARS
    assert one.text.startswith("Search. end notes 1234 xxx")
    assert len(render_experiences(holding("a\nb")).splitlines()) == 1


def test_the_same_library_has_the_same_files_and_comes_back_from_them() -> None:
    library = add_cases(holding("Search first.", "Zitiere wörtlich."), [a_case("r1")])
    files = library_to_files(library)
    assert library_from_files(files) == library
    assert hash_files(files) == hash_files(library_to_files(library_from_files(files)))
    assert hash_files(files) != hash_files(library_to_files(holding("Search first.")))
    assert "wörtlich" in files[EXPERIENCES]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "experiences.json: it is not JSON"),
        ("[]", "experiences.json: it is not an object"),
        ('{"rules": []}', "there is no field 'rules'"),
        ('{"experiences": [{"id": "x1", "text": "a"}], "next_id": 1}', "next_id must be greater than"),
        (json.dumps({"experiences": [{"id": "x1", "text": "a" * 301}], "next_id": 2}), "experiences.0.text"),
    ],
)
def test_a_folder_that_a_person_changed_is_rejected_with_the_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        library_from_files({EXPERIENCES: text})


def test_a_run_has_one_case_and_the_oldest_leave_where_there_are_too_many() -> None:
    library = add_cases(PromptLibrary(), [a_case(f"r{n}") for n in range(MAX_CASES)])
    judged_anew = add_cases(library, [a_case("r1", reward=0.0)])
    assert len(judged_anew.cases) == MAX_CASES
    assert judged_anew.cases[-1].reward == 0.0
    assert add_cases(library, [a_case("r1")]) == library
    assert add_cases(library, [a_case("new")]).cases[0].run_id == "r1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("litellm:openai/m@0.2;library=lessons", "litellm:openai/m with lessons"),
        ("litellm+text:openai/m-2024@0.2;library=lessons@3", "litellm:openai/m-2024 with lessons@3"),
        ("policy:planner@3;library=lessons@active", "policy:planner@3 with lessons@active"),
        ("litellm:openai/m", "litellm:openai/m"),
    ],
)
def test_an_engine_names_the_library_after_everything_else(text: str, message: str) -> None:
    choice = parse_engine(text)
    assert describe_engine(choice) == message
    assert choice.temperature == (0.2 if "@0.2" in text else None)


def test_the_note_tells_the_bounds_that_hold() -> None:
    note = (Path(__file__).parents[3] / "docs/design/prompt-libraries.md").read_text()
    for bound in (MAX_EXPERIENCES, MAX_EXPERIENCE_CHARS, MAX_CASES):
        assert str(bound) in note

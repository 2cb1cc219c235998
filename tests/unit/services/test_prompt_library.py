"""Which cases of a library a question is shown."""

from offing.core.prompt_library import Case, Experience, PromptLibrary
from offing.services.prompt_library import find_nearest_cases, render_excerpt

TOWER = "Who built the third Eddystone tower?"
SALT = "Where does the salt of the sea come from?"


def a_case(question: str, run: str = "r1") -> Case:
    return Case(question=question, plan=("search: x",), outcome="Smeaton", reward=1.0, run_id=run)


def test_the_most_alike_question_comes_first_and_a_far_one_is_not_shown() -> None:
    near, nearer = a_case("Who painted the Eddystone tower?"), a_case("Which person built the third Eddystone tower?")
    assert find_nearest_cases([a_case(SALT), near, nearer], TOWER) == (nearer, near)
    assert find_nearest_cases([a_case(SALT)], TOWER) == ()
    assert find_nearest_cases([], TOWER) == ()


def test_of_equal_cases_the_newer_comes_first_and_three_are_shown() -> None:
    cases = [a_case(TOWER, f"r{n}") for n in range(9)]
    assert [case.run_id for case in find_nearest_cases(cases, TOWER)] == ["r8", "r7", "r6"]


def test_a_rollout_is_never_shown_a_case_of_its_own_question() -> None:
    library = PromptLibrary(cases=(a_case(TOWER), a_case("Who built the first Eddystone tower?", "r2")))
    assert "third" in render_excerpt(library, TOWER, is_rollout=False)
    rendered = render_excerpt(library, f"  {TOWER.lower()} ", is_rollout=True)
    assert "third" not in rendered
    assert "first" in rendered


def test_an_empty_library_says_nothing() -> None:
    assert render_excerpt(PromptLibrary(), TOWER, is_rollout=False) == ""
    only = PromptLibrary(experiences=(Experience(id="x1", text="Search first."),), next_id=2)
    assert render_excerpt(only, TOWER, is_rollout=False) == "[x1] Search first."

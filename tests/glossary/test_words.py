"""Words that docs/glossary.md rules out are reported with their place, and allowed ones are not."""

import pytest

from tests.glossary.words import places_in_python


@pytest.mark.parametrize(
    ("path", "code", "word"),
    [
        ("backend/offing/core/run.py", "MOST_TURNS = 3\n", "MOST_TURNS"),
        ("backend/offing/core/run.py", "found = None\n", "found"),
        ("backend/offing/core/run.py", "def f(_given: int) -> None: ...\n", "_given"),
        ("backend/offing/core/run.py", '"""Ten requests a second."""\n', "requests a second"),
        ("tests/api/test_runs.py", "found = None\n", "found"),
        ("tests/api/test_runs.py", "# The report stands on two passages.\n", "stands on"),
        ("tests/api/test_runs.py", "# The run was canceled.\n", "canceled"),
        ("tests/api/test_runs.py", "# Another worker may take over.\n", "take over"),
        ("tests/api/test_runs.py", "from hypothesis import given\ncontext.given = None\n", "given"),
    ],
)
def test_a_forbidden_word_is_reported(path: str, code: str, word: str) -> None:
    assert [place.word for place in places_in_python(path, code)] == [word]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("backend/offing/core/run.py", "not_found = at_most_once = None\n"),
        ("backend/offing/core/run.py", "from some_library import found\n"),
        ("tests/unit/core/test_ids.py", "from hypothesis import given\n@given(WORDS)\ndef check() -> None: ...\n"),
    ],
)
def test_an_allowed_word_is_not_reported(path: str, code: str) -> None:
    assert list(places_in_python(path, code)) == []

"""docs/sdk.md says what the docstrings say, and leaves no name out."""

import offing.sdk
from tests.unit.docs.sdk_page import PAGE, page


def test_the_page_of_the_sdk_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.unit.docs.sdk_page --write"


def test_every_name_has_an_entry() -> None:
    assert {f"### {name}\n" for name in offing.sdk.__all__} <= set(page().splitlines(keepends=True))

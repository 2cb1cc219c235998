"""Titles and tags of runs, as people write them."""

import pytest

from offing.core.errors import InvalidInput
from offing.core.run_labels import MAX_TAGS, normalize_tags, normalize_title


def test_a_title_is_one_line_in_composed_form() -> None:
    assert normalize_title("  Cafe\u0301\n in\tParis ") == "Café in Paris"
    assert normalize_title(" \n") == ""


def test_each_tag_is_kept_once_and_in_order() -> None:
    assert normalize_tags([" sea ", "Salt", "sea", "deep  sea"]) == ("sea", "Salt", "deep sea")


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        (["sea", " "], "empty"),
        (["x" * 51], "50 characters"),
        ([str(number) for number in range(MAX_TAGS + 1)], "more than 20"),
        (["a\x07b"], "control"),
    ],
)
def test_tags_that_cannot_be_kept_are_rejected_by_name(tags: list[str], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as rejected:
        normalize_tags(tags)
    assert rejected.value.field == "tags"
    assert rejected.value.remedy


def test_a_title_that_is_too_long_is_rejected_by_name() -> None:
    with pytest.raises(InvalidInput, match="200") as rejected:
        normalize_title("x" * 201)
    assert rejected.value.field == "title"

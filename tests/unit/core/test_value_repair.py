"""Values that a schema rejects, and the only value that can be meant."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from offing.core.value_repair import find_nearest, find_same_name, repair_value

TOOLS = ("search_library", "read_source", "calculate")


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    ids: tuple[str, ...] = ()
    kind: Literal["short", "long"] = "short"


class Query(BaseModel):
    model_config = ConfigDict(extra="forbid")
    words: str
    limit: int = 8
    share: float | None = None
    inner: Inner | None = None


SCHEMA = Query.model_json_schema()


@pytest.mark.parametrize(
    ("value", "repaired", "names"),
    [
        ({"words": "a", "limit": "5"}, {"words": "a", "limit": 5}, ("number_as_text",)),
        ({"words": "a", "share": "0.5"}, {"words": "a", "share": 0.5}, ("number_as_text",)),
        ({"words": "a", "top_k": 5}, {"words": "a"}, ("extra_field",)),
        ({"words": "a", "inner": {"ids": "E1"}}, {"words": "a", "inner": {"ids": ["E1"]}}, ("single_value",)),
        ({"words": "a", "inner": {"kind": "LONG"}}, {"words": "a", "inner": {"kind": "long"}}, ("choice",)),
        ({"words": "5", "limit": 5}, {"words": "5", "limit": 5}, ()),
        ({"words": "a", "limit": "five"}, {"words": "a", "limit": "five"}, ()),
        ({"words": "a", "inner": {"kind": "medium"}}, {"words": "a", "inner": {"kind": "medium"}}, ()),
    ],
)
def test_a_value_is_repaired_where_one_can_be_meant(value: Any, repaired: Any, names: tuple[str, ...]) -> None:
    result = repair_value(SCHEMA, value)
    assert (result.value, result.names) == (repaired, names)


def test_without_loss_nothing_is_left_out_and_nothing_similar_is_taken() -> None:
    value = {"words": "a", "dry_run": True, "inner": {"kind": "lnog"}}
    assert repair_value(SCHEMA, value, lossless=True).value == value
    assert repair_value(SCHEMA, {"words": "a", "limit": "5"}, lossless=True).value["limit"] == 5


def test_a_note_names_the_field_and_the_fields_that_there_are() -> None:
    (repair,) = repair_value(SCHEMA, {"words": "a", "top_k": 5}).repairs
    assert repair.note.startswith("top_k:")
    assert "words, limit" in repair.note


@pytest.mark.parametrize(
    "name", ["SearchLibrary", "search-library", "functions.search_library", "tools/search_library"]
)
def test_a_name_in_other_letters_is_the_same_name(name: str) -> None:
    assert find_same_name(name, TOOLS) == "search_library"


@pytest.mark.parametrize("name", ["google", "search", "library_search", ""])
def test_another_name_is_not(name: str) -> None:
    assert find_same_name(name, TOOLS) is None


def test_the_nearest_name_is_taken_only_if_no_other_is_near() -> None:
    assert find_nearest("serch_library", TOOLS) == "search_library"
    assert find_nearest("read_sourc", ("read_source1", "read_source2")) is None
    assert find_nearest("google", TOOLS) is None

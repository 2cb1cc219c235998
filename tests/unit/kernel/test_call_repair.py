"""Tool calls whose form alone is wrong: which call is executed, and for which tools nothing is left out."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from offing.core.tool import SideEffect
from offing.kernel.call_repair import describe_invalid_args, describe_unknown_tool, repair_call
from offing.sdk import ToolCall
from offing.tools.read_source import ReadSource
from offing.tools.search_library import SearchLibrary
from offing.tools.tool import Tool

TOOLS: dict[str, Tool] = {"search_library": SearchLibrary(), "read_source": ReadSource()}
QUERY = {"query": "tower"}


class Sending(SearchLibrary):
    spec = replace(SearchLibrary.spec, name="send", side_effect=SideEffect.AT_MOST_ONCE)


@pytest.mark.parametrize("name", ["functions.search_library", "SearchLibrary", "search-library"])
def test_a_tool_in_other_letters_is_the_tool(name: str) -> None:
    repaired = repair_call(ToolCall(name, QUERY), TOOLS)
    assert repaired is not None
    assert (repaired.call, repaired.names) == (ToolCall("search_library", QUERY), ["tool_name"])


def test_an_extra_argument_is_left_out_and_named() -> None:
    repaired = repair_call(ToolCall("search_library", {**QUERY, "top_k": 3}), TOOLS)
    assert repaired is not None
    assert (repaired.call.args, repaired.names) == (QUERY, ["extra_field"])
    assert repaired.notices == ["top_k: there is no such field and it was left out; the fields are: query, limit."]


def test_a_valid_call_and_one_without_a_meaning_are_not_repaired() -> None:
    assert repair_call(ToolCall("search_library", QUERY), TOOLS) is None
    assert repair_call(ToolCall("google", QUERY), TOOLS) is None
    assert repair_call(ToolCall("search_library", {}), TOOLS) is None


def test_nothing_is_left_out_of_a_call_with_a_side_effect() -> None:
    tools: dict[str, Tool] = {"send": Sending()}
    assert repair_call(ToolCall("send", {**QUERY, "dry_run": True}), tools) is None
    assert repair_call(ToolCall("Send", QUERY), tools) is not None


def test_an_error_names_the_field_its_value_and_the_form() -> None:
    with pytest.raises(ValidationError) as error:
        SearchLibrary.spec.args.model_validate({"limit": "many"})
    problem = describe_invalid_args(SearchLibrary.spec, error.value)
    assert "query: is missing." in problem
    assert (
        'limit: Input should be a valid integer, unable to parse string as an integer, but there was "many".' in problem
    )
    assert problem.endswith('{"query": "connection pooling pipelining", "limit": 1}')


def test_an_unknown_tool_is_named_with_the_nearest_one() -> None:
    assert "Did you mean read_source? Use one of: read_source, search_library." in describe_unknown_tool(
        "read_sourse", TOOLS
    )
    assert "Did you mean" not in describe_unknown_tool("google", TOOLS)

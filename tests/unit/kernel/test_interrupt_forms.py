"""Interrupts of known packages have a form; others are asked as free text. What a graph sends is limited."""

from datetime import date
from typing import Any

import orjson
import pytest
from langgraph.types import Interrupt

from offing.core.errors import InvalidInput
from offing.core.input_request import (
    InputResponse,
    check_response,
    parse_interrupt_value,
    prompt_from_json,
    prompt_to_json,
)
from offing.core.response_form import MAX_ARGS_CHARS, MAX_REVIEWS, ResponseShape, ToolReviewDecisionType
from offing.kernel import interrupts
from offing.kernel.interrupt_forms import find_response_form


def hitl(*calls: tuple[str, dict[str, Any]], allowed: tuple[str, ...] = ("approve", "edit", "reject")) -> Any:
    return {
        "action_requests": [{"name": name, "args": args, "description": f"About {name}."} for name, args in calls],
        "review_configs": [{"action_name": name, "allowed_decisions": list(allowed)} for name, _ in calls],
    }


def human(action: str = "send", **config: bool) -> Any:
    args = {"to": "Ada"}
    return {"action_request": {"action": action, "args": args}, "config": config, "description": "Look at it."}


def test_a_request_of_the_middleware_has_a_review_for_each_call() -> None:
    value = hitl(("send", {"to": "Ada"}), ("delete", {"page": 1}))
    value["review_configs"][1]["allowed_decisions"] = ["reject", "approve", "later"]
    form = find_response_form(value, None)
    assert form is not None
    first, second = form.reviews
    assert (form.shape, form.schema) == (ResponseShape.DECISIONS, None)
    assert (first.name, first.args, first.description) == ("send", {"to": "Ada"}, "About send.")
    assert second.decisions == (ToolReviewDecisionType.APPROVE, ToolReviewDecisionType.REJECT)


def test_one_configuration_for_each_tool_is_enough() -> None:
    value = hitl(("send", {"n": 1}), ("send", {"n": 2}), ("delete", {}))
    value["review_configs"] = [
        {"action_name": "delete", "allowed_decisions": ["reject"]},
        {"action_name": "send", "allowed_decisions": ["approve"]},
    ]
    form = find_response_form(value, None)
    assert form is not None
    assert [one.decisions for one in form.reviews] == [("approve",), ("approve",), ("reject",)]


def test_two_calls_of_one_tool_have_each_their_own_configuration() -> None:
    value = hitl(("send", {"n": 1}), ("send", {"n": 2}))
    value["review_configs"][1]["allowed_decisions"] = ["reject"]
    form = find_response_form(value, None)
    assert form is not None
    assert form.reviews[1].decisions == ("reject",)


def test_words_that_only_repeat_the_call_are_left_out() -> None:
    value = hitl(("send", {"to": "Ada"}))
    value["action_requests"][0]["description"] = "Tool execution requires approval\n\nTool: send\nArgs: {'to': 'Ada'}"
    form = find_response_form(value, None)
    assert form is not None
    assert form.reviews[0].description == "Tool execution requires approval"


def test_human_interrupts_are_known_alone_and_in_a_list() -> None:
    alone = human(allow_accept=True, allow_ignore=True, allow_edit=False)
    for value in (alone, [alone], [alone, human("drop", allow_respond=True)]):
        form = find_response_form(value, None)
        assert form is not None
        assert form.shape is ResponseShape.RESPONSES
        assert form.reviews[0].decisions == (ToolReviewDecisionType.APPROVE, ToolReviewDecisionType.IGNORE)
        assert form.reviews[0].description == "Look at it."


def test_an_interrupt_with_a_schema_has_that_form() -> None:
    form = find_response_form("Shall I?", {"type": "object", "required": ["decision"]})
    assert form is not None
    assert (form.shape, form.schema) == (ResponseShape.VALUE, {"type": "object", "required": ["decision"]})


def test_questions_of_an_mcp_server_are_answered_under_their_keys() -> None:
    expected = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
    requests = [
        {"key": "a", "message": "Which year?", "mode": "form", "requested_schema": expected},
        {"key": "b", "message": "Sign in.", "mode": "url", "url": "https://example.org"},
    ]
    prompt = interrupts.prompt_from_interrupt(
        Interrupt({"type": "mcp_elicitation", "tool_name": "book", "requests": requests})
    )
    right = {"responses": {"a": {"action": "accept", "content": {"year": 1990}}, "b": {"action": "decline"}}}
    assert parse_interrupt_value(check_response(prompt, InputResponse(text=orjson.dumps(right).decode()))) == right
    wrong = (
        {"responses": {"a": {"action": "cancel"}}},
        {"responses": {"a": {"action": "accept", "content": {"year": "x"}}, "b": {"action": "accept"}}},
    )
    for value in wrong:
        with pytest.raises(InvalidInput, match=r"text\.responses\.(b|a\.content\.year)"):
            check_response(prompt, InputResponse(text=orjson.dumps(value).decode()))


NOTHING: tuple[str, dict[str, Any]] = ("send", {})

UNKNOWN: list[Any] = [
    "Go on?",
    7,
    None,
    [],
    {},
    [{"action_request": {}}],
    {"question": "Which?", "args": {}},
    {"action_requests": []},
    {"action_requests": "send", "review_configs": 3},
    {"action_requests": [{"name": "send", "args": {}}], "review_configs": []},
    {"action_requests": [{"name": "", "args": {}}], "review_configs": [{"action_name": ""}]},
    hitl(("send", {}), allowed=("later",)),
    hitl(*[NOTHING] * (MAX_REVIEWS + 1)),
    human(),
    [human(allow_accept=True), human()],
    {"type": "tool_approval", "name": "send", "args": {}},
    {"type": "mcp_elicitation", "requests": []},
]


@pytest.mark.parametrize("value", UNKNOWN)
def test_an_interrupt_that_is_not_known_has_no_form(value: Any) -> None:
    assert find_response_form(value, None) is None
    assert interrupts.prompt_from_interrupt(Interrupt(value)).response_form is None


def test_arguments_that_are_too_long_are_left_out_and_can_be_decided_about() -> None:
    long = {"body": "x" * MAX_ARGS_CHARS}
    form = find_response_form(hitl(("send", long), ("send", {"to": "Ada"})), None)
    assert form is not None
    assert [one.args for one in form.reviews] == [None, {"to": "Ada"}]
    many = find_response_form(hitl(*[("send", {"body": "x" * (MAX_ARGS_CHARS - 100)})] * 6), None)
    assert many is not None
    assert [one.args is None for one in many.reviews] == [False] * 4 + [True] * 2


def test_a_schema_that_is_too_long_is_left_out() -> None:
    assert find_response_form("Which?", {"enum": ["x" * 60_000]}) is None


def test_what_json_and_postgres_cannot_hold_becomes_text() -> None:
    hostile: Any = {"when": date(2026, 1, 2), 3: float("nan"), "nul": "a\0b", "half": "\ud800c", "set": {1}}
    value = hitl(("se\0nd" + "x" * 300, hostile))
    value["action_requests"][0]["description"] = "y" * 9_000
    form = find_response_form(value, None)
    assert form is not None
    (review,) = form.reviews
    assert review.args == {"when": "2026-01-02", "3": "nan", "nul": "ab", "half": "c", "set": [1]}
    assert "\0" not in review.name
    assert (len(review.name), len(review.description)) == (200, 4_000)


def test_a_value_that_is_nested_without_end_is_cut() -> None:
    deep: dict[str, Any] = {}
    deep["in"] = deep
    assert find_response_form(hitl(("send", deep)), None) is not None


def test_the_question_names_the_tool_and_is_the_same_from_its_record() -> None:
    prompt = interrupts.prompt_from_interrupt(Interrupt(hitl(("send", {"to": "Ada"}))))
    both = interrupts.prompt_from_interrupt(Interrupt(hitl(("send", {}), ("drop", {}))))
    assert (prompt.prompt, both.prompt) == ("May the run use send?", "May the run make these 2 tool calls?")
    assert prompt_from_json(orjson.loads(orjson.dumps(prompt_to_json(prompt)))) == prompt

"""What a person answers to a form becomes exactly what the interrupted node reads, or is rejected by its field."""

import json
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.core.input_request import (
    InputKind,
    InputPrompt,
    InputResponse,
    check_response,
    parse_interrupt_value,
    prompt_from_json,
    prompt_to_json,
    summarize_response,
)
from offing.core.response_form import ResponseForm, ResponseShape, ToolReview, ToolReviewDecisionType

ALL = (
    ToolReviewDecisionType.APPROVE,
    ToolReviewDecisionType.EDIT,
    ToolReviewDecisionType.REJECT,
    ToolReviewDecisionType.RESPOND,
)
INBOX = (
    ToolReviewDecisionType.APPROVE,
    ToolReviewDecisionType.EDIT,
    ToolReviewDecisionType.RESPOND,
    ToolReviewDecisionType.IGNORE,
)

APPROVE = {"type": "approve"}
EDIT = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "Bo"}}}


def review(name: str = "send", decisions: tuple[ToolReviewDecisionType, ...] = ALL) -> ToolReview:
    return ToolReview(name, {"to": "Ada", "body": "Hello"}, "It leaves the house.", decisions)


def form_prompt(
    *reviews: ToolReview, shape: ResponseShape = ResponseShape.DECISIONS, schema: Any = None
) -> InputPrompt:
    return InputPrompt(InputKind.INTERRUPT, "May it?", response_form=ResponseForm(shape, reviews, schema))


def read_by_the_graph(prompt: InputPrompt, text: str) -> Any:
    return parse_interrupt_value(check_response(prompt, InputResponse(text=text)))


ONE = form_prompt(review())
TWO = form_prompt(review(), review("delete", (ToolReviewDecisionType.APPROVE, ToolReviewDecisionType.REJECT)))
SINGLE = form_prompt(review(), shape=ResponseShape.DECISION)
LISTED = form_prompt(review(decisions=INBOX), shape=ResponseShape.RESPONSES)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("approve", APPROVE),
        (" Yes ", APPROVE),
        ('"approve"', APPROVE),
        ("reject", {"type": "reject"}),
        ("reject: not\nnow", {"type": "reject", "message": "not\nnow"}),
        ("No, not to her", {"type": "reject", "message": "not to her"}),
        ("respond: it is done", {"type": "respond", "message": "it is done"}),
        ('edit: {"to": "Bo"}', EDIT),
        ('edit {"to": "Bo"}', EDIT),
        ('{"decisions": [{"type": "approve"}]}', APPROVE),
        ('[{"type": "reject", "message": "no"}]', {"type": "reject", "message": "no"}),
        (json.dumps(EDIT), EDIT),
        ('{"type": "edit", "edited_action": {"args": {"to": "Bo"}}, "message": ""}', EDIT),
        ('{"type": "approve", "edited_action": null}', APPROVE),
    ],
)
def test_words_and_json_become_the_decision_that_the_middleware_reads(text: str, decision: Any) -> None:
    assert read_by_the_graph(ONE, text) == {"decisions": [decision]}
    assert read_by_the_graph(SINGLE, text) == decision


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("accept", {"type": "accept", "args": None}),
        ("approve", {"type": "accept", "args": None}),
        ("ignore", {"type": "ignore", "args": None}),
        ("response: later", {"type": "response", "args": "later"}),
        ('[{"type": "response", "args": "later"}]', {"type": "response", "args": "later"}),
        ('edit: {"to": "Bo"}', {"type": "edit", "args": {"action": "send", "args": {"to": "Bo"}}}),
        (
            '{"type": "edit", "args": {"action": "post", "args": {"to": "Bo"}}}',
            {"type": "edit", "args": {"action": "post", "args": {"to": "Bo"}}},
        ),
    ],
)
def test_a_human_interrupt_gets_a_list_of_human_responses(text: str, response: Any) -> None:
    assert read_by_the_graph(LISTED, text) == [response]


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        ("approve", [APPROVE, APPROVE]),
        ("reject: not today", [{"type": "reject", "message": "not today"}] * 2),
        ("approve\n\nreject: why delete?", [APPROVE, {"type": "reject", "message": "why delete?"}]),
        ('edit: {"to": "Bo"}\napprove', [EDIT, APPROVE]),
        (json.dumps({"decisions": [EDIT, APPROVE]}), [EDIT, APPROVE]),
    ],
)
def test_several_calls_are_decided_in_their_order_or_all_at_once(text: str, decisions: Any) -> None:
    assert read_by_the_graph(TWO, text) == {"decisions": decisions}


@pytest.mark.parametrize(
    ("prompt", "text", "field", "words"),
    [
        (ONE, "", "text", "approve, edit: {the arguments as JSON}, reject: why, respond: your text"),
        (ONE, "approve it please", "text", "cannot be combined with the decision approve"),
        (ONE, "perhaps", "text", "not a decision about send"),
        (ONE, "ignore", "text", "Choose one of: approve, edit, reject, respond."),
        (ONE, "edit", "text", "Write them as a JSON object"),
        (ONE, "edit: [1]", "text", "must be an object"),
        (ONE, "respond", "text", "is empty"),
        (ONE, "7", "decisions", "is not a list"),
        (ONE, '{"decisions": []}', "decisions", "has 0 decisions for 1 tool calls"),
        (ONE, '{"decisions": ["approve"]}', "decisions[0]", "not an object with a type"),
        (ONE, '{"decisions": [{"type": "accepted"}]}', "decisions[0].type", "Choose one of"),
        (ONE, '{"type": "respond", "message": " "}', "decisions[0].message", "is empty"),
        (ONE, '{"type": "reject", "message": 3}', "decisions[0].message", "must be a text"),
        (ONE, '{"type": "approve", "message": "fine"}', "decisions[0].message", "Leave it out"),
        (
            ONE,
            '{"type": "approve", "edited_action": {"args": {}}}',
            "decisions[0].edited_action",
            "only allowed for an edit",
        ),
        (ONE, '{"type": "edit"}', "decisions[0].edited_action", "is required for an edit"),
        (ONE, '{"type": "edit", "edited_action": {"args": 1}}', "decisions[0].edited_action.args", "an object"),
        (ONE, '{"type": "reject", "why": "so"}', "decisions[0].why", "is not a field"),
        (ONE, "reject: " + "x" * 20_001, "text", "at most 20000"),
        (ONE, "x" * 100_001, "text", "more than 100000"),
        (ONE, '{"type": "edit", "edited_action": {"args": {"n": 1e999}}}', "text", "number that is too large"),
        (ONE, '{"type": "edit", "edited_action": {"args": {"n": "\\ud800"}}}', "text", "half of a surrogate pair"),
        (ONE, '{"type": "edit", "edited_action": {"args": {"n": NaN}}}', "text", "not a decision"),
        (ONE, "[" * 50_000, "text", "not a decision"),
        (TWO, "respond: done", "text", "Allowed for all: approve, reject."),
        (TWO, 'edit: {"to": "Bo"}', "text", "does not contain a decision about each of the 2"),
        (TWO, "approve\nreject\napprove", "text", "does not contain a decision about each of the 2"),
        (TWO, "approve\nrespond: done", "text", "not a decision that delete allows"),
        (TWO, json.dumps([APPROVE, EDIT]), "decisions[1].type", "not a decision that delete allows"),
        (TWO, json.dumps(APPROVE), "decisions", "one decision per call"),
        (LISTED, "reject", "text", "approve, edit, respond, ignore"),
        (LISTED, '[{"type": "response", "args": null}]', "decisions[0].message", "is empty"),
    ],
)
def test_what_does_not_fit_is_rejected_by_its_field_with_what_would(
    prompt: InputPrompt, text: str, field: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_response(prompt, InputResponse(text=text))
    assert caught.value.field == field
    assert words in str(caught.value)


ARGS = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
STRICT = {
    "oneOf": [
        {"type": "object", "properties": {"type": {"const": "approve"}}, "required": ["type"]},
        {
            "type": "object",
            "properties": {"type": {"const": "edit"}, "edited_action": {"properties": {"args": ARGS}}},
            "required": ["type", "edited_action"],
        },
    ],
    "discriminator": {"propertyName": "type"},
}


def test_edited_arguments_fit_the_tool_where_its_schema_is_known() -> None:
    strict = form_prompt(review(), shape=ResponseShape.DECISION, schema=STRICT)
    assert read_by_the_graph(strict, 'edit: {"to": "Bo"}') == EDIT
    with pytest.raises(InvalidInput, match=r"decisions\[0\]\.edited_action\.args\.to: must be a string"):
        check_response(strict, InputResponse(text='edit: {"to": 3}'))


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "42", "42"),
        ({"type": "string"}, '"42"', "42"),
        ({"type": "string"}, "unchanged", "unchanged"),
        ({"type": "integer"}, "42", 42),
        ({"type": "boolean"}, "true", True),
        ({"enum": ["yes", "no"]}, "yes", "yes"),
        ({"type": "object", "required": ["a"]}, '{"a": 1}', {"a": 1}),
        ({"type": ["string", "null"]}, "null", None),
    ],
)
def test_a_value_is_what_its_schema_says(schema: Any, text: str, value: Any) -> None:
    assert read_by_the_graph(form_prompt(shape=ResponseShape.VALUE, schema=schema), text) == value


@pytest.mark.parametrize("text", ["", "approve", "{", '{"b": 1}', "[1]"])
def test_a_value_that_does_not_fit_its_schema_is_rejected(text: str) -> None:
    prompt = form_prompt(shape=ResponseShape.VALUE, schema={"type": "object", "required": ["a"]})
    with pytest.raises(InvalidInput, match=r"^text"):
        check_response(prompt, InputResponse(text=text))


def test_an_answer_that_was_taken_is_taken_again_and_means_the_same() -> None:
    for request, text in ((ONE, "reject: no"), (SINGLE, "approve"), (LISTED, 'edit: {"to": "Bo"}'), (TWO, "approve")):
        once = check_response(request, InputResponse(text=text))
        assert check_response(request, once) == once


def test_a_form_is_stored_with_the_order_of_its_keys() -> None:
    for request in (ONE, TWO, LISTED, form_prompt(shape=ResponseShape.VALUE, schema={"type": "object", "$defs": {}})):
        stored = prompt_to_json(request)
        assert prompt_from_json(json.loads(json.dumps(stored, sort_keys=True))) == request
    again = prompt_from_json(json.loads(json.dumps(prompt_to_json(ONE), sort_keys=True)))
    assert again.response_form is not None
    assert list(again.response_form.reviews[0].args or ()) == ["to", "body"]


def test_other_questions_are_stored_as_ever() -> None:
    assert "form" not in prompt_to_json(InputPrompt(InputKind.INTERRUPT, "Go on?"))


def test_a_timeline_says_what_was_decided_in_a_line() -> None:
    assert summarize_response(ONE, check_response(ONE, InputResponse(text="reject: not now"))) == "reject: not now"
    assert (
        summarize_response(TWO, check_response(TWO, InputResponse(text="approve\nreject: why?")))
        == "send: approve; delete: reject: why?"
    )

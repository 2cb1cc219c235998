"""A question at the terminal: what is typed becomes an answer that fits, or is asked for again."""

from collections.abc import Awaitable, Callable

import pytest

from offing.cli.input_responses import parse_typed_response, prompt_for_response
from offing.core.errors import InvalidInput
from offing.core.input_request import InputKind, InputPrompt, InputResponse, ReviewDecision
from offing.core.response_form import ResponseForm, ResponseShape, ToolReview, ToolReviewDecisionType

YEAR = InputPrompt(InputKind.FREE_TEXT, "Which year?", choices=("1990", "1991"))
WORDS = InputPrompt(InputKind.FREE_TEXT, "What for?")
MAIL = InputPrompt(InputKind.TOOL, "May the run use send_mail?", "to x")
PLAN = InputPrompt(InputKind.PLAN_REVIEW, "Find it", steps=("look", "write"))
VALUE = InputPrompt(InputKind.INTERRUPT, "Go on with?")
SEND = ToolReview(
    "send",
    {"to": "Ada"},
    "A letter.",
    (ToolReviewDecisionType.APPROVE, ToolReviewDecisionType.EDIT, ToolReviewDecisionType.REJECT),
)
DROP = ToolReview("drop", {"page": 7}, "", (ToolReviewDecisionType.APPROVE, ToolReviewDecisionType.REJECT))
LONG = ToolReview("write", None, "", (ToolReviewDecisionType.APPROVE,))


def reviewed(*reviews: ToolReview) -> InputPrompt:
    form = ResponseForm(ResponseShape.DECISIONS, reviews)
    return InputPrompt(InputKind.INTERRUPT, "May it?", "all of it", response_form=form)


YEAR_FORM = InputPrompt(
    InputKind.INTERRUPT,
    "When?",
    response_form=ResponseForm(ResponseShape.VALUE, schema={"type": "integer", "minimum": 1900}),
)
APPROVED, REJECTED = '{"type": "approve"}', '{"type": "reject", "message": "no"}'


def typing(*lines: str) -> Callable[[], Awaitable[str]]:
    left = iter(lines)

    async def read() -> str:
        return next(left)

    return read


@pytest.mark.parametrize(
    ("prompt", "lines", "answer"),
    [
        (YEAR, ["2"], InputResponse(text="1991")),
        (YEAR, ["1990"], InputResponse(text="1990")),
        (YEAR, ["3", "later", "1"], InputResponse(text="1990")),
        (WORDS, ["", "  to know  "], InputResponse(text="to know")),
        (MAIL, ["y"], InputResponse(approved=True)),
        (MAIL, ["perhaps", "No, not to them"], InputResponse(approved=False, comment="not to them")),
        (PLAN, [""], InputResponse(decision=ReviewDecision.APPROVED)),
        (PLAN, ["e", "read", "think", ""], InputResponse(decision=ReviewDecision.EDITED, steps=("read", "think"))),
        (PLAN, ["e", "", ""], InputResponse(decision=ReviewDecision.APPROVED)),
        (PLAN, ["look at older ones"], InputResponse(decision=ReviewDecision.COMMENTED, comment="look at older ones")),
        (VALUE, ["[1, 2]"], InputResponse(text="[1, 2]")),
        (reviewed(SEND), ["approve"], InputResponse(text=f'{{"decisions": [{APPROVED}]}}')),
        (reviewed(SEND), ["sure", "respond: x", "reject: no"], InputResponse(text=f'{{"decisions": [{REJECTED}]}}')),
        (reviewed(SEND, DROP), ["approve"], InputResponse(text=f'{{"decisions": [{APPROVED}, {APPROVED}]}}')),
        (
            reviewed(SEND, DROP),
            ["each", "approve", "no: no"],
            InputResponse(text=f'{{"decisions": [{APPROVED}, {REJECTED}]}}'),
        ),
        (
            reviewed(SEND, DROP),
            ["each", "approve", "", "y"],
            InputResponse(text=f'{{"decisions": [{APPROVED}, {APPROVED}]}}'),
        ),
        (YEAR_FORM, ["soon", "1800", "1990"], InputResponse(text="1990")),
    ],
)
async def test_what_is_typed_becomes_an_answer_that_fits(
    prompt: InputPrompt, lines: list[str], answer: InputResponse
) -> None:
    assert await prompt_for_response(prompt, typing(*lines), lambda _: None) == answer


async def test_the_end_of_what_is_typed_is_no_answer() -> None:
    async def read() -> str:
        raise EOFError

    with pytest.raises(EOFError):
        await prompt_for_response(YEAR, read, lambda _: None)


async def test_everything_that_is_asked_is_shown() -> None:
    rendered: list[str] = []
    await prompt_for_response(PLAN, typing(""), rendered.append)
    assert rendered[:3] == ["Find it", "  1. look", "  2. write"]


async def test_a_form_shows_each_call_with_what_may_be_typed() -> None:
    rendered: list[str] = []
    await prompt_for_response(reviewed(SEND, DROP), typing("approve"), rendered.append)
    assert rendered == [
        "May it?",
        '1. send\nA letter.\n{\n  "to": "Ada"\n}',
        "   approve, edit: {the arguments as JSON}, reject: why",
        '2. drop\n{\n  "page": 7\n}',
        "   approve, reject: why",
        "Type one decision for all of them, or `each` to decide one by one.",
    ]


async def test_arguments_that_a_form_leaves_out_are_in_the_detail() -> None:
    rendered: list[str] = []
    await prompt_for_response(reviewed(LONG), typing("approve"), rendered.append)
    assert "all of it" in rendered


async def test_a_schema_is_shown_and_what_is_wrong_is_said() -> None:
    rendered: list[str] = []
    await prompt_for_response(YEAR_FORM, typing("1800", "1990"), rendered.append)
    assert '"minimum": 1900' in rendered[1]
    assert "text: must be at least 1900. Use another number." in rendered


async def test_an_answer_that_is_given_at_once_decides_about_each_call_by_a_line() -> None:
    both = reviewed(SEND, DROP)
    inputs = await parse_typed_response(both, "approve\nreject: no", lambda _: None)
    assert inputs == InputResponse(text=f'{{"decisions": [{APPROVED}, {REJECTED}]}}')
    assert await parse_typed_response(PLAN, "e\nread", lambda _: None) == InputResponse(
        decision=ReviewDecision.EDITED, steps=("read",)
    )


async def test_an_answer_that_is_given_at_once_and_does_not_fit_is_rejected_with_what_would() -> None:
    rendered: list[str] = []
    with pytest.raises(InvalidInput, match="--text: is not a valid response"):
        await parse_typed_response(reviewed(SEND), "respond: x", rendered.append)
    assert any("Choose one of: approve, edit, reject." in line for line in rendered)

"""A question at the terminal: what is typed becomes an answer that fits, or is asked for again."""

from collections.abc import Awaitable, Callable

import pytest

from offing.cli.asking import answer_in, asked_for
from offing.core.errors import InvalidInput
from offing.core.question import Answer, Asking, QuestionKind, Verdict
from offing.core.response_form import DecisionType, ResponseForm, ResponseShape, ToolReview

YEAR = Asking(QuestionKind.ASK, "Which year?", choices=("1990", "1991"))
WORDS = Asking(QuestionKind.ASK, "What for?")
MAIL = Asking(QuestionKind.TOOL, "May the run use send_mail?", "to x")
PLAN = Asking(QuestionKind.REVIEW, "Find it", steps=("look", "write"))
VALUE = Asking(QuestionKind.INTERRUPT, "Go on with?")
SEND = ToolReview("send", {"to": "Ada"}, "A letter.", (DecisionType.APPROVE, DecisionType.EDIT, DecisionType.REJECT))
DROP = ToolReview("drop", {"page": 7}, "", (DecisionType.APPROVE, DecisionType.REJECT))
LONG = ToolReview("write", None, "", (DecisionType.APPROVE,))


def reviewed(*reviews: ToolReview) -> Asking:
    form = ResponseForm(ResponseShape.DECISIONS, reviews)
    return Asking(QuestionKind.INTERRUPT, "May it?", "all of it", form=form)


YEAR_FORM = Asking(
    QuestionKind.INTERRUPT, "When?", form=ResponseForm(ResponseShape.VALUE, schema={"type": "integer", "minimum": 1900})
)
APPROVED, REJECTED = '{"type": "approve"}', '{"type": "reject", "message": "no"}'


def typing(*lines: str) -> Callable[[], Awaitable[str]]:
    left = iter(lines)

    async def read() -> str:
        return next(left)

    return read


@pytest.mark.parametrize(
    ("asking", "lines", "answer"),
    [
        (YEAR, ["2"], Answer(text="1991")),
        (YEAR, ["1990"], Answer(text="1990")),
        (YEAR, ["3", "later", "1"], Answer(text="1990")),
        (WORDS, ["", "  to know  "], Answer(text="to know")),
        (MAIL, ["y"], Answer(approved=True)),
        (MAIL, ["perhaps", "No, not to them"], Answer(approved=False, comment="not to them")),
        (PLAN, [""], Answer(verdict=Verdict.APPROVED)),
        (PLAN, ["e", "read", "think", ""], Answer(verdict=Verdict.EDITED, steps=("read", "think"))),
        (PLAN, ["e", "", ""], Answer(verdict=Verdict.APPROVED)),
        (PLAN, ["look at older ones"], Answer(verdict=Verdict.COMMENTED, comment="look at older ones")),
        (VALUE, ["[1, 2]"], Answer(text="[1, 2]")),
        (reviewed(SEND), ["approve"], Answer(text=f'{{"decisions": [{APPROVED}]}}')),
        (reviewed(SEND), ["sure", "respond: x", "reject: no"], Answer(text=f'{{"decisions": [{REJECTED}]}}')),
        (reviewed(SEND, DROP), ["approve"], Answer(text=f'{{"decisions": [{APPROVED}, {APPROVED}]}}')),
        (
            reviewed(SEND, DROP),
            ["each", "approve", "no: no"],
            Answer(text=f'{{"decisions": [{APPROVED}, {REJECTED}]}}'),
        ),
        (reviewed(SEND, DROP), ["each", "approve", "", "y"], Answer(text=f'{{"decisions": [{APPROVED}, {APPROVED}]}}')),
        (YEAR_FORM, ["soon", "1800", "1990"], Answer(text="1990")),
    ],
)
async def test_what_is_typed_becomes_an_answer_that_fits(asking: Asking, lines: list[str], answer: Answer) -> None:
    assert await asked_for(asking, typing(*lines), lambda _: None) == answer


async def test_the_end_of_what_is_typed_is_no_answer() -> None:
    async def read() -> str:
        raise EOFError

    with pytest.raises(EOFError):
        await asked_for(YEAR, read, lambda _: None)


async def test_everything_that_is_asked_is_shown() -> None:
    shown: list[str] = []
    await asked_for(PLAN, typing(""), shown.append)
    assert shown[:3] == ["Find it", "  1. look", "  2. write"]


async def test_a_form_shows_each_call_with_what_may_be_typed() -> None:
    shown: list[str] = []
    await asked_for(reviewed(SEND, DROP), typing("approve"), shown.append)
    assert shown == [
        "May it?",
        '1. send\nA letter.\n{\n  "to": "Ada"\n}',
        "   approve, edit: {the arguments as JSON}, reject: why",
        '2. drop\n{\n  "page": 7\n}',
        "   approve, reject: why",
        "Type one decision for all of them, or `each` to decide one by one.",
    ]


async def test_arguments_that_a_form_leaves_out_are_in_the_detail() -> None:
    shown: list[str] = []
    await asked_for(reviewed(LONG), typing("approve"), shown.append)
    assert "all of it" in shown


async def test_a_schema_is_shown_and_what_is_wrong_is_said() -> None:
    shown: list[str] = []
    await asked_for(YEAR_FORM, typing("1800", "1990"), shown.append)
    assert '"minimum": 1900' in shown[1]
    assert "text: must be at least 1900. Send another number." in shown


async def test_an_answer_that_is_given_at_once_decides_about_each_call_by_a_line() -> None:
    both = reviewed(SEND, DROP)
    given = await answer_in(both, "approve\nreject: no", lambda _: None)
    assert given == Answer(text=f'{{"decisions": [{APPROVED}, {REJECTED}]}}')
    assert await answer_in(PLAN, "e\nread", lambda _: None) == Answer(verdict=Verdict.EDITED, steps=("read",))


async def test_an_answer_that_is_given_at_once_and_does_not_fit_is_refused_with_what_would() -> None:
    shown: list[str] = []
    with pytest.raises(InvalidInput, match="--say: does not answer"):
        await answer_in(reviewed(SEND), "respond: x", shown.append)
    assert any("Choose one of: approve, edit, reject." in line for line in shown)

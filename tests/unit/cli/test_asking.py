"""A question at the terminal: what is typed becomes an answer that fits, or is asked for again."""

from collections.abc import Awaitable, Callable

import pytest

from offing.cli.asking import asked_for
from offing.core.question import Answer, Asking, QuestionKind, Verdict

YEAR = Asking(QuestionKind.ASK, "Which year?", choices=("1990", "1991"))
WORDS = Asking(QuestionKind.ASK, "What for?")
MAIL = Asking(QuestionKind.TOOL, "May the run use send_mail?", "to x")
PLAN = Asking(QuestionKind.REVIEW, "Find it", steps=("look", "write"))
VALUE = Asking(QuestionKind.INTERRUPT, "Go on with?")


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

"""A step says how many retrieved passages the prompt of its role call did not show."""

from pydantic import BaseModel

from offing.core.model import EngineConfig, EngineResponse, Message
from offing.core.step import CallKey, StepKind
from offing.kernel.step_drafts import draft_role_call
from offing.sdk import Headline, Role


class Text(BaseModel):
    text: str


ROLE = Role("writer", Text, Text, lambda _: (), lambda _: Headline("Written", "in full"), StepKind.ROLE_CALL)


def draft(*counts: int) -> tuple[str, object]:
    messages = tuple(Message("user", ("text",), omitted_passages=n) for n in counts)
    response = EngineResponse(Text(text="t"), messages=messages)
    step = draft_role_call(ROLE, EngineConfig(), response, CallKey(1, "node", 0), 1, 5)
    return step.detail, step.payload.get("omitted_passages")


def test_passages_that_were_not_shown_are_counted_in_the_step_and_said() -> None:
    assert draft(0, 12) == ("in full \u00b7 12 passages not shown", 12)
    assert draft(1) == ("in full \u00b7 1 passage not shown", 1)
    assert draft(2, 3) == ("in full \u00b7 5 passages not shown", 5)


def test_a_prompt_that_shows_everything_is_recorded_as_before() -> None:
    assert draft(0, 0) == ("in full", None)
    assert draft() == ("in full", None)


def test_the_count_is_no_part_of_what_an_engine_continues_from() -> None:
    assert Message("user", ("a",), omitted_passages=3) == Message("user", ("a",))

"""A graph that asks people is rehearsed without any: a test says what they answer."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from offing.core.errors import InvalidInput
from offing.core.question import Verdict
from offing.core.step import StepKind
from offing.langchain import plain_graph
from offing.testing import Answer, OutOfAnswers, rehearse, survives
from tests.workers.asking import asking, deciding

REPLIES = {
    "Find it": Answer(verdict=Verdict.EDITED, steps=("read",)),
    "Which year?": Answer(text="1991"),
    "Delete the draft?": Answer(approved=True),
}


async def test_replies_are_given_by_the_words_of_the_question_and_are_on_record() -> None:
    run = await rehearse(asking, "Why?", replies=REPLIES)
    assert run.state["heard"] == ["edited read 1991 True"]
    assert [step.title for step in run.of(StepKind.ANSWER)] == ["edited", "1991", "approved"]


async def test_a_question_without_a_reply_takes_its_default_or_fails_the_test() -> None:
    run = await rehearse(deciding, "Why?")
    assert run.state["heard"] == ["patient approved"]
    with pytest.raises(OutOfAnswers, match="Find it"):
        await rehearse(asking, "Why?")


async def test_a_reply_that_no_person_could_give_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1990, 1991"):
        await rehearse(asking, "Why?", replies=REPLIES | {"Which year?": Answer(text="1992")})


async def test_answers_are_read_back_after_a_lost_worker() -> None:
    whole = await survives(asking, "Why?", replies=REPLIES)
    assert whole.moments > 5


REQUEST = {
    "action_requests": [{"name": "send", "args": {"to": "Ada"}, "description": "A letter."}],
    "review_configs": [{"action_name": "send", "allowed_decisions": ["approve", "reject"]}],
}


def decide(state: MessagesState) -> dict[str, Any]:
    (decision,) = interrupt(REQUEST)["decisions"]
    return {"messages": [AIMessage(decision["type"])]}


deciding_in_a_form = plain_graph(
    "formed",
    StateGraph(MessagesState).add_node(decide).add_edge(START, "decide").compile(),  # pyright: ignore[reportUnknownMemberType]
    code=__file__,
)


async def test_a_reply_to_a_form_is_held_against_it() -> None:
    run = await rehearse(deciding_in_a_form, "Go.", replies={"May the run use send?": Answer(text="reject: no")})
    assert run.state["messages"][-1].text == "reject"
    with pytest.raises(InvalidInput, match=r"send allows.*approve, reject"):
        await rehearse(deciding_in_a_form, "Go.", replies={"May the run use send?": Answer(text="respond: x")})


async def test_a_lost_worker_asks_for_a_form_once() -> None:
    whole = await survives(deciding_in_a_form, "Go.", replies={"May the run use send?": Answer(text="approve")})
    assert [step.title for step in whole.of(StepKind.ANSWER)] == ["approve"]

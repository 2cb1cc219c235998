"""A graph that asks people is simulated without any: a test says what they answer."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from offing.core.errors import InvalidInput
from offing.core.input_request import ReviewDecision
from offing.core.step import StepKind
from offing.langchain import register_langgraph
from offing.testing import InputResponse, OutOfAnswersError, assert_survives_worker_loss, simulate_run
from tests.workers.input_graphs import asking, deciding

REPLIES = {
    "Find it": InputResponse(decision=ReviewDecision.EDITED, steps=("read",)),
    "Which year?": InputResponse(text="1991"),
    "Delete the draft?": InputResponse(approved=True),
}


async def test_replies_are_given_by_the_words_of_the_question_and_are_on_record() -> None:
    run = await simulate_run(asking, "Why?", input_responses=REPLIES)
    assert run.state["heard"] == ["edited read 1991 True"]
    assert [step.title for step in run.list_steps(StepKind.INPUT_RESPONSE)] == ["edited", "1991", "approved"]


async def test_a_question_without_a_reply_takes_its_default_or_fails_the_test() -> None:
    run = await simulate_run(deciding, "Why?")
    assert run.state["heard"] == ["patient approved"]
    with pytest.raises(OutOfAnswersError, match="Find it"):
        await simulate_run(asking, "Why?")


async def test_a_reply_that_no_person_could_give_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="1990, 1991"):
        await simulate_run(asking, "Why?", input_responses=REPLIES | {"Which year?": InputResponse(text="1992")})


async def test_answers_are_read_back_after_a_crashed_worker() -> None:
    whole = await assert_survives_worker_loss(asking, "Why?", input_responses=REPLIES)
    assert whole.loss_points > 5


REQUEST = {
    "action_requests": [{"name": "send", "args": {"to": "Ada"}, "description": "A letter."}],
    "review_configs": [{"action_name": "send", "allowed_decisions": ["approve", "reject"]}],
}


def decide(state: MessagesState) -> dict[str, Any]:
    (decision,) = interrupt(REQUEST)["decisions"]
    return {"messages": [AIMessage(decision["type"])]}


deciding_in_a_form = register_langgraph(
    "formed",
    StateGraph(MessagesState).add_node(decide).add_edge(START, "decide").compile(),  # pyright: ignore[reportUnknownMemberType]
    code_path=__file__,
)


async def test_a_reply_to_a_form_is_held_against_it() -> None:
    run = await simulate_run(
        deciding_in_a_form, "Go.", input_responses={"May the run use send?": InputResponse(text="reject: no")}
    )
    assert run.state["messages"][-1].text == "reject"
    with pytest.raises(InvalidInput, match=r"send allows.*approve, reject"):
        await simulate_run(
            deciding_in_a_form, "Go.", input_responses={"May the run use send?": InputResponse(text="respond: x")}
        )


async def test_a_crashed_worker_asks_for_a_form_once() -> None:
    whole = await assert_survives_worker_loss(
        deciding_in_a_form, "Go.", input_responses={"May the run use send?": InputResponse(text="approve")}
    )
    assert [step.title for step in whole.list_steps(StepKind.INPUT_RESPONSE)] == ["approve"]

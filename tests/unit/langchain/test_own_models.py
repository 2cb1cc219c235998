"""Chat models that a graph brings along: their calls are recorded, never paid twice, and can be answered by others."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import Field

from offing.core.run import Budget
from offing.core.step import StepKind
from offing.langchain import register_langgraph
from offing.sdk import Graph
from offing.testing import simulate_run
from offing.testing.simulation import SimulatedRun


class CountingModel(GenericFakeChatModel):
    """Answers with its messages, and counts its calls."""

    calls: list[str] = Field(default_factory=list)

    def _generate(self, messages: Any, *more: Any, **named: Any) -> Any:
        self.calls.append(str(messages[-1].text))
        return super()._generate(messages, *more, **named)


def answering(*answers: str | AIMessage) -> CountingModel:
    return CountingModel(messages=iter([one if isinstance(one, AIMessage) else AIMessage(one) for one in answers]))


def registered(*nodes: Any) -> Graph:
    """A graph of nodes in a row."""
    builder = StateGraph(MessagesState).add_sequence(list(nodes))
    builder.add_edge(START, nodes[0].__name__)
    return register_langgraph("guide", builder, code_path=__file__, own_models=True)


def model_calls(run: SimulatedRun) -> Sequence[Any]:
    return [step.payload["output"] for step in run.list_steps(StepKind.ROLE_CALL)]


@pytest.mark.parametrize("way", ["ainvoke", "invoke", "astream", "stream"])
def test_a_call_in_any_way_is_recorded_with_the_whole_message(way: str) -> None:
    model = answering(AIMessage("Rain.", response_metadata={"model_name": "m-1"}))

    async def ask_async(state: MessagesState) -> Any:
        if way == "ainvoke":
            return {"messages": [await model.ainvoke(state["messages"])]}
        (chunk,) = [chunk async for chunk in model.astream(state["messages"])]
        return {"messages": [AIMessage(str(chunk.text))]}

    def ask_blocking(state: MessagesState) -> Any:
        if way == "invoke":
            return {"messages": [model.invoke(state["messages"])]}
        (chunk,) = model.stream(state["messages"])
        return {"messages": [AIMessage(str(chunk.text))]}

    run = asyncio.run(simulate_run(registered(ask_async if way.startswith("a") else ask_blocking), "Weather?"))
    (recorded,) = model_calls(run)
    assert recorded["text"] == "Rain."
    assert recorded["message"]["response_metadata"] == {"model_name": "m-1"}
    assert run.state["messages"][-1].text == "Rain."
    assert model.calls == ["Weather?"]
    assert run.usage.turns == 1


def test_a_recorded_call_is_not_made_again_after_a_crash() -> None:
    async def first(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def second(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke([HumanMessage("And then?")])]}

    model = answering("One.", "Two.")
    points = asyncio.run(simulate_run(registered(first, second), "Weather?")).loss_points
    assert points > 2
    for point in range(points):
        model = answering("One.", "Two.", "Three.")
        model.calls.clear()
        run = asyncio.run(simulate_run(registered(first, second), "Weather?", crash_at=point))
        texts = [one["text"] for one in model_calls(run)]
        assert [str(message.text) for message in run.state["messages"]][1:] == texts
        assert len(model.calls) - len(texts) in (0, 1)  # a call that was in progress is made again


def test_another_engine_answers_in_place_of_the_model() -> None:
    model = answering("Rain.")

    async def ask(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    run = asyncio.run(simulate_run(registered(ask), "Weather?", answers={"agent": [{"text": "Sun."}]}))
    assert run.state["messages"][-1].text == "Sun."
    assert model.calls == []


def test_at_the_limit_of_turns_the_graph_stops_before_the_next_call() -> None:
    model = answering("One.", "Two.")

    async def first(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def second(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    model.calls.clear()
    run = asyncio.run(simulate_run(registered(first, second), "Weather?", budget=Budget(max_turns=1)))
    assert len(model.calls) == 1
    assert [str(message.text) for message in run.state["messages"]] == ["Weather?", "One."]


def test_the_graph_gets_the_error_of_its_model_and_the_failure_is_recorded() -> None:
    model = answering()

    async def ask(state: MessagesState) -> Any:
        try:
            return {"messages": [await model.ainvoke(state["messages"])]}
        except (StopIteration, RuntimeError):
            return {"messages": [AIMessage("The model is down.")]}

    run = asyncio.run(simulate_run(registered(ask), "Weather?"))
    assert run.state["messages"][-1].text == "The model is down."
    assert len(run.list_steps(StepKind.FAILURE)) == 1


def test_an_image_is_named_in_the_record_and_reaches_the_model() -> None:
    model = answering("A gull.")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    async def ask(state: MessagesState) -> Any:
        question = HumanMessage([{"type": "text", "text": "What is it?"}, image])
        return {"messages": [await model.ainvoke([question])]}

    run = asyncio.run(simulate_run(registered(ask), "Weather?"))
    inputs = run.executed_calls[0].inputs
    assert "image_url" in inputs.messages[0].text
    assert "its content is not recorded" in inputs.messages[0].text
    assert "AAAA" not in inputs.messages[0].text
    assert run.state["messages"][-1].text == "A gull."


def test_outside_a_run_a_model_is_untouched(tmp_path: Path) -> None:
    assert answering("Rain.").invoke("Weather?").text == "Rain."

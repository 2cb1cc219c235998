"""What people do next with such graphs, each as small as can be: limits on steps, retries, shapes of answers, streams.

The answer of each says what it came to.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false

import operator
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy
from langchain.tools import tool
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.cache.memory import InMemoryCache
from langgraph.channels.delta import DeltaChannel
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.managed import IsLastStep, RemainingSteps
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy, RetryPolicy, Send
from pydantic import BaseModel
from typing_extensions import TypedDict

from offing.core.run import StopReason
from offing.langchain import OffingChatModel, register_langgraph
from offing.sdk import Graph, ReportDraft, RunContext
from tests.model_provider.replies import Fault, Reply
from tests.peers.expected_failures import BEGUN_AGAIN
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

model = OffingChatModel("agent")


class Words(TypedDict, total=False):
    messages: Annotated[list[Any], operator.add]
    parts: Annotated[list[str], operator.add]
    rounds: int


class Steps(Words):
    last: IsLastStep
    left: RemainingSteps


def registered(name: str, builder: Any, **more: Any) -> Graph:
    return register_langgraph(name, builder, code_path=__file__, **more)


def use(name: str, says: Any, answer: str, question: str = "Begin.", **more: Any) -> Peer:
    return Peer(name, question, says, answer, module="uses", **more)


def echo(received: ReceivedPrompt) -> Reply:
    return says(f"You said: {received.last}")


# Limits on steps ------------------------------------------------------------------------------------------------------


def go_round(state: Steps) -> dict[str, Any]:
    """Until LangGraph says that this is the last step; a guard ends it where it never does."""
    rounds = state.get("rounds", 0) + 1
    ended = "last step" if state["last"] else "never" if rounds > 30 else ""
    return {"rounds": rounds, "messages": [AIMessage(f"{ended} after {rounds}")] if ended else []}


limited_builder = StateGraph(Steps).add_node(go_round).add_edge(START, "go_round")
limited_builder.add_conditional_edges(
    "go_round", lambda state: "__end__" if len(state["messages"]) > 1 else "go_round", ["go_round", "__end__"]
)
limited = registered("limited", limited_builder.compile().with_config({"recursion_limit": 5}))


async def ask_on(state: Steps) -> dict[str, Any]:
    await model.ainvoke(f"Round {state.get('rounds', 0)}")
    return go_round(state)


asking_builder = StateGraph(Steps).add_node(ask_on).add_edge(START, "ask_on")
asking_builder.add_conditional_edges(
    "ask_on", lambda state: "__end__" if len(state["messages"]) > 1 else "ask_on", ["ask_on", "__end__"]
)
limited_asking = registered("limited_asking", asking_builder.compile().with_config({"recursion_limit": 5}))

endless_builder: Any = StateGraph(Words)
endless_builder.add_node("spin", lambda state: {"rounds": state.get("rounds", 0) + 1})
endless_builder.add_edge(START, "spin")
endless_builder.add_conditional_edges(
    "spin", lambda state: "__end__" if state["rounds"] > 200 else "spin", ["spin", "__end__"]
)
endless = registered("endless", endless_builder.compile().with_config({"recursion_limit": 10}))

# Retries, caches, waiting for all -------------------------------------------------------------------------------------

tried: list[int] = []
"""Attempts of the node that fails at first."""


def fails_first(state: Words) -> dict[str, Any]:
    tried.append(1)
    if len(tried) < 3:
        raise ConnectionError("not yet")
    return {"messages": [AIMessage("at last")]}


retried_builder = StateGraph(Words)
retried_builder.add_node("fails", fails_first, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0.01))
retried_builder.add_edge(START, "fails")
retried = registered("retried", retried_builder.compile())


async def costly(state: Words) -> dict[str, Any]:
    return {"messages": [await model.ainvoke("Think hard.")]}


cached_builder = StateGraph(Words)
cached_builder.add_node("costly", costly, cache_policy=CachePolicy(key_func=lambda _: "same"))
cached_builder.add_edge(START, "costly")
cached = registered("cached", cached_builder.compile(cache=InMemoryCache()))


async def part(inputs: dict[str, str]) -> dict[str, Any]:
    return {"parts": [(await model.ainvoke(inputs["of"])).text]}


def join(state: Words) -> dict[str, Any]:
    return {"messages": [AIMessage(" and ".join(sorted(state.get("parts", []))))]}


deferred_builder: Any = StateGraph(Words)
deferred_builder.add_node("part", part)
deferred_builder.add_node("again", lambda state: {})
deferred_builder.add_node("join", join, defer=True)
deferred_builder.add_conditional_edges(START, lambda _: [Send("part", {"of": x}) for x in "abc"], ["part"])
deferred_builder.add_edge(START, "again")
deferred_builder.add_edge("part", "join")
deferred_builder.add_edge("again", "join")
deferred = registered("deferred", deferred_builder.compile())

# State of several kinds -----------------------------------------------------------------------------------------------


def keep_all(state: Any, writes: Any) -> list[str]:
    return [*state, *(word for several in writes for word in several)]


class Deltas(TypedDict, total=False):
    messages: Annotated[list[Any], operator.add]
    words: Annotated[list[str], DeltaChannel(keep_all)]


async def collect(state: Deltas) -> dict[str, Any]:
    answer = await model.ainvoke(f"Word {len(state.get('words', []))}")
    return {"words": [answer.text]}


def tell_kept(state: Deltas) -> dict[str, Any]:
    return {"messages": [AIMessage(str(state.get("words")))]}


deltas_builder = StateGraph(Deltas).add_node(collect).add_node(tell_kept)
deltas_builder.add_edge(START, "collect")
deltas_builder.add_conditional_edges(
    "collect", lambda state: "tell_kept" if len(state["words"]) >= 3 else "collect", ["collect", "tell_kept"]
)
deltas = registered("deltas", deltas_builder.compile())


class Plan(BaseModel):
    """A plan."""

    steps: list[str]


@dataclass
class Planned:
    messages: Annotated[list[Any], operator.add]
    plan: Plan | None = None


async def make_plan(state: Planned) -> dict[str, Any]:
    return {"plan": await model.with_structured_output(Plan).ainvoke("Make a plan.")}


async def follow_plan(state: Planned) -> dict[str, Any]:
    assert isinstance(state.plan, Plan), f"the plan came back as {type(state.plan)}"
    return {"messages": [AIMessage((await model.ainvoke(" then ".join(state.plan.steps))).text)]}


planned_builder = StateGraph(Planned).add_node(make_plan).add_node(follow_plan)
planned_builder.add_edge(START, "make_plan").add_edge("make_plan", "follow_plan")
planned = registered("planned", planned_builder.compile())
planned_named = registered("planned_named", planned_builder.compile(), state_types=(Plan,))


@tool(response_format="content_and_artifact")
def measure(what: str) -> tuple[str, dict[str, Any]]:
    """Measure something."""
    return f"{what} is 4 m long.", {"meters": 4}


async def ask_to_measure(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await model.bind_tools([measure]).ainvoke(state["messages"])]}


def read_artifact(state: MessagesState) -> dict[str, Any]:
    message = state["messages"][-1]
    assert isinstance(message, ToolMessage)
    return {"messages": [AIMessage(f"{message.artifact['meters']} meters")]}


measured_builder = StateGraph(MessagesState).add_node(ask_to_measure).add_node("tools", ToolNode([measure]))
measured_builder.add_node(read_artifact).add_edge(START, "ask_to_measure").add_edge("ask_to_measure", "tools")
measured_builder.add_edge("tools", "read_artifact")
measured = registered("measured", measured_builder.compile())

# Streams, configuration, the functional form --------------------------------------------------------------------------


def tell_progress(state: Words) -> dict[str, Any]:
    get_stream_writer()({"progress": "half way"})
    return {"messages": [AIMessage("told")]}


streamed = registered("streamed", StateGraph(Words).add_node(tell_progress).add_edge(START, "tell_progress").compile())


async def in_style(state: Words, config: RunnableConfig) -> dict[str, Any]:
    chunks = [chunk.text async for chunk in model.astream(f"In style {config['configurable']['style']}")]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    return {"messages": [AIMessage("".join(chunks))]}


styled_builder = StateGraph(Words).add_node(in_style).add_edge(START, "in_style")
styled = registered("styled", styled_builder.compile().with_config({"configurable": {"style": "plain"}}))


@task
async def ask_task(text: str) -> str:
    return (await model.ainvoke(text)).text


@entrypoint()
async def counting_talk(text: str, *, previous: int | None = None) -> Any:
    message = await ask_task(text)
    return entrypoint.final(value={"answer": f"{message} ({previous or 0} before)"}, save=(previous or 0) + 1)


talked = registered(
    "talked", counting_talk, initial_state=lambda run: run.question, answer=lambda values: str(values.get("answer", ""))
)


def tell_progress_here(state: Words) -> dict[str, Any]:
    get_stream_writer()({"progress": "half way"})
    return {"messages": []}


async def deliver(state: Words, runtime: Runtime[Any]) -> dict[str, Any]:
    await runtime.context.submit_report(ReportDraft(title="Told", answer="told", sections=()), StopReason.ANSWERED)
    return {"messages": []}


def native_builder() -> Any:
    schema: Any = RunContext
    builder: Any = StateGraph(Words, context_schema=schema)
    builder.add_node(tell_progress_here).add_node(deliver)
    return builder.add_edge(START, "tell_progress_here").add_edge("tell_progress_here", "deliver")


native = Graph(
    "native",
    "Native",
    "Knows the SDK.",
    "1",
    native_builder,
    initial_state=lambda run: {"messages": [], "parts": []},
    roles=(),
)

# Answers of a shape ---------------------------------------------------------------------------------------------------


class Weather(BaseModel):
    """The weather."""

    degrees: int


def shaped_answer(values: Any) -> str:
    return f"{values['structured_response'].degrees} degrees"


shaped = registered("shaped", create_agent(model, [], response_format=Weather), answer=shaped_answer)
shaped_by_provider = registered(
    "shaped_by_provider", create_agent(model, [], response_format=ProviderStrategy(Weather)), answer=shaped_answer
)


def shaped_lines(received: ReceivedPrompt) -> Reply:
    if received.tools:
        return calls("Weather", degrees=4)
    return says('{"degrees": 4}') if "JSON schema" in received.system_text else Fault(400, "nobody asked for a shape")


def planned_lines(received: ReceivedPrompt) -> Reply:
    return calls("Plan", steps=["look", "leap"]) if received.tools else says(f"I {received.last}.")


USES = (
    use("limited", echo, "last step after 4"),
    use("limited_asking", echo, "last step after 4", fails={"slices": BEGUN_AGAIN}),
    use("retried", echo, "at last"),
    use("cached", lambda _: says("42"), "42"),
    use("deferred", lambda heard: says(heard.last.upper()), "A and B and C"),
    use("deltas", lambda heard: says(f"w{heard.last[-1]}"), "['w0', 'w1', 'w2']"),
    use("planned_named", planned_lines, "I look then leap."),
    use("measured", lambda heard: calls("measure", what="It"), "4 meters", tools=("measure",)),
    use("styled", echo, "You said: In style plain"),
    use("talked", echo, "You said: Begin. (0 before)", follow="On.", follow_answer="You said: On. (1 before)"),
    use("shaped", shaped_lines, "4 degrees"),
    use("shaped_by_provider", shaped_lines, "4 degrees"),
)

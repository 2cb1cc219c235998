"""The check of graphs written for LangGraph alone: what each author's mistake is told as, and that ours are clean."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportDeprecated=false

import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import ModuleType
from typing import Annotated, Any, Literal, TypedDict, cast

import httpx
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from offing.langchain import OffingChatModel, durable_call, register_langgraph
from offing.sdk import Graph
from offing.testing.graph_checks import find_graph_issues
from tests.graphs.langgraph_only import (
    durable_side_effect,
    functional,
    map_reduce,
    react,
    reader,
    review,
    supervisor,
    swarm,
)

ours = OffingChatModel("agent")
theirs = GenericFakeChatModel(messages=iter([]))


class Holder:
    """What an author keeps a model in."""

    def __init__(self, model: Any) -> None:
        self.llm = model

    def work(self, state: MessagesState) -> dict[str, Any]:
        return {"messages": [self.llm.invoke(state["messages"])]}


class Agent:
    __slots__ = ("llm",)

    def __init__(self) -> None:
        self.llm = theirs

    def __call__(self, words: str) -> str:
        return str(self.llm.invoke(words).text)


slotted = Agent()


def by_global(state: MessagesState) -> dict[str, Any]:
    return {"messages": [theirs.invoke(state["messages"])]}


def by_called_function(state: MessagesState) -> dict[str, Any]:
    return by_global(state)


def by_slots(state: MessagesState) -> dict[str, Any]:
    return {"messages": [slotted("?")]}


def made_in_the_node(state: MessagesState) -> dict[str, Any]:
    return {"messages": [GenericFakeChatModel(messages=iter([])).invoke(state["messages"])]}


def by_closure() -> Callable[[MessagesState], dict[str, Any]]:
    model = theirs.bind(stop=["."])

    def work(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    return work


@tool
def look_up(words: str) -> str:
    """Ask another model."""
    return str(theirs.invoke(words).text)


def agent_of(model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_react_agent(model, [])


def one_node(work: Any, state: Any = MessagesState, **more: Any) -> Graph:
    builder = StateGraph(state)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    return register_langgraph("guide", builder, code_path=__file__, **more)


async def rules(graph: Graph) -> set[tuple[str, str]]:
    """Rule and place of each finding."""
    return {(result.rule, result.location) for result in await find_graph_issues(graph)}


NODE = ("foreign-model", "node 'work'")


@pytest.mark.parametrize(
    "work",
    [
        by_global,
        by_called_function,
        by_slots,
        by_closure(),
        Holder(theirs).work,
        RunnableLambda(by_global),
        RunnableLambda(lambda state: state) | theirs,
        ToolNode([look_up]),
    ],
    ids=["global", "helper", "slots", "closure", "method", "lambda", "sequence", "tool"],
)
async def test_a_model_that_was_not_swapped_is_found_at_its_node(work: Any) -> None:
    findings = [finding for finding in await find_graph_issues(one_node(work)) if finding.rule == "foreign-model"]
    assert {(finding.rule, finding.location) for finding in findings} == {NODE}
    assert "GenericFakeChatModel" in findings[0].explanation
    assert "OffingChatModel" in findings[0].remedy


async def test_a_model_that_was_not_swapped_is_found_within_an_agent_and_within_another_graph() -> None:
    assert await rules(register_langgraph("guide", agent_of(theirs), code_path=__file__)) == {
        ("foreign-model", "node 'agent'")
    }
    assert await rules(one_node(agent_of(theirs))) >= {("foreign-model", "node 'work > agent'")}
    assert await rules(one_node(agent_of(ours))) == set()


async def test_a_model_that_a_node_makes_is_found_at_its_line() -> None:
    ((rule, place),) = await rules(one_node(made_in_the_node))
    assert rule == "foreign-model"
    assert place.startswith("testing/test_graph_checks_langgraph.py:")


def init_chat_model(name: str) -> Any:
    """Stands for langchain's."""
    return theirs


init_chat_model.__module__ = "langchain.chat_models.base"


def chosen_by_name(state: MessagesState) -> dict[str, Any]:
    return {"messages": [init_chat_model("openai:gpt-5").invoke(state["messages"])]}


async def test_a_model_that_is_chosen_by_name_is_found_unless_one_of_ours_stands_for_it() -> None:
    (result,) = await find_graph_issues(one_node(chosen_by_name))
    assert (result.rule, "by_name" in result.remedy) == ("foreign-model", True)
    assert await find_graph_issues(one_node(chosen_by_name, models_by_name={"openai:gpt-5": "agent"})) == ()


async def test_a_provider_s_own_client_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("openai")

    class OpenAI:
        pass

    OpenAI.__module__ = "openai._client"
    monkeypatch.setattr(module, "OpenAI", OpenAI, raising=False)
    client = OpenAI()

    def work(state: MessagesState) -> dict[str, Any]:
        return {"messages": [client.create(state["messages"])]}  # type: ignore[attr-defined]

    assert await rules(one_node(work)) == {NODE}


async def test_a_model_of_ours_under_a_name_that_is_not_declared_is_found() -> None:
    assert await rules(one_node(Holder(OffingChatModel("writer")).work)) == {("undeclared-role", "node 'work'")}
    assert await rules(one_node(Holder(OffingChatModel("writer")).work, models=("writer",))) == set()


async def test_waiting_for_a_model_on_the_event_loop_is_found() -> None:
    async def work(state: MessagesState) -> dict[str, Any]:
        prompt = ours.bind(stop=["."])
        return {"messages": [prompt.invoke(state["messages"])]}

    async def well(state: MessagesState) -> dict[str, Any]:
        def within() -> Any:
            return ours.invoke(state["messages"])

        return {"messages": [await ours.ainvoke(state["messages"]), within]}

    ((rule, _),) = await rules(one_node(work))
    assert rule == "blocked-loop"
    assert await rules(one_node(well)) == set()


def catching_all(state: MessagesState) -> dict[str, Any]:
    try:
        return {"messages": [ours.invoke(state["messages"])]}
    except Exception:
        return {"messages": [("assistant", "Sorry.")]}


def letting_through(state: MessagesState) -> dict[str, Any]:
    try:
        return {"messages": [ours.invoke(state["messages"])]}
    except GraphBubbleUp:
        raise
    except Exception:
        return {"messages": [("assistant", "Sorry.")]}


def raising_again(state: MessagesState) -> dict[str, Any]:
    try:
        return {"messages": [ours.invoke(state["messages"])]}
    except Exception as error:
        raise ValueError("no answer") from error


async def test_a_handler_that_would_catch_the_end_of_a_run_is_found() -> None:
    assert {rule for rule, _ in await rules(one_node(catching_all))} == {"swallowed-stop"}
    assert await rules(one_node(letting_through)) == set()
    assert await rules(one_node(raising_again)) == set()


def by_clock(state: MessagesState) -> dict[str, Any]:
    return {"messages": [ours.invoke(f"It is {time.time()}")]}


@tool
def fetch(url: str) -> str:
    """Fetch a page."""
    return httpx.get(url).text


@tool
@durable_call
def fetch_once(url: str) -> str:
    """Fetch a page, once."""
    return f"{httpx.get(url).text} {uuid.uuid4()}"


async def test_what_a_crashed_worker_does_again_is_a_warning_unless_it_is_on_record() -> None:
    (clock,) = await find_graph_issues(one_node(by_clock))
    (outside,) = await find_graph_issues(one_node(ToolNode([fetch])))
    assert (clock.level, outside.level) == ("warning", "warning")
    assert "@durable_call" in outside.remedy
    assert "happen again" in outside.explanation
    assert await find_graph_issues(one_node(ToolNode([fetch_once]))) == ()


class Step(BaseModel):
    what: str


@dataclass
class Note:
    words: str


class Kind(Enum):
    A = "a"


class Level(IntEnum):
    LOW = 1


class Inner(TypedDict):
    note: Note


class Mixed(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    steps: list[Step]
    inner: dict[str, Inner]
    kind: Kind | None
    way: Literal["a", "b"]
    level: Level
    when: "dict[str, list[tuple[int, ...]]] | None"


async def test_classes_that_a_checkpoint_does_not_bring_back_are_found_in_the_state() -> None:
    result = await rules(one_node(Holder(ours).work, Mixed))
    assert result == {("state-type", f"state key {key!r}") for key in ("steps", "inner", "kind")}
    assert await rules(one_node(Holder(ours).work, Mixed, state_types=(Step, Note, Kind))) == set()


class Whole(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    steps: list[Step] = []


async def test_a_pydantic_state_reads_its_own_classes_anew() -> None:
    def work(state: Whole) -> dict[str, Any]:
        return {"messages": [ours.invoke(state.messages)]}

    assert await rules(one_node(work, Whole)) == set()


memory = InMemoryStore()


def by_a_store_of_its_own(state: MessagesState) -> dict[str, Any]:
    memory.put(("notes",), "last", {"text": str(ours.invoke(state["messages"]).text)})
    return {}


def embedded(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0] for _ in texts]


async def test_a_store_is_found_where_it_is_held_and_where_the_run_s_is_not_the_same() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("work", Holder(ours).work)
    builder.add_edge(START, "work")
    index: Any = {"dims": 1, "embed": embedded}

    async def whys(store: InMemoryStore, **more: Any) -> list[str]:
        issues = await find_graph_issues(
            register_langgraph("guide", builder.compile(store=store), code_path=__file__, **more)
        )
        return [one.explanation for one in issues if one.rule == "own-store"]

    filled = InMemoryStore()
    filled.put(("notes",), "first", {"text": "Remember."})
    assert await whys(InMemoryStore()) == []
    assert ["contains items at compile time" in why for why in await whys(filled)] == [True]
    assert ["has an index for semantic search" in why for why in await whys(InMemoryStore(index=index))] == [True]
    assert await whys(InMemoryStore(index=index), store_index=index) == []
    assert await rules(one_node(by_a_store_of_its_own)) == {("own-store", "node 'work'")}


async def test_a_saver_and_a_stop_within_another_graph_are_found() -> None:
    def compiled(**how: Any) -> Any:
        builder = StateGraph(MessagesState)
        builder.add_node("inner", Holder(ours).work)
        builder.add_edge(START, "inner")
        return builder.compile(**how)

    assert await rules(one_node(compiled(checkpointer=InMemorySaver()))) == {("own-checkpointer", "node 'work'")}
    assert await rules(one_node(compiled(checkpointer=True))) == set()
    assert await rules(one_node(compiled(cache=InMemoryCache()))) == {("own-cache", "node 'work'")}
    assert await rules(one_node(compiled(interrupt_before=["inner"]))) == {("interrupt", "node 'work'")}
    stopping = register_langgraph("guide", compiled(interrupt_before=["inner"]), code_path=__file__)
    assert {rule for rule, _ in await rules(stopping)} == {"build"}


class Topic(TypedDict):
    topic: str
    words: str


def on_topic(state: Topic) -> dict[str, Any]:
    return {"words": str(ours.invoke(state["topic"]).text)}


async def test_a_question_that_nothing_takes_and_an_answer_that_nothing_has_are_found() -> None:
    (start, answer) = sorted(
        await find_graph_issues(one_node(on_topic, Topic)), key=lambda result: result.rule, reverse=True
    )
    assert (start.rule, answer.rule) == ("start", "no-report")
    assert "question_key='topic'" in start.remedy
    assert await rules(one_node(on_topic, Topic, question_key="topic", answer="words")) == set()

    def broken(run: Any) -> dict[str, Any]:
        return {"topic": run.nothing}

    raising = one_node(on_topic, Topic, initial_state=broken, answer="words")
    assert [result.explanation for result in await find_graph_issues(raising)] == [
        "`initial_state` raises AttributeError: 'RunInfo' object has no attribute 'nothing'."
    ]


@dataclass
class Settings:
    language: str


async def test_a_context_that_is_not_given_is_found() -> None:
    builder = StateGraph(MessagesState, context_schema=Settings)
    builder.add_node("work", Holder(ours).work)
    builder.add_edge(START, "work")
    (result,) = await find_graph_issues(register_langgraph("guide", builder, code_path=__file__))
    assert (result.rule, result.level) == ("no-context", "warning")
    inputs = register_langgraph("guide", builder, code_path=__file__, context=lambda run: Settings("en"))
    assert await find_graph_issues(inputs) == ()


async def awaited(version: str, state: dict[str, Any]) -> dict[str, Any]:
    return state


def upgraded(version: str, state: dict[str, Any]) -> dict[str, Any]:
    return state


def without_version(state: dict[str, Any]) -> dict[str, Any]:
    return state


@pytest.mark.parametrize(
    ("upgrade", "why"),
    [
        (upgraded, []),
        (
            without_version,
            ["`upgrade_state` cannot be called with a version and a state: too many positional arguments."],
        ),
        (awaited, ["`upgrade_state` is async, but it is called without await."]),
    ],
)
async def test_an_upgrade_that_a_worker_cannot_call_is_found(upgrade: Any, why: list[str]) -> None:
    assert [
        result.explanation
        for result in await find_graph_issues(one_node(Holder(ours).work, MessagesState, upgrade_state=upgrade))
    ] == why


@pytest.mark.parametrize(
    "module",
    [functional, durable_side_effect, map_reduce, react, reader, review, supervisor, swarm],
    ids=lambda m: m.__name__,
)
async def test_langgraph_graphs_of_ours_have_no_fault(module: Any) -> None:
    assert await find_graph_issues(cast(Graph, module.graph)) == ()

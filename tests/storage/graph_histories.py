"""Graphs of each kind, and what is done to them by LangGraph's own interface; what comes of it is plain data."""

import operator
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, Send, interrupt
from typing_extensions import TypedDict

Saw = list[Any]
Play = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Saw]]
"""Given what compiles the graph anew with a checkpointer, plays with it and says what it saw."""

AT: RunnableConfig = {"configurable": {"thread_id": "t"}}


def _appended(value: list[Any], new: Sequence[Any]) -> list[Any]:
    return [*value, *(item for items in new for item in items)]


def _merged(value: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    return {**value, **new}


class Counts(TypedDict):
    count: int


class Delta(Counts):
    log: Annotated[list[str], DeltaChannel(_appended, snapshot_frequency=3)]


class Files(Counts):
    files: Annotated[dict[str, str], _merged]


class Counted(Counts):
    log: Annotated[list[str], operator.add]


class Noted(Counts):
    notes: Annotated[list[str], operator.add]


TEXT = "x" * 300
"""Long enough to be stored beside the checkpoint."""


def messages() -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        count = len(state["messages"])
        return {"messages": [AIMessage(f"{TEXT} {count}", id=f"a{count}")]}

    def more(state: MessagesState) -> str:
        return END if len(state["messages"]) % 5 == 0 else "answer"

    builder: Any = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", more)
    return builder


def until(count: int) -> Callable[[Counts], str]:
    def more(state: Counts) -> str:
        return END if state["count"] % count == 0 else "work"

    return more


def while_below(count: int, node: str) -> Callable[[Counts], str]:
    def more(state: Counts) -> str:
        return node if state["count"] < count else END

    return more


def logged(*log: str) -> Callable[[Counted], dict[str, Any]]:
    def node(_: Counted) -> dict[str, Any]:
        return {"log": list(log)}

    return node


def counted(*log: str) -> Callable[[Counted], dict[str, Any]]:
    """A node that counts and adds to the log."""

    def node(state: Counted) -> dict[str, Any]:
        return {"log": list(log), "count": state["count"] + 1}

    return node


def delta() -> Any:
    def work(state: Delta) -> dict[str, Any]:
        return {"log": [f"{TEXT} {state['count']}"], "count": state["count"] + 1}

    builder: Any = StateGraph(Delta)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", until(7))
    return builder


def files() -> Any:
    def work(state: Files) -> dict[str, Any]:
        n = state["count"]
        return {"files": {f"{n % 4}.txt": f"{TEXT} {n}", "log.txt": "y" * n}, "count": n + 1}

    builder: Any = StateGraph(Files)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", until(9))
    return builder


def sends() -> Any:
    def spread(state: Counted) -> list[Send]:
        return [Send("part", {"count": n, "log": []}) for n in range(state["count"])]

    def part(state: Counted) -> dict[str, Any]:
        return {"log": [f"{TEXT} part {state['count']}"]}

    builder: Any = StateGraph(Counted)
    builder.add_node("begin", logged("begin"))
    builder.add_node("part", part)
    builder.add_node("end", counted("end"))
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", spread, ["part"])
    builder.add_edge("part", "end")
    return builder


def asking() -> Any:
    """Two tasks side by side, one of which asks."""

    def ask(state: Counted) -> dict[str, Any]:
        return {"log": [f"asked: {interrupt('Which?')}, then {interrupt('And?')}"]}

    builder: Any = StateGraph(Counted)
    builder.add_node("begin", logged(TEXT))
    builder.add_node("ask", ask)
    builder.add_node("beside", logged("beside"))
    builder.add_node("end", counted())
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "ask")
    builder.add_edge("begin", "beside")
    builder.add_edge(["ask", "beside"], "end")
    return builder


def nested(checkpointer: bool | None) -> Callable[[], Any]:
    """A subgraph that asks in its second node; with `True` it remembers its own state from call to call."""

    def build() -> Any:
        def inside(state: Counted) -> dict[str, Any]:
            return {"log": [f"{TEXT} inside {len(state['log'])}"]}

        def ask(state: Counted) -> dict[str, Any]:
            return {"log": [f"asked: {interrupt('Which?')}"], "count": state["count"] + 1}

        inner: Any = StateGraph(Counted)
        inner.add_node("inside", inside)
        inner.add_node("ask", ask)
        inner.add_edge(START, "inside")
        inner.add_edge("inside", "ask")
        builder: Any = StateGraph(Counted)
        builder.add_node("inner", inner.compile(checkpointer=checkpointer))
        builder.add_node("end", logged("end"))
        builder.add_edge(START, "inner")
        builder.add_edge("inner", "end")
        return builder

    return build


def remembering() -> Any:
    """A loop that calls a subgraph with a memory until the lengths of its memory sum up to six: 1 + 2 + 3."""

    def begin(state: Counted) -> dict[str, Any]:
        return {"log": [str(state["count"])]}

    def note(state: Noted) -> dict[str, Any]:
        return {"notes": [f"{TEXT} {state['count']}"]}

    def add(state: Noted) -> dict[str, Any]:
        return {"count": state["count"] + len(state["notes"])}

    inner: Any = StateGraph(Noted)
    inner.add_node("note", note)
    inner.add_node("add", add)
    inner.add_edge(START, "note")
    inner.add_edge("note", "add")
    builder: Any = StateGraph(Counted)
    builder.add_node("begin", begin)
    builder.add_node("inner", inner.compile(checkpointer=True))
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "inner")
    builder.add_conditional_edges("inner", while_below(6, "begin"), ["begin", END])
    return builder


def remembering_within() -> Any:
    """Calls that loop as a subgraph, and once more: 1 + 2 + 3 + 4."""
    builder: Any = StateGraph(Counted)
    builder.add_node("middle", remembering().compile())
    builder.add_edge(START, "middle")
    builder.add_conditional_edges("middle", while_below(10, "middle"), ["middle", END])
    return builder


def plain(value: Any) -> Any:
    """Messages as their words, interrupts as what they ask."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [plain(item) for item in cast(list[Any], value)]
    if isinstance(value, Interrupt):
        return value.value
    return value.content if isinstance(value, BaseMessage) else value


def seen(snapshot: Any) -> Any:
    requests = [interrupt.value for task in snapshot.tasks for interrupt in task.interrupts]
    metadata: dict[str, Any] = snapshot.metadata or {}
    return plain(snapshot.values), snapshot.next, metadata.get("step"), metadata.get("source"), requests


async def history(graph: Any) -> list[Any]:
    return [snapshot async for snapshot in graph.aget_state_history(AT)]


async def travelled(open: Callable[[], Awaitable[Any]], inputs: Any, again: Any, change: Mapping[str, Any]) -> Saw:
    """Run twice, fork in the middle, change an earlier state and continue from there; `open` as in `Play`."""
    saw: Saw = [plain(await (await open()).ainvoke(inputs, AT)), plain(await (await open()).ainvoke(again, AT))]
    past = await history(await open())
    saw += [[seen(snapshot) for snapshot in past], seen(await (await open()).aget_state(past[3].config))]
    saw.append(plain(await (await open()).ainvoke(None, past[4].config)))
    changed = await (await open()).aupdate_state(past[5].config, change)
    saw += [seen(await (await open()).aget_state(changed)), plain(await (await open()).ainvoke(None, changed))]
    saw.append(plain(await (await open()).ainvoke(again, AT)))
    return [*saw, [seen(snapshot) for snapshot in await history(await open())]]


async def answered(open: Callable[[], Awaitable[Any]], answers: Sequence[str]) -> Saw:
    """Answer what is asked, then go back to before the first answer and give others."""
    saw: Saw = [plain(await (await open()).ainvoke({"count": 1, "log": []}, AT))]
    for text in answers:
        saw += [
            seen(await (await open()).aget_state(AT)),
            plain(await (await open()).ainvoke(Command(resume=text), AT)),
        ]
    past = await history(await open())
    saw.append([seen(snapshot)[:4] for snapshot in past])
    waiting = next(snapshot for snapshot in past if snapshot.next and snapshot.metadata["step"] <= 1)
    saw.append(plain(await (await open()).ainvoke(None, waiting.config)))
    for text in answers:
        saw.append(plain(await (await open()).ainvoke(Command(resume=f"other {text}"), AT)))
    return [*saw, [seen(snapshot)[:4] for snapshot in await history(await open())]]


async def updated(open: Callable[[], Awaitable[Any]]) -> Saw:
    """Update the state twice while a subgraph waits, and answer."""
    saw: Saw = [plain(await (await open()).ainvoke({"count": 1, "log": []}, AT))]
    for text in ("one", "two"):
        await (await open()).aupdate_state(AT, {"log": [text]}, as_node=START)
    saw.append(plain(await (await open()).ainvoke(Command(resume="this"), AT)))
    return [*saw, [seen(snapshot) for snapshot in await history(await open())]]


async def played_twice(open: Callable[[], Awaitable[Any]]) -> Saw:
    """Run twice in the same thread."""
    inputs: dict[str, Any] = {"count": 0, "log": []}
    saw: Saw = [plain(await (await open()).ainvoke(inputs, AT)) for _ in range(2)]
    return [*saw, [seen(snapshot) for snapshot in await history(await open())]]


def _words(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=text)]}


PLAYS: dict[str, tuple[Callable[[], Any], Play]] = {
    "messages": (messages, lambda open: travelled(open, _words("one"), _words("two"), _words("changed"))),
    "delta": (delta, lambda open: travelled(open, {"log": ["in"], "count": 0}, {"log": ["2"]}, {"log": ["changed"]})),
    "files": (
        files,
        lambda open: travelled(
            open, {"files": {"a": TEXT}, "count": 0}, {"files": {"b": TEXT}}, {"files": {"a": "changed"}}
        ),
    ),
    "sends": (sends, lambda open: travelled(open, {"count": 3, "log": []}, {"log": ["2"]}, {"log": ["changed"]})),
    "interrupts": (asking, lambda open: answered(open, ["this", "that"])),
    "subgraph": (nested(None), lambda open: answered(open, ["this"])),
    "subgraph with a memory": (nested(True), lambda open: answered(open, ["this"])),
    "calls of a subgraph with a memory": (remembering, played_twice),
    "calls of a subgraph with a memory within another": (remembering_within, played_twice),
}

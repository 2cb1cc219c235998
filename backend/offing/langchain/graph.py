"""A LangGraph graph as one that runs can name, without a change to its code: the only home of its registration."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.report import Evidence, ReportDraft
from offing.langchain.named_models import check_names, models_by_name
from offing.langchain.report import draft, last_words, messages_in
from offing.langchain.role import chat_role
from offing.langchain.tool_calls import tools_watched
from offing.sdk.context import RunView
from offing.sdk.graph import Graph, content_hash
from offing.sdk.plain import Plain

MESSAGES = "messages"

Start = Callable[[RunView], dict[str, Any]]
Answered = Callable[[Mapping[str, Any]], str]
Upgrade = Callable[[str, dict[str, Any]], dict[str, Any] | None]


def plain_graph(
    name: str,
    build: Callable[[], Any] | Any,
    *,
    code: Path | str,
    title: str = "",
    description: str = "",
    models: Sequence[str] = ("agent",),
    engine: str = "",
    question_key: str = MESSAGES,
    answer: str | Answered = MESSAGES,
    start: Start | None = None,
    context: Callable[[RunView], Any] | None = None,
    state_types: Sequence[type] = (),
    tools: Sequence[Any] = (),
    by_name: Mapping[str, str] | None = None,
    store_index: Mapping[str, Any] | None = None,
    store_ttl: Mapping[str, Any] | None = None,
    upgrade: Upgrade | None = None,
) -> Graph:
    """Register a graph that knows nothing of this platform.

    `build`: the graph, compiled or not, or a function that makes it. `code`: the file or folder that its version is
    made of, usually `__file__`. `models`: the names of its `OffingChatModel`s, which engines are configured by.
    `engine`: what answers them unless a run says otherwise, as `litellm:openai/gpt-4o-mini`. `question_key`: the state
    key that takes the question; `messages` takes it as a person's message. `answer`: the state key, or a function of
    the last values, that holds the answer. `start`: the whole input, in place of the question alone. `context`: the
    graph's own runtime context. `state_types`: its own classes that its state holds. `tools`: own tools of ours that
    `offing_tools` offers it, as in `Graph.tools`. `by_name`: which of `models` stands for a model that the graph's code
    names, as {"openai:gpt-5": "agent"}; `*` is any other. Such a graph is given as a function that imports and builds
    it. `store_index` and `store_ttl`: how LangGraph's store searches its items by meaning, and after how long they
    expire, in LangGraph's words: {"dims": 1536, "embed": embed, "fields": ["text"]} and {"default_ttl": 60}. `upgrade`:
    makes a state of this version from that of another, as in `Graph.upgrade`; keys that it leaves out are not set.
    Raises InvalidInput.
    """
    if not models or len(set(models)) < len(models):
        raise InvalidInput("models", "names must be given, each once", "Name each OffingChatModel of the graph.")
    names = dict(by_name or {})
    check_names(names, tuple(models))
    built = build if callable(build) and not hasattr(build, "ainvoke") else lambda: build
    return Graph(
        name=name,
        title=title or name.replace("_", " ").replace("-", " ").capitalize(),
        description=description or "A LangGraph graph.",
        version=version_of(Path(code)),
        build=lambda: _built(name, built, names),
        start=start or (lambda run: {question_key: _question(question_key, run)}),
        roles=tuple(chat_role(model) for model in models),
        engines=dict.fromkeys(models, engine) if engine else {},
        tools=tuple(tools),
        upgrade=upgrade,
        plain=Plain(_answer(answer), context, tuple(state_types), partial(_around, names), store_index, store_ttl),
    )


def version_of(code: Path) -> str:
    """The content hash of a folder, or of the folder that a file stands in."""
    return content_hash(code if code.is_dir() else code.resolve().parent)


def _question(key: str, run: RunView) -> Any:
    return [HumanMessage(run.question)] if key == MESSAGES else run.question


def _answer(where: str | Answered) -> Callable[[RunView, Mapping[str, Any], tuple[Evidence, ...]], ReportDraft | None]:
    def written(run: RunView, values: Mapping[str, Any], evidence: tuple[Evidence, ...]) -> ReportDraft | None:
        return draft(run.question, _text(where, values), evidence)

    return written


def _text(where: str | Answered, values: Mapping[str, Any]) -> str:
    if not isinstance(where, str):
        return where(values)
    if found := messages_in(values, where):
        return last_words(found)
    value: Any = values.get(where, "")
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, BaseModel):
        return value.model_dump_json(indent=2)
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A graph that its author has compiled already, where one that is not yet is expected."""

    graph: Any

    def compile(self, checkpointer: Any = None) -> Any:
        """The same graph with this saver in place of its own."""
        return self.graph.copy({"checkpointer": checkpointer})

    def __getattr__(self, name: str) -> Any:
        """What else is asked of it is what it was compiled from."""
        return getattr(self.graph.builder, name)


@contextmanager
def _around(names: Mapping[str, str]) -> Generator[None]:
    """What is in force while the graph is executed."""
    with models_by_name(names), tools_watched():
        yield


def _built(name: str, build: Callable[[], Any], names: Mapping[str, str]) -> Any:
    with models_by_name(names):
        return _uncompiled(name, build())


def _uncompiled(name: str, graph: Any) -> Any:
    """What gives the graph when it is compiled. Raises InvalidInput for one that stops for somebody at a debugger."""
    if hasattr(graph, "compile"):
        return graph
    if getattr(graph, "interrupt_before_nodes", None) or getattr(graph, "interrupt_after_nodes", None):
        raise InvalidInput(
            name, "it is compiled with interrupt_before or interrupt_after", "Call interrupt() in a node instead."
        )
    return _Ready(graph)

"""Registration of a LangGraph graph without changes to its code."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.report import Evidence, ReportDraft
from offing.langchain.named_models import check_model_names, use_models_by_name
from offing.langchain.own_models import record_own_models
from offing.langchain.report import draft_report, find_last_answer, list_messages
from offing.langchain.role import create_chat_role
from offing.langchain.tool_calls import record_graph_tools
from offing.models.own_model import OWN_ENGINE
from offing.sdk.context import RunInfo
from offing.sdk.graph import Graph, compute_content_hash
from offing.sdk.langgraph_adapter import LangGraphAdapter

MESSAGES_KEY = "messages"

InitialStateFunction = Callable[[RunInfo], dict[str, Any]]
AnswerFunction = Callable[[Mapping[str, Any]], str]
UpgradeFunction = Callable[[str, dict[str, Any]], dict[str, Any] | None]


def register_langgraph(
    name: str,
    build: Callable[[], Any] | Any,
    *,
    code_path: Path | str,
    title: str = "",
    description: str = "",
    models: Sequence[str] = ("agent",),
    engine: str = "",
    question_key: str = MESSAGES_KEY,
    answer: str | AnswerFunction = MESSAGES_KEY,
    initial_state: InitialStateFunction | None = None,
    context: Callable[[RunInfo], Any] | None = None,
    state_types: Sequence[type] = (),
    tools: Sequence[Any] = (),
    models_by_name: Mapping[str, str] | None = None,
    store_index: Mapping[str, Any] | None = None,
    store_ttl: Mapping[str, Any] | None = None,
    upgrade_state: UpgradeFunction | None = None,
    own_models: bool = False,
) -> Graph:
    """Register a LangGraph graph that was written without the SDK.

    `build` is the graph, compiled or not, or a function that returns it. `code_path` is the file or
    folder that its version is computed from, usually `__file__`. `models` are the names of its
    `OffingChatModel`s, by which engines are configured. `engine` is their default engine, such as
    `litellm:openai/gpt-4o-mini`. `question_key` is the state key for the question; `messages` receives
    it as a user message. `answer` is the state key that holds the answer, or a function of the final
    values. `initial_state` returns the whole input instead of the question alone. `context` returns
    the graph's own runtime context. `state_types` are the graph's own classes in its state. `tools` are
    custom tools that `offing_tools` provides, as in `Graph.tools`.

    `models_by_name` maps model names in the graph's code to names of `models`, such as {"openai:gpt-5":
    "agent"}; `*` is any other name. Such a graph must be a function that imports and builds it.
    `store_index` and `store_ttl` configure semantic search and expiry of items in LangGraph's store, in
    LangGraph's format: {"dims": 1536, "embed": embed, "fields": ["text"]} and {"default_ttl": 60}.
    `upgrade_state` converts a state of another version, as in `Graph.upgrade_state`; keys that it
    leaves out are not set.

    With `own_models`, calls of the graph's own LangChain chat models are recorded as calls of the first
    of `models`, whose default engine is then `own`: the model itself. Raises InvalidInput.
    """
    if not models or len(set(models)) < len(models):
        raise InvalidInput(
            "models",
            "`models` is empty or contains a name twice",
            "List the name of each OffingChatModel of the graph once.",
        )
    names = dict(models_by_name or {})
    check_model_names(names, tuple(models))
    if own_models:
        engine = engine or OWN_ENGINE
    built = build if callable(build) and not hasattr(build, "ainvoke") else lambda: build
    return Graph(
        name=name,
        title=title or name.replace("_", " ").replace("-", " ").capitalize(),
        description=description or "A LangGraph graph.",
        version=compute_version(Path(code_path)),
        build=lambda: _build_graph(name, built, names),
        initial_state=initial_state or (lambda run: {question_key: _build_question_value(question_key, run)}),
        roles=tuple(create_chat_role(model) for model in models),
        engines=dict.fromkeys(models, engine) if engine else {},
        tools=tuple(tools),
        upgrade_state=upgrade_state,
        langgraph_adapter=LangGraphAdapter(
            _build_report_function(answer),
            context,
            tuple(state_types),
            partial(_open_execution_context, names, models[0] if own_models else ""),
            store_index,
            store_ttl,
            own_models,
        ),
    )


def compute_version(code_path: Path) -> str:
    """Return the content hash of a folder, or of the folder that contains a file."""
    return compute_content_hash(code_path if code_path.is_dir() else code_path.resolve().parent)


def _build_question_value(key: str, run: RunInfo) -> Any:
    return [HumanMessage(run.question)] if key == MESSAGES_KEY else run.question


def _build_report_function(
    where: str | AnswerFunction,
) -> Callable[[RunInfo, Mapping[str, Any], tuple[Evidence, ...]], ReportDraft | None]:
    def written(run: RunInfo, values: Mapping[str, Any], evidence: tuple[Evidence, ...]) -> ReportDraft | None:
        return draft_report(run.question, _extract_answer(where, values), evidence)

    return written


def _extract_answer(where: str | AnswerFunction, values: Mapping[str, Any]) -> str:
    if not isinstance(where, str):
        return where(values)
    if messages := list_messages(values, where):
        return find_last_answer(messages)
    value: Any = values.get(where, "")
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, BaseModel):
        return value.model_dump_json(indent=2)
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class _CompiledGraph:
    """Adapter for a graph that its author has already compiled, where an uncompiled one is expected."""

    graph: Any

    def compile(self, checkpointer: Any = None) -> Any:
        """Return a copy of the graph with this checkpointer instead of its own."""
        return self.graph.copy({"checkpointer": checkpointer})

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute from the builder of the compiled graph."""
        return getattr(self.graph.builder, name)


@contextmanager
def _open_execution_context(names: Mapping[str, str], own_models_role: str) -> Generator[None]:
    """Open the context in which the graph is built and executed."""
    own_models = record_own_models(own_models_role) if own_models_role else nullcontext()
    with use_models_by_name(names), record_graph_tools(), own_models:
        yield


def _build_graph(name: str, build: Callable[[], Any], names: Mapping[str, str]) -> Any:
    with use_models_by_name(names):
        return _unwrap_compiled(name, build())


def _unwrap_compiled(name: str, graph: Any) -> Any:
    """Return an object whose `compile` returns the graph.

    Raises InvalidInput for a graph with debugger breakpoints.
    """
    if hasattr(graph, "compile"):
        return graph
    if getattr(graph, "interrupt_before_nodes", None) or getattr(graph, "interrupt_after_nodes", None):
        raise InvalidInput(
            name, "it is compiled with interrupt_before or interrupt_after", "Call interrupt() in a node instead."
        )
    return _CompiledGraph(graph)

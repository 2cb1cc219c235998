"""Registration of what a LangGraph project names as a graph: a compiled graph, a builder, or a factory."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from langgraph_sdk.runtime import (
    _ExecutionRuntime,  # pyright: ignore[reportPrivateUsage]
    _ReadRuntime,  # pyright: ignore[reportPrivateUsage]
)

from offing.core.errors import InvalidInput
from offing.langchain.graph import MESSAGES_KEY, register_langgraph
from offing.langchain.report import find_last_answer, list_messages
from offing.langchain.state_classes import list_data_classes
from offing.sdk.context import RunInfo
from offing.sdk.graph import Graph
from offing.sdk.langgraph_adapter import GraphOpening

MAX_FACTORY_ARGUMENTS = 2
"""The configuration and LangGraph's server runtime."""


def register_project_graph(
    name: str,
    value: Any,
    *,
    field: str,
    code_path: Path,
    version: str,
    description: str = "",
    store_index: Mapping[str, Any] | None = None,
    store_ttl: Mapping[str, Any] | None = None,
) -> Graph:
    """Register an object of a LangGraph project as the graph `name`.

    `field` names it in errors. `code_path` and `version` are those of its code. Raises InvalidInput for an object
    that is no graph, and for one that cannot be built.
    """
    build = cache(partial(_build_static, value, field))
    built = build()
    graph = register_langgraph(
        name,
        build,
        code_path=code_path,
        description=description,
        answer=partial(find_answer, find_question_key(built)),
        initial_state=partial(build_input, built),
        state_types=list_data_classes(getattr(getattr(built, "builder", None), "schemas", ())),
        store_index=store_index,
        store_ttl=store_ttl,
        own_models=True,
    )
    adapter = graph.langgraph_adapter
    assert adapter is not None
    if _is_factory(value):
        adapter = replace(adapter, open_graph=partial(open_made_graph, value, field))
    return replace(graph, version=version, langgraph_adapter=adapter)


def find_question_key(built: Any) -> str:
    """Return the key of the input that takes the question: `messages`, or its first text. Empty if there is none."""
    properties = _read_input_properties(built)
    if MESSAGES_KEY in properties:
        return MESSAGES_KEY
    return next((key for key, schema in properties.items() if _takes_text(schema)), "")


def build_input(built: Any, run: RunInfo) -> dict[str, Any]:
    """Return the input of a run that has a question instead of an input. Raises InvalidInput if it takes none."""
    key = find_question_key(built)
    if not key:
        raise InvalidInput(
            "question", "the input of this graph has neither messages nor a text", "Start the run with an input."
        )
    return {key: [HumanMessage(run.question)] if key == MESSAGES_KEY else run.question}


def find_answer(question_key: str, values: Mapping[str, Any]) -> str:
    """Return the answer in the final values: the last message, the only text, or all values as JSON."""
    if answer := find_last_answer(list_messages(values, MESSAGES_KEY)):
        return answer
    texts = {key: value for key, value in values.items() if isinstance(value, str) and value.strip()}
    others = {key: value for key, value in texts.items() if key != question_key}
    if len(others) == 1 or (texts and len(values) == len(texts) == 1):
        return next(iter((others or texts).values()))
    return json.dumps(dict(values), default=str, indent=2, sort_keys=True, ensure_ascii=False) if values else ""


@asynccontextmanager
async def open_made_graph(factory: Callable[..., Any], field: str, opening: GraphOpening):
    """Open the graph that a factory makes for one run, on the event loop of the run."""
    async with AsyncExitStack() as stack:
        graph = _call_factory(factory, field, opening)
        if inspect.isawaitable(graph):
            graph = await graph
        if isinstance(graph, AbstractAsyncContextManager):
            graph = await stack.enter_async_context(cast(AbstractAsyncContextManager[Any], graph))
        elif isinstance(graph, AbstractContextManager):
            graph = stack.enter_context(cast(AbstractContextManager[Any], graph))
        yield _compile(graph, field)


def _build_static(value: Any, field: str) -> Any:
    """Return the compiled graph without a run."""
    if not _is_factory(value):
        return _compile(value, field)

    async def make() -> Any:
        async with open_made_graph(value, field, GraphOpening()) as graph:
            return graph

    with ThreadPoolExecutor(1) as executor:  # the caller may be on an event loop
        return executor.submit(asyncio.run, make()).result()


def _is_factory(value: Any) -> bool:
    is_function = callable(value) and not isinstance(value, type)
    return is_function and not hasattr(value, "ainvoke") and not hasattr(value, "compile")


def _call_factory(factory: Callable[..., Any], field: str, opening: GraphOpening) -> Any:
    """Call a factory with the configuration, the server runtime, both or nothing, as its parameters say."""
    parameters = [
        one
        for one in inspect.signature(factory).parameters.values()
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    takes_runtime = [_takes_runtime(one) for one in parameters]
    if len(parameters) > MAX_FACTORY_ARGUMENTS or (len(parameters) > 1 and sum(takes_runtime) != 1):
        raise InvalidInput(
            field,
            f"the function takes {len(parameters)} arguments",
            "Let it take the configuration, a ServerRuntime named `runtime`, both, or nothing.",
        )
    runtime = _build_runtime(opening) if any(takes_runtime) else None
    return factory(*(runtime if is_runtime else opening.config for is_runtime in takes_runtime))


def _takes_runtime(parameter: inspect.Parameter) -> bool:
    """Return whether a factory's parameter is LangGraph's server runtime, by its annotation or its name."""
    return "ServerRuntime" in str(parameter.annotation) or parameter.name == "runtime"


def _build_runtime(opening: GraphOpening) -> Any:
    """Return LangGraph's server runtime.

    Its classes have private names, but their union is the public type `ServerRuntime`. Outside a run, the store is
    empty.
    """
    untyped: Any = _ReadRuntime
    if opening.store is None:
        return untyped(access_context="assistants.read", store=InMemoryStore())
    user: Any = opening.config["configurable"].get("langgraph_auth_user")
    return _ExecutionRuntime(
        access_context="threads.create_run", user=user, store=opening.store, context=opening.context
    )


def _compile(value: Any, field: str) -> Any:
    if hasattr(value, "ainvoke") and hasattr(value, "get_graph") and hasattr(value, "channels"):
        return value
    if hasattr(value, "compile") and hasattr(value, "add_node"):
        return value.compile()
    raise InvalidInput(
        field,
        f"it is of type {type(value).__name__}, not a graph",
        "Name a StateGraph, a compiled graph, an @entrypoint, or a function that returns one.",
    )


def _read_input_properties(built: Any) -> Mapping[str, Any]:
    try:
        return built.get_input_jsonschema().get("properties", {})
    except Exception:  # a schema of types that JSON schema cannot describe
        return {}


def _takes_text(schema: Mapping[str, Any]) -> bool:
    kinds = [schema, *schema.get("anyOf", ())]
    return any(kind.get("type") == "string" for kind in kinds)

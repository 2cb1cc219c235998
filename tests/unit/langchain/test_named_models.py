"""A package that builds its models by name gets ours, while its graph is built and executed, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langgraph.graph import START, MessagesState, StateGraph

from offing.core.errors import InvalidInput
from offing.langchain import OffingChatModel, UnknownModelError, register_langgraph, use_models_by_name
from offing.langchain.named_models import get_role_for_model

CODE = Path(__file__)


def built(name: str = "openai:gpt-5") -> Any:
    """As a package does it."""
    model: Any = init_chat_model(name, temperature=0)
    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [model.invoke("hello")]})  # pyright: ignore[reportUnknownLambdaType]
    graph.add_edge(START, "ask")
    graph.model = model
    return graph


def test_a_model_that_is_built_by_name_is_ours_in_the_role_that_was_given() -> None:
    with use_models_by_name({"openai:gpt-5": "writer", "*": "agent"}):
        models: list[Any] = [init_chat_model(name) for name in ("openai:gpt-5", "gpt-5", "anthropic:claude-opus-5")]
        by_provider: Any = init_chat_model("gpt-5", model_provider="openai")
    assert [m.role for m in (*models, by_provider)] == ["writer", "agent", "agent", "writer"]


def test_a_model_that_is_configured_at_run_time_is_ours_too() -> None:
    configurable = init_chat_model(configurable_fields=("model", "max_tokens"))
    with use_models_by_name({"*": "agent"}):
        bound: Any = configurable.bind_tools([]).with_config({"configurable": {"model": "openai:gpt-5"}})
        assert isinstance(bound._model().bound, OffingChatModel)


def test_a_name_that_was_forgotten_is_rejected() -> None:
    with use_models_by_name({"gpt-5": "writer"}), pytest.raises(UnknownModelError, match="mini"):
        init_chat_model("openai:gpt-5-mini")


def test_outside_nothing_is_changed() -> None:
    with use_models_by_name({"*": "agent"}):
        pass
    with use_models_by_name({}), pytest.raises(ValueError, match="nobody"):
        init_chat_model("nobody:at-all")


def test_a_registered_graph_is_built_with_ours() -> None:
    graph = register_langgraph("mine", built, code_path=CODE, models_by_name={"openai:gpt-5": "agent"})
    assert isinstance(graph.build().model, OffingChatModel)


def test_a_name_must_lead_to_a_role_of_the_graph() -> None:
    with pytest.raises(InvalidInput, match="writer"):
        register_langgraph("mine", built, code_path=CODE, models_by_name={"openai:gpt-5": "writer"})


def test_a_name_is_found_with_and_without_its_provider() -> None:
    roles = {"openai:a": "first", "b": "second", "*": "rest"}
    assert [
        get_role_for_model(n, p, roles) for n, p in [("a", "openai"), ("openai:a", ""), ("x:b", ""), ("c", "")]
    ] == [
        "first",
        "first",
        "second",
        "rest",
    ]

"""Check for models that are called outside the run.

Such calls are not recorded, not limited, and charged again after a crash.
"""

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel

from offing.langchain import OffingChatModel
from offing.sdk import Graph
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue
from offing.testing.graph_checks.reachable_values import GraphWalk, get_class_name, is_client_class, is_model
from offing.testing.graph_checks.source_reader import SourceFunction, resolve_name

MODEL_FACTORIES = frozenset(
    {"langchain.chat_models.base.init_chat_model", "langchain.chat_models.base._ConfigurableModel"}
)
"""Functions that create a model from its name."""

EXPLANATION = "which bypasses the run: its calls are neither recorded nor limited, and are charged again after a crash."
REMEDY = 'Use OffingChatModel("agent") instead. The engine config of the role "agent" selects the provider.'
REMEDY_BY_NAME = "Declare which of `models=` replaces it: register_langgraph(…, models_by_name={…})."


def find_model_issues(graph: Graph, walk: GraphWalk) -> list[GraphIssue]:
    """Return issues for third-party models, and for our models with undeclared names.

    Third-party models are reported by the node that reaches them.
    """
    swaps, own = _uses_models_by_name(graph), _records_own_models(graph)
    roles = {role.name for role in graph.roles}
    issues: list[GraphIssue] = []
    for one in walk.values:
        value, location = one.value, f"node {one.node!r}"
        if isinstance(value, OffingChatModel):
            if value.role not in roles:
                why = f"It calls OffingChatModel({value.role!r}), which the graph does not declare."
                issues.append(
                    GraphIssue(ERROR, "undeclared-role", location, why, "Add it to `models=` of register_langgraph.")
                )
        elif not (own and isinstance(value, BaseChatModel)) and (name := _find_foreign_class(value, swaps)):
            remedy = REMEDY_BY_NAME if get_class_name(value) in MODEL_FACTORIES else REMEDY
            issues.append(GraphIssue(ERROR, "foreign-model", location, f"It calls {name}, {EXPLANATION}", remedy))
    for source in walk.sources:
        issues += (_build_call_issue(source, *call) for call in _iter_model_calls(source, swaps, own))
    return issues


def _find_foreign_class(value: Any, by_name: bool) -> str:
    """Return the class of a third-party model or provider client. Empty means that the value is neither."""
    name = get_class_name(value)
    if name in MODEL_FACTORIES:
        return "" if by_name else "a model selected by name"
    return name.rpartition(".")[2] if is_model(value) else ""


def _iter_model_calls(source: SourceFunction, by_name: bool, own: bool) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls that create a model or call a provider, with the name of the called function."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        value: Any = source.resolve(node.func)
        full = resolve_name(node.func, source)
        accepted = BaseChatModel if own else OffingChatModel
        makes = isinstance(value, type) and issubclass(value, BaseLanguageModel) and not issubclass(value, accepted)
        if makes or (full in MODEL_FACTORIES and not by_name) or is_client_class(full):
            yield node, full.rpartition(".")[2]


def _build_call_issue(source: SourceFunction, call: ast.Call, name: str) -> GraphIssue:
    """Build the issue for such a call. In the code of an installed package it is only a warning."""
    level, what = (WARNING, f"can call {name}") if source.installed else (ERROR, f"calls {name}")
    remedy = REMEDY_BY_NAME if resolve_name(call.func, source) in MODEL_FACTORIES else REMEDY
    return GraphIssue(level, "foreign-model", source.locate(call), f"It {what}, {EXPLANATION}", remedy)


def _records_own_models(graph: Graph) -> bool:
    return graph.langgraph_adapter is not None and graph.langgraph_adapter.records_own_models


def _uses_models_by_name(graph: Graph) -> bool:
    """Return whether models that the graph's code names are replaced with ours in its runs, or are recorded there."""
    around: Any = getattr(graph.langgraph_adapter, "execution_context", None)
    return isinstance(around, partial) and any(around.args)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]

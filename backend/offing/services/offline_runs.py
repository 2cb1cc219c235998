"""Offline runs: nothing that a run reads or writes leaves this machine. This is checked before a run is stored."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig, EngineFailure, describe_engine, list_chain
from offing.models.api_base import is_loopback
from offing.models.credentials import resolve_policy_endpoint
from offing.sdk import Graph
from offing.services.engine_configs import StoredProviders, resolve_engine_endpoint
from offing.services.graphs import custom_tools_of
from offing.settings import Settings

FIELD = "scope.offline"
LOCAL_ENGINES = frozenset({"extractive", "rules", "scripted"})
"""Engines that call nothing."""


def check_offline(
    graph: Graph,
    scope: Mapping[str, Any],
    engines: Mapping[str, EngineConfig],
    stored: StoredProviders,
    remote_library_model: str = "",
) -> None:
    """Raise InvalidInput if a run that must be offline could send something elsewhere.

    `remote_library_model` is the embedding model or reranker that is not on this machine; empty if there is none.
    """
    problem = find_offline_problem(graph, scope, engines, stored)
    if not problem and remote_library_model and scope.get("offline"):
        problem = f"the library is searched with {remote_library_model}, which is not on this machine"
    if problem:
        raise InvalidInput(FIELD, problem, "Change this, or let the run use what is not on this machine.")


def find_offline_problem(
    graph: Graph, scope: Mapping[str, Any], engines: Mapping[str, EngineConfig], stored: StoredProviders
) -> str:
    """Return what of a run that must be offline could send something elsewhere. Empty if nothing could."""
    if not scope.get("offline"):
        return ""
    return _find_scope_problem(scope) or _find_graph_problem(graph) or _find_engine_problem(engines, stored)


def find_remote_library_model(settings: Settings) -> str:
    """Return the embedding model or reranker of the installation that is not on this machine. Empty if none is."""
    models = (
        (settings.embedding_model, settings.embedding_api_base),
        (settings.rerank_model, settings.rerank_api_base),
    )
    return next((model for model, address in models if model and not is_on_this_machine(address)), "")


def is_on_this_machine(address: str) -> bool:
    """Return whether an address is a Unix socket or at a loopback host. An empty address is a provider's own."""
    try:
        return address.startswith("unix:") or is_loopback(urlsplit(address).hostname or "")
    except ValueError:
        return False


def _find_scope_problem(scope: Mapping[str, Any]) -> str:
    if scope.get("web"):
        return "an offline run cannot use the web"
    return "an offline run cannot use MCP servers" if scope.get("mcp") else ""


def _find_graph_problem(graph: Graph) -> str:
    if graph.langgraph_adapter is not None:
        return f"{graph.name} is written for LangGraph alone, and its own code may use the network"
    sending = next((tool.spec.name for tool in custom_tools_of(graph) if tool.spec.sends_data_out), "")
    return f"the tool {sending} of {graph.name} sends data elsewhere" if sending else ""


def _find_engine_problem(engines: Mapping[str, EngineConfig], stored: StoredProviders) -> str:
    for role, config in sorted(engines.items()):
        for one in list_chain(config):
            if not _is_local_engine(one, stored):
                return f"the {role} is answered by {describe_engine(one)}, which is not on this machine"
    return ""


def _is_local_engine(config: EngineConfig, stored: StoredProviders) -> bool:
    if config.engine in LOCAL_ENGINES:
        return True
    if config.engine not in ("litellm", "policy"):
        return False
    endpoint = (
        resolve_policy_endpoint(config, environment.VARIABLES)
        if config.engine == "policy"
        else resolve_engine_endpoint(config, stored)
    )
    return not isinstance(endpoint, EngineFailure) and is_on_this_machine(endpoint.api_base)

"""The assistants that the caller of a request may see."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.metadata_filter import matches_filter
from offing.kernel.execution import compile_graph
from offing.protocols.langgraph.access import allow, check_assistant, check_metadata, is_of_installation
from offing.protocols.langgraph.bodies import AssistantFilter
from offing.protocols.langgraph.context import Caller
from offing.sdk import Graph
from offing.services import langgraph_assistants
from offing.storage.assistants import AssistantRow


async def get_assistant(
    caller: Caller, assistant_id: UUID | str, action: str = "read", value: dict[str, Any] | None = None
) -> AssistantRow:
    """Return an assistant that the user may use. Raises NotFound and AccessDeniedError."""
    assistant = await langgraph_assistants.get_assistant(
        caller.database, caller.tenant_id, caller.context.graphs, assistant_id
    )
    request: dict[str, Any] = {"assistant_id": assistant.id} if value is None else value
    conditions = await allow(caller, "assistants", action, request)
    check_metadata(conditions, assistant.metadata, "assistant", assistant.id)
    return assistant


async def get_usable_assistant(caller: Caller, assistant_id: UUID | str) -> AssistantRow:
    """Return an assistant of which the user may make runs. Raises NotFound and AccessDeniedError."""
    assistant = await langgraph_assistants.get_assistant(
        caller.database, caller.tenant_id, caller.context.graphs, assistant_id
    )
    await check_assistant(caller, assistant)
    return assistant


async def list_usable_assistants(caller: Caller) -> Sequence[AssistantRow]:
    """Return the assistants that the user may see, and those of the installation. Raises AccessDeniedError."""
    visible = await list_assistants(caller, AssistantFilter())
    known = {one.id for one in visible}
    everything = await langgraph_assistants.list_assistants(caller.database, caller.tenant_id, caller.context.graphs)
    return [*visible, *(one for one in everything if is_of_installation(one) and one.id not in known)]


async def list_assistants(caller: Caller, criteria: AssistantFilter) -> Sequence[AssistantRow]:
    """Return the assistants that match and that the user may see. Raises AccessDeniedError."""
    value: dict[str, Any] = {"graph_id": criteria.graph_id, "metadata": dict(criteria.metadata)}
    conditions = await allow(caller, "assistants", "search", value)
    matches = await langgraph_assistants.list_assistants(
        caller.database,
        caller.tenant_id,
        caller.context.graphs,
        graph=criteria.graph_id,
        name=criteria.name,
        metadata=value["metadata"],
    )
    return [one for one in matches if matches_filter(conditions, one.metadata)]


def get_graph(caller: Caller, assistant: AssistantRow) -> Graph:
    """Return the graph of an assistant. Raises InvalidInput if it is not installed."""
    graph = caller.context.graphs.get(assistant.graph)
    if graph is None:
        raise InvalidInput("assistant_id", f"its graph {assistant.graph!r} is not installed here", "Install the graph.")
    return graph


def compile_assistant(caller: Caller, assistant: AssistantRow) -> Any:
    """Return the compiled graph of an assistant. Raises InvalidInput if it is not installed."""
    return compile_graph(get_graph(caller, assistant).build)

"""Assistants: registered graphs and stored configurations of them."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.clock import new_id
from offing.core.errors import InvalidInput
from offing.protocols.langgraph.access import allow, check_metadata
from offing.protocols.langgraph.assistant_reads import compile_assistant, get_assistant, list_assistants
from offing.protocols.langgraph.bodies import (
    AssistantChange,
    AssistantFilter,
    AssistantIn,
    AssistantSearch,
    VersionChoice,
    VersionSearch,
)
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.graph_schemas import describe_graph, draw_graph, list_subgraphs
from offing.protocols.langgraph.rendering import render_assistant, respond_json, respond_page
from offing.services import langgraph_assistants, langgraph_threads
from offing.services.langgraph_assistants import EPOCH
from offing.storage.assistants import AssistantRow

router = APIRouter(prefix="/assistants")


@router.post("")
async def create_assistant(caller: CurrentCaller, body: AssistantIn) -> Response:
    """Store a configuration of a graph."""
    value: dict[str, Any] = {
        "assistant_id": body.assistant_id,
        "graph_id": body.graph_id,
        "config": body.config,
        "context": body.context,
        "metadata": dict(body.metadata),
        "if_exists": body.if_exists,
        "name": body.name,
    }
    conditions = await allow(caller, "assistants", "create", value)
    new = AssistantRow(
        body.assistant_id or new_id(),
        body.graph_id,
        body.name or "Untitled",
        body.description,
        body.config,
        body.context,
        value["metadata"],
        1,
        EPOCH,
        EPOCH,
    )
    created = await langgraph_assistants.create_assistant(
        caller.database, caller.tenant_id, caller.context.graphs, new, keeps_existing=body.if_exists == "do_nothing"
    )
    check_metadata(conditions, created.metadata, "assistant", created.id)
    return respond_json(render_assistant(created))


@router.post("/search")
async def search_assistants(caller: CurrentCaller, body: AssistantSearch | None = None) -> Response:
    """List assistants, those of the tenant first."""
    search = body or AssistantSearch()
    matches = await list_assistants(caller, search)
    if search.sort_by is not None:
        fields = {"assistant_id": "id", "graph_id": "graph"}
        matches = sorted(
            matches,
            key=lambda one: getattr(one, fields.get(search.sort_by or "", search.sort_by or "")),
            reverse=search.sort_order != "asc",
        )
    page = [render_assistant(one) for one in matches[search.offset : search.offset + search.limit]]
    return respond_page(page, limit=search.limit, offset=search.offset, total=len(matches), select=search.select)


@router.post("/count")
async def count_assistants(caller: CurrentCaller, body: AssistantFilter | None = None) -> int:
    """Count assistants."""
    return len(await list_assistants(caller, body or AssistantFilter()))


@router.get("/{assistant_id}")
async def read_assistant(caller: CurrentCaller, assistant_id: UUID) -> Response:
    """Get an assistant."""
    return respond_json(render_assistant(await get_assistant(caller, assistant_id)))


@router.patch("/{assistant_id}")
async def update_assistant(caller: CurrentCaller, assistant_id: UUID, body: AssistantChange) -> Response:
    """Store another version of an assistant, and use it."""
    fields = body.model_dump(exclude_none=True)
    value: dict[str, Any] = {**fields, "assistant_id": assistant_id, "metadata": dict(fields.get("metadata") or {})}
    await get_assistant(caller, assistant_id, "update", value)
    if value["metadata"]:
        fields["metadata"] = value["metadata"]
    changes = {"graph" if name == "graph_id" else name: value for name, value in fields.items()}
    changed = await langgraph_assistants.update_assistant(
        caller.database, caller.tenant_id, caller.context.graphs, assistant_id, changes
    )
    return respond_json(render_assistant(changed))


@router.delete("/{assistant_id}")
async def delete_assistant(caller: CurrentCaller, assistant_id: UUID, delete_threads: bool = False) -> Response:
    """Delete an assistant with its versions and crons, and with its threads if asked to. Else its runs stay."""
    await get_assistant(caller, assistant_id, "delete")
    await langgraph_assistants.delete_assistant(caller.database, caller.tenant_id, caller.context.graphs, assistant_id)
    if delete_threads:
        await langgraph_threads.delete_threads_of_assistant(
            caller.database, caller.context.notifier, caller.context.bus, caller.tenant_id, assistant_id
        )
    return respond_json({})


@router.post("/{assistant_id}/versions")
async def list_versions(caller: CurrentCaller, assistant_id: UUID, body: VersionSearch | None = None) -> Response:
    """List the versions of an assistant, newest first."""
    search = body or VersionSearch()
    await get_assistant(caller, assistant_id)
    matches = await langgraph_assistants.list_versions(
        caller.database,
        caller.tenant_id,
        caller.context.graphs,
        assistant_id,
        search.metadata,
        search.limit,
        search.offset,
    )
    return respond_json([render_assistant(one) for one in matches])


@router.post("/{assistant_id}/latest")
async def use_version(caller: CurrentCaller, assistant_id: UUID, body: VersionChoice) -> Response:
    """Use an earlier version of an assistant."""
    await get_assistant(caller, assistant_id, "update")
    used = await langgraph_assistants.use_version(
        caller.database, caller.tenant_id, caller.context.graphs, assistant_id, body.version
    )
    return respond_json(render_assistant(used))


@router.get("/{assistant_id}/graph")
async def get_graph(caller: CurrentCaller, assistant_id: str, xray: str = "false") -> Response:
    """Get the nodes and edges of the graph of an assistant, which may be named by its graph."""
    return respond_json(await draw_graph(await _compile(caller, assistant_id), _parse_xray(xray)))


@router.get("/{assistant_id}/schemas")
async def get_schemas(caller: CurrentCaller, assistant_id: UUID) -> Response:
    """Get the JSON schemas of input, output, state and context."""
    assistant = await get_assistant(caller, assistant_id)
    return respond_json({"graph_id": assistant.graph, **describe_graph(await _compile(caller, assistant_id))})


@router.get("/{assistant_id}/subgraphs")
async def get_subgraphs(
    caller: CurrentCaller, assistant_id: UUID, recurse: bool = False, namespace: str | None = Query(None)
) -> Response:
    """Get the schemas of the subgraphs by namespace."""
    return respond_json(list_subgraphs(await _compile(caller, assistant_id), namespace, recurse=recurse))


@router.get("/{assistant_id}/subgraphs/{namespace}")
async def get_subgraph(caller: CurrentCaller, assistant_id: UUID, namespace: str, recurse: bool = False) -> Response:
    """Get the schemas of one subgraph, and of those in it."""
    return respond_json(list_subgraphs(await _compile(caller, assistant_id), namespace, recurse=recurse))


async def _compile(caller: Caller, assistant_id: UUID | str) -> Any:
    return compile_assistant(caller, await get_assistant(caller, assistant_id))


def _parse_xray(text: str) -> bool | int:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 100):
        raise InvalidInput("xray", "it is neither true, false nor a depth", "Send a number from 1, or true.")
    return int(text)

"""Assistants: registered graphs, and configurations of them that a tenant stored."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid5

from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.langgraph_run import RunArguments
from offing.sdk import Graph
from offing.services.graphs import get_graph
from offing.storage import assistants, crons
from offing.storage.assistants import AssistantRow
from offing.storage.pool import Connection, Database

GRAPH_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""Namespace from which the clients' servers derive the id of a graph's own assistant."""

SYSTEM = {"created_by": "system"}

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
"""Time of creation of the assistants that the installation has."""


@lru_cache(maxsize=1024)
def graph_assistant_id(graph: str) -> UUID:
    """Return the id of the assistant that a registered graph has by itself."""
    return uuid5(GRAPH_NAMESPACE, graph)


def build_graph_assistant(graph: Graph) -> AssistantRow:
    """Return the assistant that a registered graph has by itself."""
    return AssistantRow(
        graph_assistant_id(graph.name), graph.name, graph.name, graph.description, {}, {}, SYSTEM, 1, EPOCH, EPOCH
    )


def is_graph_assistant(assistant: AssistantRow) -> bool:
    """Return whether an assistant is the one that its graph has by itself. Its metadata do not tell, as anyone may
    write them.
    """
    return assistant.id == graph_assistant_id(assistant.graph)


def parse_assistant_id(name: str) -> UUID:
    """Return the id of an assistant that is named by its id or by its graph."""
    try:
        return UUID(name)
    except ValueError:
        return graph_assistant_id(name)


async def get_assistant(
    database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], name: str | UUID
) -> AssistantRow:
    """Return an assistant by its id, or the own one of a graph by the graph's name. Raises NotFound."""
    criteria = name if isinstance(name, UUID) else parse_assistant_id(name)
    async with database.transaction(tenant_id, pipelined=True) as connection:
        sent = await assistants.send_find(connection, criteria)
    stored = await sent.read()
    if stored is None:
        database.assumptions.forget(tenant_id, criteria)
    matches = stored or _find_graph_assistant(graphs, criteria)
    if matches is None:
        raise NotFound("assistant", str(name))
    return matches


def assume_assistant(
    database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], name: str | UUID
) -> AssistantRow | None:
    """Return the own assistant of a graph without reading whether the tenant has changed and stored it.

    The transaction that uses it checks that (`assistants.send_absence_check`). `None` means that it must be read.
    """
    criteria = name if isinstance(name, UUID) else parse_assistant_id(name)
    return _find_graph_assistant(graphs, criteria) if database.assumptions.may_hold(tenant_id, criteria) else None


async def list_assistants(
    database: Database,
    tenant_id: UUID,
    graphs: Mapping[str, Graph],
    *,
    graph: str | None = None,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> list[AssistantRow]:
    """Return the assistants that match, newest first. `None` means any."""
    async with database.transaction(tenant_id) as connection:
        stored = await assistants.list_assistants(connection)
    known = {one.id for one in stored}
    own = [build_graph_assistant(graphs[one]) for one in sorted(graphs)]
    everything = [*stored, *(one for one in own if one.id not in known)]
    criteria = (metadata or {}).items()
    return [
        one
        for one in everything
        if graph in (None, one.graph)
        and (name is None or name.lower() in one.name.lower())
        and criteria <= one.metadata.items()
    ]


async def create_assistant(
    database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], new: AssistantRow, *, keeps_existing: bool
) -> AssistantRow:
    """Store an assistant. Raises Conflict if there is one with this id, unless `keeps_existing`."""
    get_graph(graphs, new.graph)
    if _find_graph_assistant(graphs, new.id) is None:
        async with database.transaction(tenant_id) as connection:
            if await assistants.insert_assistant(connection, tenant_id, new):
                return await _get_stored(connection, new.id)
    if not keeps_existing:
        raise Conflict(f"There is an assistant {new.id}.", "Use another id, or if_exists=do_nothing.")
    return await get_assistant(database, tenant_id, graphs, new.id)


async def update_assistant(
    database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], assistant_id: UUID, changes: Mapping[str, Any]
) -> AssistantRow:
    """Store another version of an assistant and use it. Metadata are merged, everything else is replaced."""
    if "graph" in changes:
        get_graph(graphs, changes["graph"])
    current = await get_assistant(database, tenant_id, graphs, assistant_id)
    async with database.transaction(tenant_id) as connection:
        if await assistants.find_assistant(connection, assistant_id) is None:
            await assistants.insert_assistant(connection, tenant_id, current)
        await assistants.lock_assistant(connection, assistant_id)
        current = await assistants.find_assistant(connection, assistant_id) or current
        changed = replace(current, **{**changes, "metadata": {**current.metadata, **(changes.get("metadata") or {})}})
        version = await assistants.insert_version(connection, tenant_id, changed)
        await assistants.use_version(connection, assistant_id, version)
        return await _get_stored(connection, assistant_id)


async def use_version(
    database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], assistant_id: UUID, version: int
) -> AssistantRow:
    """Use an earlier version of an assistant from now on. Raises NotFound."""
    await get_assistant(database, tenant_id, graphs, assistant_id)
    async with database.transaction(tenant_id) as connection:
        if not await assistants.use_version(connection, assistant_id, version):
            raise NotFound("version of the assistant", str(version))
        return await _get_stored(connection, assistant_id)


async def list_versions(
    database: Database,
    tenant_id: UUID,
    graphs: Mapping[str, Graph],
    assistant_id: UUID,
    metadata: Mapping[str, Any],
    limit: int,
    offset: int,
) -> list[AssistantRow]:
    """Return the versions of an assistant, newest first. Raises NotFound."""
    current = await get_assistant(database, tenant_id, graphs, assistant_id)
    async with database.transaction(tenant_id) as connection:
        stored = await assistants.list_versions(connection, assistant_id, metadata, limit, offset)
        is_stored = await assistants.find_assistant(connection, assistant_id) is not None
    return stored if is_stored else [current][offset : offset + limit]


async def delete_assistant(
    database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], assistant_id: UUID
) -> None:
    """Delete a stored assistant with its crons. The own one of a graph cannot be deleted. Raises NotFound."""
    if _find_graph_assistant(graphs, assistant_id) is not None:
        raise InvalidInput("assistant_id", "this assistant belongs to its graph", "Remove the graph instead.")
    async with database.transaction(tenant_id) as connection:
        if not await assistants.delete_assistant(connection, assistant_id):
            raise NotFound("assistant", str(assistant_id))
        await crons.delete_crons_of_assistant(connection, assistant_id)


def add_assistant(assistant: AssistantRow, arguments: RunArguments) -> RunArguments:
    """Return how a run is invoked that an assistant's configuration completes. What the run names comes first."""
    own: Mapping[str, Any] = arguments.config
    configurable: dict[str, Any] = {**(assistant.config.get("configurable") or {}), **(own.get("configurable") or {})}
    context = {**assistant.context, **(arguments.context or {})}
    return replace(arguments, config={**assistant.config, **own, "configurable": configurable}, context=context or None)


def _find_graph_assistant(graphs: Mapping[str, Graph], assistant_id: UUID) -> AssistantRow | None:
    name = next((name for name in graphs if graph_assistant_id(name) == assistant_id), None)
    return None if name is None else build_graph_assistant(graphs[name])


async def _get_stored(connection: Connection, assistant_id: UUID) -> AssistantRow:
    stored = await assistants.find_assistant(connection, assistant_id)
    if stored is None:
        raise NotFound("assistant", str(assistant_id))
    return stored

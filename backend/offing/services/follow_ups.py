"""What a submitted follow-up is about, and what it keeps of the run before it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.follow_up import FollowUp, FollowUpKind
from offing.core.model import EngineConfig
from offing.models.prompt_formats import JSON
from offing.sdk import Graph
from offing.storage import runs, threads
from offing.storage.pool import Connection
from offing.tools.environment import extend_role

DOCUMENT_KEYS = frozenset({"collections", "sources"})
"""Keys of a scope that name the documents together."""


@dataclass(frozen=True, slots=True)
class FollowUpRequest:
    """The follow-up that a person asks for."""

    kind: FollowUpKind = FollowUpKind.AUTO
    run_id: UUID | None = None
    """Run whose report the follow-up is about. `None` means the latest report of the thread."""


async def resolve_thread(connection: Connection, request: FollowUpRequest, thread_id: UUID | None) -> UUID:
    """Return the thread of a follow-up. Raises InvalidInput and NotFound."""
    if request.run_id is None:
        if thread_id is None:
            raise InvalidInput(
                "follow_up", "the request names no earlier run", "Give follow_up.run_id, or the thread_id of a thread."
            )
        return thread_id
    thread = (await runs.get_run(connection, request.run_id)).thread_id
    if thread_id not in (None, thread):
        raise InvalidInput("follow_up.run_id", f"run {request.run_id} is in another thread", "Leave thread_id out.")
    return thread


async def resolve_follow_up(
    connection: Connection, request: FollowUpRequest | None, thread_id: UUID, graph: Graph, graphs: Mapping[str, Graph]
) -> FollowUp | None:
    """Return the report that a run of the thread follows. `None` means that it only does new research.

    A request of `None` becomes `AUTO` if the latest run of the thread has a report. Raises InvalidInput if a kind is
    requested that the graph does not have or for which there is no report.
    """
    kind = request.kind if request else FollowUpKind.AUTO
    if not graph.handles_follow_ups:
        _check_graph(kind, graph, graphs)
        return None
    if request is None and not await threads.has_latest_run_report(connection, thread_id):
        return None
    latest = await threads.find_latest_report(connection, thread_id, request.run_id if request else None)
    if latest is not None:
        return FollowUp(kind, *latest)
    if kind in (FollowUpKind.QUESTION, FollowUpKind.EDIT):
        which = f"run {request.run_id}" if request and request.run_id else "this thread"
        problem = f"{which} has no report yet, so there is nothing to {_VERBS[kind]}"
        raise InvalidInput("follow_up.kind", problem, "Wait for the report, or use research.")
    return None


_VERBS = {FollowUpKind.QUESTION: "ask about", FollowUpKind.EDIT: "edit"}


def _check_graph(kind: FollowUpKind, graph: Graph, graphs: Mapping[str, Graph]) -> None:
    if kind in (FollowUpKind.QUESTION, FollowUpKind.EDIT):
        others = sorted(name for name, one in graphs.items() if one.handles_follow_ups)
        remedy = f"Use research, or one of the graphs {', '.join(others)}." if others else "Use research."
        raise InvalidInput("follow_up.kind", f"{graph.name} has no follow-ups of the kind {kind.value}", remedy)


def merge_scopes(last: Mapping[str, Any], scope: Mapping[str, Any], named: frozenset[str]) -> dict[str, Any]:
    """Return the scope of a follow-up: the entries that its request names, and the others of the last run.

    `named` are keys that the request names although they are off. Documents are named as soon as one collection or
    source is.
    """
    keys = named | {key for key, value in scope.items() if value}
    keys |= DOCUMENT_KEYS if keys & DOCUMENT_KEYS else frozenset()
    return {**scope, **{key: value for key, value in last.items() if key not in keys}}


def keep_engines(graph: Graph, last: Mapping[str, EngineConfig]) -> dict[str, EngineConfig]:
    """Return the engines of the last run for the roles that the graph has, too.

    A prompt format that the role of this graph does not have is left out.
    """
    return {
        role.name: _fit_format(role, last[role.name]) for role in graph.list_askable_roles(last) if role.name in last
    }


def _fit_format(role: Any, choice: EngineConfig) -> EngineConfig:
    formats = {"", JSON, *(one.name for one in extend_role(role).prompt_formats)}
    return choice if choice.prompt_format in formats else choice.model_copy(update={"prompt_format": ""})

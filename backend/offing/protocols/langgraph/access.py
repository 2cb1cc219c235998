"""What a user of a project may see and do: its `Auth` object's handlers are asked for each resource of this API.

A handler may reject a request, change what is stored, and return a filter that the metadata of records must match. What
does not match is answered as if it did not exist. A caller with an API key or a session of Offing sees everything of
its tenant.
"""

from collections.abc import Mapping
from typing import Any, cast
from uuid import UUID

import structlog
from fastapi import Request

from offing.core.errors import InvalidInput, NotFound
from offing.core.metadata_filter import CONTAINS, EQUALS, matches_filter
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.services import langgraph_threads
from offing.services.langgraph_assistants import SYSTEM, is_graph_assistant
from offing.services.langgraph_auth import AccessDeniedError
from offing.storage.assistants import AssistantRow

log = structlog.get_logger()

READING_POSTS = frozenset(
    {
        "/threads/{thread_id}/history",
        "/threads/{thread_id}/state/checkpoint",
        "/threads/{thread_id}/stream/events",
    }
)

SELF_CHECKED = frozenset(
    {
        ("PATCH", "/threads/{thread_id}"),
        ("POST", "/threads/{thread_id}/copy"),
        ("POST", "/threads/{thread_id}/runs"),
        ("POST", "/threads/{thread_id}/runs/stream"),
        ("POST", "/threads/{thread_id}/runs/wait"),
        ("POST", "/threads/{thread_id}/runs/crons"),
    }
)
"""Routes that ask the handler themselves, with what is to be stored."""


async def allow(caller: Caller, resource: str, action: str, value: dict[str, Any]) -> Mapping[str, Any]:
    """Return the filter that records must match; an empty one means all of the tenant.

    The handler may change `value`, which the caller then uses. Raises AccessDeniedError.
    """
    authorize = caller.principal.authorize
    return {} if authorize is None else await authorize(resource, action, value)


async def check_thread(caller: Caller, thread_id: UUID, action: str, value: dict[str, Any] | None = None) -> None:
    """Raise NotFound for a thread that the user may not see, and AccessDeniedError if a handler rejects the request."""
    request: dict[str, Any] = {} if value is None else value
    request["thread_id"] = thread_id
    conditions = await allow(caller, "threads", action, request)
    if conditions:
        thread = await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
        check_metadata(conditions, thread.metadata, "thread", thread_id)


async def check_assistant(caller: Caller, assistant: AssistantRow) -> None:
    """Raise NotFound for an assistant that the user may not use. Everybody may use those of the installation."""
    if not is_of_installation(assistant):
        conditions = await allow(caller, "assistants", "read", {"assistant_id": assistant.id})
        check_metadata(conditions, assistant.metadata, "assistant", assistant.id)


def is_of_installation(assistant: AssistantRow) -> bool:
    """Return whether an assistant is that of a graph, and nobody gave it an owner."""
    return is_graph_assistant(assistant) and assistant.metadata == SYSTEM


def check_metadata(conditions: Mapping[str, Any], metadata: Mapping[str, Any], kind: str, id: UUID) -> None:
    """Raise NotFound if the metadata of a record do not match."""
    if not matches_filter(conditions, metadata):
        raise NotFound(kind, str(id))


async def authorize_thread(request: Request, caller: CurrentCaller) -> None:
    """Ask the handler of threads for a route below a thread. It is a dependency of all routes."""
    named = request.path_params.get("thread_id")
    path = getattr(request.scope.get("route"), "path", "")
    if caller.principal.authorize is None or named is None or (request.method, path) in SELF_CHECKED:
        return
    try:
        thread_id = UUID(str(named))
    except ValueError:
        return  # the route rejects it
    await check_thread(caller, thread_id, _find_action(request.method, path))


def _find_action(method: str, path: str) -> str:
    if method in ("GET", "HEAD") or path in READING_POSTS:
        return "read"
    return "delete" if method == "DELETE" else "update"


def build_containment(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON document that the metadata of matching records contain. `matches_filter` has the same meaning."""
    document: dict[str, Any] = {}
    for key, condition in conditions.items():
        matches_filter({key: condition}, {})  # raises for an unknown operator
        operators = dict(cast(Mapping[str, Any], condition)) if isinstance(condition, Mapping) else {EQUALS: condition}
        if len(operators) != 1:
            raise AccessDeniedError(403, f"The filter for {key} has not one operator, which is not supported.")
        ((operator, operand),) = operators.items()
        document[key] = [operand] if operator == CONTAINS and not isinstance(operand, list) else operand
    return document


async def allow_item(caller: Caller, action: str, value: dict[str, Any]) -> tuple[str, ...]:
    """Return the namespace of items that the user may use, as the store's handler has it. Raises AccessDeniedError.

    A filter that the handler returns has no effect, as in LangGraph's server: items have no metadata, and the handler
    keeps users apart by their namespaces.
    """
    if await allow(caller, "store", action, value):
        log.warning(
            "the handler of the store returned a filter, which has no effect; change value['namespace'] instead",
            action=action,
        )
    namespace: Any = value["namespace"] or ()
    if isinstance(namespace, str) or not all(isinstance(label, str) for label in namespace):
        problem = f"the handler of store.{action} set a namespace that is no sequence of texts"
        raise InvalidInput("auth.path", problem, "Set value['namespace'] to a tuple of texts.")
    return tuple(namespace)

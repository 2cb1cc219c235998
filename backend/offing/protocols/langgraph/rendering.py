"""Rows and states as LangGraph's clients expect them in JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import Response
from langgraph.types import StateSnapshot

from offing.kernel.langgraph_events import list_graph_interrupts
from offing.kernel.langgraph_json import dump_json
from offing.storage.assistants import AssistantRow
from offing.storage.langgraph_threads import LangGraphThreadRow


def respond_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dump_json(value), status, media_type="application/json", headers=dict(headers or {}))


def respond_page(
    items: Sequence[Mapping[str, Any]], *, limit: int, offset: int, total: int, select: Sequence[str] | None = None
) -> Response:
    """Return a page of a list, with the headers that tell of the rest. `select` names the fields to return."""
    following = {"X-Pagination-Next": str(offset + limit)} if offset + limit < total else {}
    chosen = [{name: one[name] for name in select if name in one} for one in items] if select else items
    return respond_json(chosen, headers={"X-Pagination-Total": str(total), **following})


def render_assistant(row: AssistantRow) -> dict[str, Any]:
    return {
        "assistant_id": str(row.id),
        "graph_id": row.graph,
        "name": row.name,
        "description": row.description,
        "config": row.config,
        "context": row.context,
        "metadata": row.metadata,
        "version": row.version,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def render_thread(row: LangGraphThreadRow, state: StateSnapshot | None) -> dict[str, Any]:
    return {
        "thread_id": str(row.id),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "metadata": row.metadata,
        "status": row.status,
        "config": {},
        "context": {},
        "error": None,
        "values": state.values if state is not None and state.values else None,
        "interrupts": {} if state is None else _interrupts_by_task(state),
    }


def render_ttl(row: LangGraphThreadRow) -> dict[str, Any] | None:
    """Return when a thread expires. `None` means never."""
    if row.ttl_minutes is None:
        return None
    return {"strategy": row.ttl_strategy, "ttl_minutes": row.ttl_minutes, "expires_at": row.expires_at}


def _interrupts_by_task(state: StateSnapshot) -> dict[str, Any]:
    visible = {task.id: list_graph_interrupts(task.interrupts) for task in state.tasks}
    return {task: raised for task, raised in visible.items() if raised}


def render_state(state: StateSnapshot) -> dict[str, Any]:
    return {
        "values": state.values,
        "next": list(state.next),
        "tasks": [_render_task(task) for task in state.tasks],
        "metadata": state.metadata,
        "created_at": state.created_at,
        "checkpoint": render_checkpoint(state.config),
        "parent_checkpoint": render_checkpoint(state.parent_config) if state.parent_config else None,
        "interrupts": list_graph_interrupts(state.interrupts),
        "checkpoint_id": state.config.get("configurable", {}).get("checkpoint_id"),
        "parent_checkpoint_id": (state.parent_config or {}).get("configurable", {}).get("checkpoint_id"),
    }


EMPTY_STATE: dict[str, Any] = {
    "values": {},
    "next": [],
    "tasks": [],
    "metadata": {},
    "created_at": None,
    "parent_checkpoint": None,
    "interrupts": [],
    "checkpoint_id": None,
    "parent_checkpoint_id": None,
}


def render_empty_state(thread_id: Any) -> dict[str, Any]:
    """Return the state of a thread that has none yet."""
    return {**EMPTY_STATE, "checkpoint": {"thread_id": str(thread_id), "checkpoint_ns": "", "checkpoint_id": None}}


def render_checkpoint(config: Mapping[str, Any]) -> dict[str, Any]:
    where: Mapping[str, Any] = config.get("configurable", {})
    return {
        "thread_id": where.get("thread_id"),
        "checkpoint_ns": where.get("checkpoint_ns", ""),
        "checkpoint_id": where.get("checkpoint_id"),
        **({"checkpoint_map": where["checkpoint_map"]} if where.get("checkpoint_map") else {}),
    }


def _render_task(task: Any) -> dict[str, Any]:
    state = task.state
    is_snapshot = isinstance(state, StateSnapshot)
    return {
        "id": task.id,
        "name": task.name,
        "path": task.path,
        "error": None if task.error is None else str(task.error),
        "interrupts": list_graph_interrupts(task.interrupts),
        "checkpoint": render_checkpoint(state) if isinstance(state, Mapping) else None,  # pyright: ignore[reportUnknownArgumentType]
        "state": render_state(state) if is_snapshot else None,
        "result": task.result,
    }

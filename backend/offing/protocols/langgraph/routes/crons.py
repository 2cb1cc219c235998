"""Crons: runs that begin by a schedule, in a thread or each in its own."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response

from offing.core.errors import InvalidInput
from offing.core.langgraph_run import RunArguments
from offing.protocols.langgraph.access import allow, build_containment, check_assistant, check_metadata, check_thread
from offing.protocols.langgraph.bodies import RunIn
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.cron_bodies import CronChange, CronFilterIn, CronIn, CronSearch
from offing.protocols.langgraph.rendering import respond_json, respond_page
from offing.protocols.langgraph.run_requests import build_arguments, check_webhook
from offing.services import langgraph_assistants, langgraph_crons
from offing.services.langgraph_crons import NewCron, read_clock
from offing.storage.assistants import AssistantRow
from offing.storage.crons import CronFilter, CronRow

router = APIRouter()

ARGUMENT_FIELDS = {
    "input": "input",
    "config": "config",
    "context": "context",
    "interrupt_before": "interrupt_before",
    "interrupt_after": "interrupt_after",
    "stream_mode": "stream_modes",
    "stream_subgraphs": "stream_subgraphs",
    "durability": "durability",
}
"""Fields of a cron that its runs are invoked with, and their names in `RunArguments`."""

OWN_FIELDS = {
    "schedule": "schedule",
    "timezone": "timezone",
    "enabled": "enabled",
    "metadata": "metadata",
    "multitask_strategy": "multitask",
}
"""Fields of a cron itself, and their names in `CronRow`."""


@router.post("/threads/{thread_id}/runs/crons")
async def create_thread_cron(caller: CurrentCaller, thread_id: UUID, body: CronIn) -> Response:
    """Create a cron whose runs continue a thread."""
    if body.on_run_completed is not None:
        raise InvalidInput("on_run_completed", "only a cron without a thread has it", "Leave it out.")
    return respond_json(render_cron(await _create(caller, thread_id, body)))


@router.post("/runs/crons")
async def create_cron(caller: CurrentCaller, body: CronIn) -> Response:
    """Create a cron whose runs each have a new thread."""
    return respond_json(render_cron(await _create(caller, None, body)))


@router.post("/runs/crons/search")
async def search_crons(caller: CurrentCaller, body: CronSearch | None = None) -> Response:
    """List crons, newest first."""
    search = body or CronSearch()
    page, total = await langgraph_crons.list_crons(
        caller.database,
        caller.tenant_id,
        await _filter(caller, search, search.enabled),
        search.sort_by or "created_at",
        descending=search.sort_order != "asc",
        limit=search.limit,
        offset=search.offset,
    )
    rendered = [{**render_cron(one), "now": read_clock()} for one in page]
    chosen = search.select or [name for name in rendered[0] if name != "now"] if rendered else None
    return respond_page(rendered, limit=search.limit, offset=search.offset, total=total, select=chosen)


@router.post("/runs/crons/count")
async def count_crons(caller: CurrentCaller, body: CronFilterIn | None = None) -> int:
    """Count crons."""
    chosen = await _filter(caller, body or CronFilterIn(), None)
    return await langgraph_crons.count_crons(caller.database, caller.tenant_id, chosen)


@router.get("/runs/crons/{cron_id}")
async def get_cron(caller: CurrentCaller, cron_id: UUID) -> Response:
    """Get a cron."""
    return respond_json(render_cron(await _find(caller, cron_id, "read", {})))


@router.patch("/runs/crons/{cron_id}")
async def update_cron(caller: CurrentCaller, cron_id: UUID, body: CronChange) -> Response:
    """Change fields of a cron. `end_time` null removes the end."""
    changes = await _read_changes(caller, body)
    metadata: dict[str, Any] = dict(changes.get("metadata") or {})
    await _find(caller, cron_id, "update", {"payload": {"metadata": metadata}, "schedule": body.schedule})
    if metadata:
        changes["metadata"] = metadata
    changed = await langgraph_crons.update_cron(
        caller.context.platform, caller.tenant_id, cron_id, changes, read_clock()
    )
    return respond_json(render_cron(changed))


@router.delete("/runs/crons/{cron_id}")
async def delete_cron(caller: CurrentCaller, cron_id: UUID) -> Response:
    """Delete a cron. Its runs stay."""
    await _find(caller, cron_id, "delete", {})
    await langgraph_crons.delete_cron(caller.database, caller.tenant_id, cron_id)
    return respond_json({})


async def _find(caller: Caller, cron_id: UUID, action: str, value: dict[str, Any]) -> CronRow:
    """Return a cron that the user may use. Raises NotFound and AccessDeniedError."""
    conditions = await allow(caller, "crons", action, {**value, "cron_id": cron_id})
    cron = await langgraph_crons.get_cron(caller.database, caller.tenant_id, cron_id)
    check_metadata(conditions, cron.metadata, "cron", cron_id)
    return cron


async def _authorize(caller: Caller, assistant: AssistantRow, thread_id: UUID | None, body: CronIn) -> dict[str, Any]:
    """Ask the handlers of a project for a cron, and return its metadata. Raises NotFound and AccessDeniedError."""
    metadata: dict[str, Any] = dict(body.metadata)
    if caller.principal.authorize is None:
        return metadata
    await check_assistant(caller, assistant)
    if thread_id is not None:
        value: dict[str, Any] = {"thread_id": thread_id, "assistant_id": assistant.id, "metadata": {}, "kwargs": {}}
        await check_thread(caller, thread_id, "create_run", value)
    request: dict[str, Any] = {
        "payload": {"assistant_id": str(assistant.id), "input": body.input, "metadata": metadata},
        "metadata": metadata,
        "schedule": body.schedule,
        "thread_id": thread_id,
        "user_id": caller.principal.name,
        "end_time": body.end_time,
    }
    await allow(caller, "crons", "create", request)
    return {**request["metadata"], **request["payload"].get("metadata", {})}


async def _create(caller: Caller, thread_id: UUID | None, body: CronIn) -> CronRow:
    assistant = await langgraph_assistants.get_assistant(
        caller.database, caller.tenant_id, caller.context.graphs, body.assistant_id
    )
    metadata = await _authorize(caller, assistant, thread_id, body)
    new = NewCron(
        assistant_id=assistant.id,
        thread_id=thread_id,
        schedule=body.schedule,
        arguments=replace(
            build_arguments(RunIn(assistant_id=assistant.id, **_read_arguments(body))), user=caller.principal.run_user
        ),
        owner=caller.principal.name,
        timezone=body.timezone,
        end_time=body.end_time,
        enabled=body.enabled,
        deletes_thread=thread_id is None and body.on_run_completed != "keep",
        multitask=body.multitask_strategy,
        webhook=await check_webhook(caller, body.webhook),
        metadata=metadata,
    )
    return await langgraph_crons.create_cron(caller.context.platform, caller.tenant_id, new, read_clock())


async def _read_changes(caller: Caller, body: CronChange) -> dict[str, Any]:
    """Return the fields to change. Null means to keep a field, except for `end_time`."""
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    values = {name: value for name, value in sent.items() if value is not None}
    changes = {own: values[name] for name, own in OWN_FIELDS.items() if name in values}
    if "end_time" in sent:
        changes["end_time"] = body.end_time
    if body.webhook is not None:
        changes["webhook"] = await check_webhook(caller, body.webhook)
    if body.on_run_completed is not None:
        changes["deletes_thread"] = body.on_run_completed == "delete"
    arguments = build_arguments(RunIn(assistant_id="", **_read_arguments(body)))
    changed = {own: getattr(arguments, own) for name, own in ARGUMENT_FIELDS.items() if name in values}
    return {**changes, "arguments": changed} if changed else changes


def _read_arguments(body: CronIn | CronChange) -> dict[str, Any]:
    values = {name: getattr(body, name) for name in ARGUMENT_FIELDS}
    return {name: value for name, value in values.items() if value is not None}


async def _filter(caller: Caller, fields: CronFilterIn, enabled: bool | None) -> CronFilter:
    named = fields.assistant_id
    assistant_id = langgraph_assistants.parse_assistant_id(named) if isinstance(named, str) else named
    value: dict[str, Any] = {
        "assistant_id": assistant_id,
        "thread_id": fields.thread_id,
        "metadata": dict(fields.metadata),
    }
    conditions = await allow(caller, "crons", "search", value)
    return CronFilter(assistant_id, fields.thread_id, enabled, value["metadata"], build_containment(conditions))


def render_cron(row: CronRow) -> dict[str, Any]:
    """Return a cron as LangGraph's clients expect it."""
    completed = "delete" if row.deletes_thread else "keep"
    return {
        "cron_id": str(row.id),
        "assistant_id": str(row.assistant_id),
        "thread_id": None if row.thread_id is None else str(row.thread_id),
        "schedule": row.schedule,
        "timezone": row.timezone,
        "end_time": row.end_time,
        "enabled": row.enabled,
        "next_run_date": row.next_run_at if row.enabled else None,
        "on_run_completed": completed if row.thread_id is None else None,
        "payload": _render_payload(row, row.arguments),
        "metadata": row.metadata,
        "user_id": row.owner,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _render_payload(row: CronRow, arguments: RunArguments) -> dict[str, Any]:
    fields = {name: getattr(arguments, own) for name, own in ARGUMENT_FIELDS.items()}
    return {
        "assistant_id": str(row.assistant_id),
        **fields,
        "multitask_strategy": row.multitask,
        "webhook": row.webhook,
        "metadata": row.metadata,
    }

"""The endpoint of MCP: every assistant is a tool, over streamable HTTP.

A call of a tool is a run without a thread. Its answer is sent when the run has ended. Nothing is kept of a session: its
id is with the runs that its calls made, so that a client can cancel them, whichever process hears of it.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.run import RunStatus
from offing.kernel.langgraph_json import dump_json, to_json
from offing.protocols.langgraph.access import check_thread
from offing.protocols.langgraph.bodies import RunIn
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.json_rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RpcError,
    RpcParams,
    RpcRequest,
    build_result,
    parse_params,
    respond_to,
)
from offing.protocols.langgraph.mcp_tools import build_tool, find_tool, list_named, render_failure, render_output
from offing.protocols.langgraph.rendering import respond_json
from offing.protocols.langgraph.run_feeds import FeedResponse, follow_result
from offing.protocols.langgraph.run_requests import create_run
from offing.services import langgraph_runs
from offing.services.langgraph_auth import AccessDeniedError
from offing.storage.langgraph_runs import LangGraphRunRow

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first."""

PAGE = 100
"""Number of tools that are listed at once."""

SESSION_HEADER = "mcp-session-id"

SESSION_ID = re.compile("[0-9a-f]{32}")

router = APIRouter(prefix="/mcp")


class InitializeParams(RpcParams):
    protocolVersion: str = ""


class ListParams(RpcParams):
    cursor: str | None = Field(None, max_length=20)


class CallParams(RpcParams):
    name: str = Field(max_length=300)
    arguments: dict[str, Any] = Field(default_factory=dict)


class CancelParams(RpcParams):
    requestId: str | int | float = Field(union_mode="left_to_right")


@router.post("")
@router.post("/")
async def answer(caller: CurrentCaller, request: Request) -> Response:
    """Answer one message of JSON-RPC: `initialize`, `ping`, `tools/list`, `tools/call` or `notifications/cancelled`."""
    session = _read_session(request)

    async def handle(message: RpcRequest) -> Response:
        if not message.wants_answer:
            if message.method == "notifications/cancelled" and session is not None:
                await _cancel_call(caller, session, parse_params(CancelParams, message.params))
            return Response(status_code=202)
        if message.method == "tools/call":
            return await _call_tool(caller, session, message)
        headers = {SESSION_HEADER: new_id().hex} if message.method == "initialize" else {}
        return respond_json(build_result(message.id, await _answer(caller, message)), headers=headers)

    return await respond_to(request, handle)


@router.get("")
@router.get("/")
async def open_stream() -> Response:
    """Say that this server sends nothing by itself."""
    return Response(status_code=405, headers={"Allow": "POST"})


@router.delete("")
@router.delete("/")
async def end_session(request: Request) -> Response:
    """End a session, of which nothing is kept."""
    if _read_session(request) is None:
        return respond_json({"detail": f"{SESSION_HEADER}: there is no such session."}, 404)
    return Response(status_code=204)


def _read_session(request: Request) -> str | None:
    """Return the id of a session as this API gives it. `None` means that the client names none."""
    sent = request.headers.get(SESSION_HEADER, "")
    return sent if SESSION_ID.fullmatch(sent) else None


async def _answer(caller: Caller, message: RpcRequest) -> Mapping[str, Any]:
    match message.method:
        case "initialize":
            return _initialize(parse_params(InitializeParams, message.params))
        case "ping":
            return {}
        case "tools/list":
            return await _list_tools(caller, parse_params(ListParams, message.params))
        case _:
            raise RpcError(METHOD_NOT_FOUND, f"{message.method[:100]}: this method is not supported.")


def _initialize(params: InitializeParams) -> Mapping[str, Any]:
    requested = params.protocolVersion
    return {
        "protocolVersion": requested if requested in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "offing", "title": "Offing", "version": version("offing")},
    }


async def _list_tools(caller: Caller, params: ListParams) -> Mapping[str, Any]:
    if params.cursor and not (params.cursor.isascii() and params.cursor.isdigit()):
        raise RpcError(INVALID_PARAMS, "cursor: it is not from this list. Send nextCursor unchanged.")
    start, named = int(params.cursor or 0), await list_named(caller)
    tools = [(await build_tool(caller, name, one)).render() for name, one in named[start : start + PAGE]]
    following = {"nextCursor": str(start + PAGE)} if start + PAGE < len(named) else {}
    return {"tools": tools, **following}


def _describe_call(session: str | None, request_id: Any) -> dict[str, Any]:
    """Return the metadata of the run of a call, by which it is found again. Empty without a session."""
    return {} if session is None else {"mcp_session": session, "mcp_request": request_id}


async def _cancel_call(caller: Caller, session: str, params: CancelParams) -> None:
    """Cancel the run of a call. One that has ended, or that the user may not cancel, is left unchanged."""
    tenant_id, described = caller.tenant_id, _describe_call(session, params.requestId)
    for run in await langgraph_runs.list_active_by_metadata(caller.database, tenant_id, described):
        with suppress(NotFound, AccessDeniedError):
            await check_thread(caller, run.thread_id, "update")
            await langgraph_runs.cancel_runs(caller.context.platform, tenant_id, [run.id], waits=False, deletes=False)


async def _call_tool(caller: Caller, session: str | None, message: RpcRequest) -> Response:
    params = parse_params(CallParams, message.params)
    try:
        tool = await find_tool(caller, params.name)
    except NotFound as error:
        raise RpcError(INVALID_PARAMS, f"name: {error}") from None
    graph_input, metadata = tool.build_input(params.arguments), _describe_call(session, message.id)
    body = RunIn(assistant_id=tool.assistant.id, input=graph_input, metadata=metadata)
    try:
        run = await create_run(caller, None, body)
    except (InvalidInput, Conflict, NotFound) as error:  # a model that called the tool can correct it
        return respond_json(build_result(message.id, render_failure(str(error))))
    return FeedResponse(
        _follow_call(caller, message.id, run), on_disconnect=None, headers={}, media_type="application/json"
    )


async def _follow_call(caller: Caller, id: Any, run: LangGraphRunRow) -> AsyncGenerator[bytes]:
    """Return signs of life while a run is active, then the answer to the call that made it."""
    async for result in follow_result(caller, run):
        if result is None:
            yield b"\n"
        elif result.run.status is RunStatus.CANCELLED:
            yield dump_json(build_result(id, render_failure("The run was cancelled.")))
        else:
            yield dump_json(build_result(id, render_output(to_json(result.output))))

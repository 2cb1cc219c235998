"""The endpoint of MCP: every assistant is a tool, over streamable HTTP without sessions.

A call of a tool is a run without a thread. Its answer is sent when the run has ended.
"""

from collections.abc import AsyncGenerator, Mapping
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.kernel.langgraph_json import dump_json, to_json
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
from offing.storage.langgraph_runs import LangGraphRunRow

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first."""

PAGE = 100
"""Number of tools that are listed at once."""

router = APIRouter(prefix="/mcp")


class InitializeParams(RpcParams):
    protocolVersion: str = ""


class ListParams(RpcParams):
    cursor: str | None = Field(None, max_length=20)


class CallParams(RpcParams):
    name: str = Field(max_length=300)
    arguments: dict[str, Any] = Field(default_factory=dict)


@router.post("")
@router.post("/")
async def answer(caller: CurrentCaller, request: Request) -> Response:
    """Answer one message of JSON-RPC: `initialize`, `ping`, `tools/list` or `tools/call`."""

    async def handle(message: RpcRequest) -> Response:
        if not message.wants_answer:
            return Response(status_code=202)
        if message.method == "tools/call":
            return await _call_tool(caller, message)
        return respond_json(build_result(message.id, await _answer(caller, message)))

    return await respond_to(request, handle)


@router.get("")
@router.get("/")
async def open_stream() -> Response:
    """Say that this server sends nothing by itself."""
    return Response(status_code=405, headers={"Allow": "POST"})


@router.delete("")
@router.delete("/")
async def end_session() -> Response:
    """Say that there are no sessions."""
    return respond_json({"detail": "There are no sessions."}, 404)


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


async def _call_tool(caller: Caller, message: RpcRequest) -> Response:
    params = parse_params(CallParams, message.params)
    try:
        tool = await find_tool(caller, params.name)
    except NotFound as error:
        raise RpcError(INVALID_PARAMS, f"name: {error}") from None
    body = RunIn(assistant_id=tool.assistant.id, input=tool.build_input(params.arguments))
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
        else:
            yield dump_json(build_result(id, render_output(to_json(result.output))))

"""The thread-centric protocol: commands, and the events of a thread as server-sent events or over WebSocket."""

from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Header, Query, Request, Response, WebSocket
from starlette.exceptions import HTTPException

from offing.core.errors import InvalidInput, OffingError
from offing.protocols.langgraph.access import check_thread
from offing.protocols.langgraph.context import Caller, CurrentCaller, LangGraphContext, find_caller
from offing.protocols.langgraph.rendering import respond_json
from offing.protocols.langgraph.run_feeds import FeedResponse, parse_last_event_id
from offing.protocols.langgraph.thread_commands import answer_command, describe_error
from offing.protocols.langgraph.thread_events import find_seq
from offing.protocols.langgraph.thread_feeds import ThreadFeed
from offing.protocols.langgraph.thread_joins import JOIN_MODES, ThreadJoin
from offing.protocols.langgraph.thread_sockets import ThreadSocket
from offing.protocols.langgraph.thread_subscriptions import MAX_SEQ, SubscribeIn, parse_filter
from offing.services import langgraph_threads

router = APIRouter(prefix="/threads/{thread_id}")
sockets = APIRouter(prefix="/threads/{thread_id}")

LastEventId = Annotated[str | None, Header()]


@router.post("/commands")
async def send_command(caller: CurrentCaller, thread_id: UUID, request: Request) -> Response:
    """Execute a command: `run.start`, `input.respond` and others. An error of a command is in the response."""
    try:
        command: Any = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return respond_json(describe_error(None, "invalid_argument", "A command is a JSON object."))
    return respond_json(await answer_command(caller, thread_id, command))


@router.post("/stream/events")
async def stream_events(caller: CurrentCaller, thread_id: UUID, body: SubscribeIn) -> Response:
    """Stream the events of a thread's runs, in the channels that the client names. It has no end."""
    return await _respond_feed(caller, thread_id, body)


@router.get("/stream/events")
async def get_events(
    caller: CurrentCaller,
    thread_id: UUID,
    channels: Annotated[list[str], Query(min_length=1, max_length=100)],
    since: Annotated[int | None, Query(ge=-1, le=2**53)] = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the events of a thread's runs, for clients that cannot send a body."""
    after = parse_last_event_id((last_event_id or "").partition(".")[0])
    seq = since if after is None else find_seq(after)
    if seq is not None and seq > MAX_SEQ:
        raise InvalidInput("Last-Event-ID", "it is not the id of an event", "Send the id of the last event unchanged.")
    return await _respond_feed(caller, thread_id, SubscribeIn(channels=channels, since=seq))


async def _respond_feed(caller: Caller, thread_id: UUID, subscription: SubscribeIn) -> Response:
    await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
    feed = ThreadFeed(caller, thread_id, parse_filter(subscription), subscription.since)
    return FeedResponse(feed.read_sse(), on_disconnect=None, headers={}, media_type="text/event-stream")


@router.get("/stream")
async def join_thread(
    caller: CurrentCaller,
    thread_id: UUID,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the runs of a thread after `Last-Event-ID`, or what comes from now on. It has no end."""
    await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
    modes = frozenset(mode for mode in stream_mode or () if mode) or frozenset({"run_modes"})
    if unknown := sorted(modes - set(JOIN_MODES)):
        raise InvalidInput("stream_mode", f"{unknown[0]!r} is not supported", f"Use any of {', '.join(JOIN_MODES)}.")
    after_id = parse_last_event_id(last_event_id)
    if after_id is None:
        after_id = await caller.context.run_streams.find_last_id(caller.tenant_id, thread_id)
    join = ThreadJoin(caller, thread_id, after_id, modes)
    return FeedResponse(join.read_sse(), on_disconnect=None, headers={}, media_type="text/event-stream")


@sockets.websocket("/stream/events")
async def serve_socket(socket: WebSocket, thread_id: str) -> None:
    """Serve commands and subscriptions over one connection."""
    try:
        caller = await _identify_socket(socket)
        thread = UUID(thread_id)
        await check_thread(caller, thread, "update")  # the connection may send commands
    except (HTTPException, OffingError, ValueError) as error:
        await socket.close(4422 if isinstance(error, ValueError) else 4401)
        return
    await socket.accept()
    await ThreadSocket(socket, caller, thread).serve()


async def _identify_socket(socket: WebSocket) -> Caller:
    """Return who opened a connection. Its headers are read as those of a request."""
    context: LangGraphContext = socket.app.state.get_context()
    return await find_caller(Request({**socket.scope, "type": "http", "method": "GET"}), context)

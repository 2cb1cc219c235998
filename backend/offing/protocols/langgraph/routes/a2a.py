"""The endpoints of A2A: every assistant is an agent, whose tasks are runs and whose contexts are threads."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Query, Request, Response

from offing.bus.run_streams import find_position
from offing.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from offing.core.run import TERMINAL_STATUSES
from offing.protocols.langgraph.a2a_messages import (
    PUSH_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    SendConfiguration,
    SendParams,
    TaskParams,
    build_input,
    build_resume,
    render_task,
)
from offing.protocols.langgraph.a2a_streams import stream_task
from offing.protocols.langgraph.access import check_thread
from offing.protocols.langgraph.agent_cards import render_card
from offing.protocols.langgraph.assistant_reads import get_graph, get_usable_assistant
from offing.protocols.langgraph.bodies import RunIn
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.graph_schemas import read_input_schema
from offing.protocols.langgraph.json_rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RpcError,
    RpcRequest,
    build_result,
    parse_params,
    respond_to,
)
from offing.protocols.langgraph.rendering import respond_json
from offing.protocols.langgraph.run_feeds import FeedResponse, RunFeed, follow_result
from offing.protocols.langgraph.run_requests import create_run
from offing.services import langgraph_runs
from offing.services.langgraph_run_views import LangGraphRunView, get_view
from offing.storage.assistants import AssistantRow
from offing.storage.langgraph_runs import LangGraphRunRow

CARD = "/.well-known/agent-card.json"

router = APIRouter()


@router.get(CARD)
async def get_card(caller: CurrentCaller, request: Request, assistant_id: str = Query(max_length=300)) -> Response:
    """Get the agent card of an assistant."""
    return respond_json(render_card(await get_usable_assistant(caller, assistant_id), _find_address(request)))


@router.get("/a2a/{assistant_id}" + CARD)
async def get_card_below(caller: CurrentCaller, request: Request, assistant_id: str) -> Response:
    """Get the agent card of an assistant, for clients that look for it below the agent's address."""
    return respond_json(render_card(await get_usable_assistant(caller, assistant_id), _find_address(request)))


@router.post("/a2a/{assistant_id}")
async def answer(caller: CurrentCaller, assistant_id: str, request: Request) -> Response:
    """Answer one message of JSON-RPC: `message/send`, `message/stream`, or a method of tasks."""

    async def handle(message: RpcRequest) -> Response:
        try:
            return await _answer(caller, assistant_id, message)
        except (InvalidInput, Conflict, NotFound, Unavailable) as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error

    return await respond_to(request, handle)


async def _answer(caller: Caller, assistant_id: str, message: RpcRequest) -> Response:
    assistant = await get_usable_assistant(caller, assistant_id)
    if not message.wants_answer:
        return Response(status_code=202)
    if (method := METHODS.get(message.method)) is None:
        raise RpcError(METHOD_NOT_FOUND, f"{message.method[:100]}: this method is not supported.")
    return await method(A2aCall(caller, assistant, message.id, message.params))


@dataclass(frozen=True, slots=True)
class A2aCall:
    """A request to an assistant."""

    caller: Caller
    assistant: AssistantRow
    id: Any
    params: Mapping[str, Any]

    def respond(self, result: Any) -> Response:
        return respond_json(build_result(self.id, result))

    async def read_view(self, run: LangGraphRunRow) -> LangGraphRunView:
        caller = self.caller
        return await get_view(caller.database, caller.tenant_id, caller.context.graphs, run.id)

    async def find_task(self, params: TaskParams, action: str) -> LangGraphRunRow:
        """Return the run of a task of this assistant. Raises RpcError, also for one that the user may not see."""
        try:
            run = await langgraph_runs.get_run(self.caller.database, self.caller.tenant_id, None, params.id)
            await check_thread(self.caller, run.thread_id, action)
        except NotFound:
            run = None
        if run is None or run.assistant_id != self.assistant.id:
            raise RpcError(TASK_NOT_FOUND, f"id: there is no task {params.id} of this agent.")
        return run


async def _send_message(call: A2aCall) -> Response:
    params = parse_params(SendParams, call.params)
    configuration, run = params.configuration or SendConfiguration(), await _create_task(call, params)
    if not configuration.blocking:
        return call.respond(render_task(await call.read_view(run)))

    async def follow() -> AsyncGenerator[bytes]:
        async for result in follow_result(call.caller, run):
            if result is None:
                yield b"\n"
            else:
                view = await call.read_view(result.run)
                yield bytes(call.respond(render_task(view, configuration.historyLength)).body)

    return FeedResponse(follow(), on_disconnect=None, headers={}, media_type="application/json")


async def _stream_message(call: A2aCall) -> Response:
    run = await _create_task(call, parse_params(SendParams, call.params))
    return _respond_stream(call, run, is_new=True)


async def _subscribe(call: A2aCall) -> Response:
    run = await call.find_task(parse_params(TaskParams, call.params), "read")
    return _respond_stream(call, run, is_new=False)


def _respond_stream(call: A2aCall, run: LangGraphRunRow, *, is_new: bool) -> Response:
    feed = RunFeed(call.caller, run, find_position(run.created_at), is_new=is_new)
    return FeedResponse(stream_task(call.id, feed), on_disconnect=None, headers={}, media_type="text/event-stream")


async def _get_task(call: A2aCall) -> Response:
    params = parse_params(TaskParams, call.params)
    run = await call.find_task(params, "read")
    return call.respond(render_task(await call.read_view(run), params.historyLength))


async def _cancel_task(call: A2aCall) -> Response:
    run = await call.find_task(parse_params(TaskParams, call.params), "update")
    if run.status in TERMINAL_STATUSES:
        raise RpcError(TASK_NOT_CANCELABLE, f"id: task {run.id} has ended.")
    caller = call.caller
    await langgraph_runs.cancel_runs(caller.context.platform, caller.tenant_id, [run.id], waits=True, deletes=False)
    return call.respond(render_task(await call.read_view(run)))


async def _create_task(call: A2aCall, params: SendParams) -> LangGraphRunRow:
    """Store the run of a message: the response to what a task asks for, or a new input of its context."""
    message = params.message
    if params.configuration and params.configuration.pushNotificationConfig is not None:
        raise RpcError(PUSH_NOT_SUPPORTED, "configuration.pushNotificationConfig: it is not supported. Leave it out.")
    context, interrupted = message.contextId, None
    if message.taskId is not None:
        run = await call.find_task(TaskParams(id=message.taskId), "read")
        if context not in (None, run.thread_id):
            raise RpcError(INVALID_PARAMS, "message.taskId: it is a task of another context. Leave one of both out.")
        context, view = run.thread_id, await call.read_view(run)
        interrupted = view if view.interrupts else None
    body: dict[str, Any] = {"stream_mode": ["messages-tuple"], "metadata": params.metadata or {}}
    if interrupted is not None:
        body |= {"command": {"resume": build_resume(message, interrupted)}, "multitask_strategy": "reject"}
    else:
        schema = await read_input_schema(get_graph(call.caller, call.assistant))
        body |= {"input": build_input(message, schema)}
    body |= {"on_completion": "keep"} if context is None else {"if_not_exists": "create"}
    return await create_run(call.caller, context, RunIn(assistant_id=call.assistant.id, **body))


def _find_address(request: Request) -> str:
    return str(request.base_url).rstrip("/")


METHODS: Mapping[str, Callable[[A2aCall], Awaitable[Response]]] = {
    "message/send": _send_message,
    "message/stream": _stream_message,
    "tasks/get": _get_task,
    "tasks/cancel": _cancel_task,
    "tasks/resubscribe": _subscribe,
}

"""Commands of the thread-centric protocol: start a run, respond to interrupts, and read or fork states."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from pydantic import Field, ValidationError

from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError, Unauthorized
from offing.core.langgraph_run import Multitask
from offing.core.run import TERMINAL_STATUSES
from offing.protocols.langgraph.bodies import Body, CommandIn, ConfigIn, JsonObject, Metadata, RunIn, SendIn
from offing.protocols.langgraph.context import Caller
from offing.protocols.langgraph.rendering import render_checkpoint, render_empty_state, render_state
from offing.protocols.langgraph.run_requests import create_run
from offing.protocols.langgraph.state_updates import list_interrupts, open_thread
from offing.services import langgraph_runs, langgraph_states
from offing.services.graphs import get_graph
from offing.services.runs import send_user_message
from offing.storage.langgraph_runs import LangGraphRunRow

Params = Mapping[str, Any]
Handler = Callable[[Caller, UUID, Params], Awaitable[Mapping[str, Any]]]


class CommandError(Exception):
    """`CommandError(code, message)`: an error with a code of the protocol."""


class RunStart(Body):
    assistant_id: UUID | str
    input: Any = None
    config: ConfigIn = Field(default_factory=ConfigIn)
    context: JsonObject | None = None
    metadata: Metadata = Field(default_factory=dict)
    multitask_strategy: Multitask = Multitask.ENQUEUE
    interrupt_before: Any = None
    interrupt_after: Any = None


class Response(Body):
    interrupt_id: str
    response: Any = None
    namespace: list[str] = Field(default_factory=list)


class InputRespond(Body):
    interrupt_id: str | None = None
    response: Any = None
    namespace: list[str] = Field(default_factory=list)
    responses: list[Response] | None = None
    update: Any = None
    goto: SendIn | str | list[SendIn | str] | None = None
    config: ConfigIn = Field(default_factory=ConfigIn)
    metadata: Metadata = Field(default_factory=dict)
    assistant_id: UUID | str | None = None
    strict_resume: bool = False


class InjectedMessage(Body):
    role: Literal["user", "system"]
    content: str
    name: str | None = None


class InputInject(Body):
    message: InjectedMessage
    namespace: Annotated[list[str], Field(max_length=0)] = Field(default_factory=list)


class StateGet(Body):
    namespace: list[str] = Field(default_factory=list)
    keys: list[str] | None = None


class ListCheckpoints(Body):
    namespace: list[str] = Field(default_factory=list)
    limit: int = Field(10, ge=1, le=1000)
    before: str | None = None


class StateFork(Body):
    checkpoint_id: str
    input: Any = None
    config: ConfigIn = Field(default_factory=ConfigIn)


async def answer_command(caller: Caller, thread_id: UUID, command: Any) -> dict[str, Any]:
    """Return the response to a command, or an error with its number."""
    fields = read_object(command)
    number = fields.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        return describe_error(None, "invalid_argument", "A command has an integer id.")
    try:
        handler = find_handler(fields.get("method"))
        if not isinstance(fields.get("params", {}), dict):
            raise CommandError("invalid_argument", "params: it is not an object.")
        result = await handler(caller, thread_id, read_object(fields.get("params")))
        return {"type": "success", "id": number, "result": result}
    except CommandError as error:
        return describe_error(number, *error.args)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        return describe_error(number, "invalid_argument", f"{where}: {fault['msg']}")
    except OffingError as error:
        return describe_error(number, _find_code(error), str(error))


def read_object(value: Any) -> dict[str, Any]:
    """Return a JSON object. Anything else is an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def describe_error(number: int | None, code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "id": number, "error": code, "message": message}


def find_handler(method: Any) -> Handler:
    """Return what answers a method. Raises CommandError."""
    if not isinstance(method, str) or method not in HANDLERS:
        raise CommandError("unknown_command", f"There is no command {str(method)[:100]!r} here.")
    return HANDLERS[method]


def _find_code(error: OffingError) -> str:
    match error:
        case Unauthorized():
            return "permission_denied"
        case NotFound():
            return "no_such_run"
        case InvalidInput() | Conflict():
            return "invalid_argument"
        case _:
            return "unknown_error"


async def start_run(caller: Caller, thread_id: UUID, params: Params) -> Mapping[str, Any]:
    """Start a run. On a thread with open interrupts, the input is the response to them."""
    renamed = {"multitask_strategy": params["multitaskStrategy"]} if params.get("multitaskStrategy") else {}
    known = {name: value for name, value in params.items() if name != "multitaskStrategy"}
    start = RunStart.model_validate({**known, **renamed})
    resumes = start.input is not None and bool(await list_interrupts(caller, thread_id))
    configurable = dict(start.config.configurable or {})
    checkpoint_id = configurable.pop("checkpoint_id", None)
    body = RunIn(
        assistant_id=start.assistant_id,
        input=None if resumes else start.input,
        command=CommandIn(resume=start.input) if resumes else None,
        config=start.config.model_copy(update={"configurable": configurable}),
        context=start.context,
        metadata=start.metadata,
        interrupt_before=start.interrupt_before,
        interrupt_after=start.interrupt_after,
        checkpoint_id=checkpoint_id,
        multitask_strategy=start.multitask_strategy,
        if_not_exists="create",
    )
    return _describe_run(await create_run(caller, thread_id, body, streams_thread=True))


async def respond(caller: Caller, thread_id: UUID, params: Params) -> Mapping[str, Any]:
    """Respond to interrupts, which starts a run that continues from them."""
    fields = InputRespond.model_validate(params)
    responses = fields.responses or [Response(interrupt_id=fields.interrupt_id or "", response=fields.response)]
    await _check_interrupts(caller, thread_id, [one.interrupt_id for one in responses])
    runs = await langgraph_runs.list_followed(caller.database, caller.tenant_id, thread_id)
    assistant = fields.assistant_id or (runs[-1].assistant_id if runs else None)
    if assistant is None:
        raise CommandError("no_such_run", "The thread has no run that could be continued.")
    named = {"update": fields.update, "goto": fields.goto}
    command = CommandIn(
        resume={one.interrupt_id: one.response for one in responses},
        **{name: value for name, value in named.items() if value is not None},
    )
    body = RunIn(assistant_id=assistant, command=command, config=fields.config, metadata=fields.metadata)
    return _describe_run(await create_run(caller, thread_id, body, streams_thread=True))


async def inject(caller: Caller, thread_id: UUID, params: Params) -> Mapping[str, Any]:
    """Send a message to the active run.

    A graph of the SDK reads it with its next turn. A graph written for LangGraph reads its input once, so that the
    message is the input of another run, which begins when the active one ends.
    """
    message = InputInject.model_validate(params).message
    runs = await langgraph_runs.list_followed(caller.database, caller.tenant_id, thread_id)
    active = next((run for run in runs if run.status not in TERMINAL_STATUSES), None)
    if active is None:
        raise CommandError("no_such_run", "The thread has no active run. Use run.start.")
    graph = get_graph(caller.context.graphs, active.graph)
    if graph.langgraph_adapter is not None:
        body = RunIn(assistant_id=active.assistant_id, input={"messages": [message.model_dump(exclude_none=True)]})
        await create_run(caller, thread_id, body, streams_thread=True)
    elif message.role == "user":
        await send_user_message(caller.database, caller.context.notifier, caller.tenant_id, active.id, message.content)
    else:
        raise CommandError("invalid_argument", f"message.role: the graph {graph.name} takes only messages of users.")
    return {}


async def get_state(caller: Caller, thread_id: UUID, params: Params) -> Mapping[str, Any]:
    """Return the latest state of the thread, or of a subgraph."""
    fields = StateGet.model_validate(params)
    where = {"checkpoint_ns": "|".join(fields.namespace)} if fields.namespace else {}
    _, thread = await open_thread(caller, thread_id)
    state = None if thread is None else await langgraph_states.get_state(caller.database, thread, where)
    rendered = render_empty_state(thread_id) if state is None or state.metadata is None else render_state(state)
    values: Any = rendered["values"]
    if fields.keys is not None:
        values = {name: value for name, value in read_object(values).items() if name in fields.keys}
    checkpoint = rendered["checkpoint"]
    named = {"checkpoint": {"id": checkpoint["checkpoint_id"]}} if checkpoint["checkpoint_id"] else {}
    return {"values": values, **named}


async def list_checkpoints(caller: Caller, thread_id: UUID, params: Params) -> Mapping[str, Any]:
    """List the checkpoints of the thread, newest first."""
    fields = ListCheckpoints.model_validate(params)
    _, thread = await open_thread(caller, thread_id)
    if thread is None:
        return {"checkpoints": []}
    where = {"checkpoint_ns": "|".join(fields.namespace)} if fields.namespace else {}
    before = {"checkpoint_id": fields.before} if fields.before else None
    states = await langgraph_states.list_states(
        caller.database, thread, where, limit=fields.limit, before=before, metadata=None
    )
    return {
        "checkpoints": [
            {
                "id": render_checkpoint(state.config)["checkpoint_id"],
                "timestamp": state.created_at,
                "step": (state.metadata or {}).get("step", -1),
                "metadata": state.metadata,
            }
            for state in states
        ]
    }


async def fork_state(caller: Caller, thread_id: UUID, params: Params) -> Mapping[str, Any]:
    """Start a run from an earlier checkpoint."""
    fields = StateFork.model_validate(params)
    runs = await langgraph_runs.list_followed(caller.database, caller.tenant_id, thread_id)
    if not runs:
        raise CommandError("no_such_checkpoint", "The thread has no run.")
    body = RunIn(
        assistant_id=runs[-1].assistant_id, input=fields.input, config=fields.config, checkpoint_id=fields.checkpoint_id
    )
    run = await create_run(caller, thread_id, body, streams_thread=True)
    return {"run_id": str(run.id), "thread_id": str(run.thread_id)}


async def get_tree(caller: Caller, thread_id: UUID, _: Params) -> Mapping[str, Any]:
    """Return the graph that the thread runs, and how its last run is."""
    runs = await langgraph_runs.list_followed(caller.database, caller.tenant_id, thread_id)
    if not runs:
        raise CommandError("no_such_run", "The thread has no run.")
    thread, _graph = await open_thread(caller, thread_id)
    status = {"busy": "running", "idle": "completed", "error": "failed"}.get(thread.status, thread.status)
    return {"tree": {"namespace": [], "status": status, "graph_name": runs[-1].graph}}


async def _check_interrupts(caller: Caller, thread_id: UUID, ids: list[str]) -> None:
    """Raise CommandError if one of the interrupts does not wait for a response."""
    waiting = {one.id for one in await list_interrupts(caller, thread_id)}
    if unknown := [id for id in ids if id not in waiting]:
        raise CommandError("no_such_interrupt", f"No interrupt {unknown[0][:100]!r} waits for a response.")


def _describe_run(run: LangGraphRunRow) -> Mapping[str, Any]:
    return {"run_id": str(run.id)}


HANDLERS: Mapping[str, Handler] = {
    "run.start": start_run,
    "input.respond": respond,
    "input.inject": inject,
    "state.get": get_state,
    "state.listCheckpoints": list_checkpoints,
    "state.fork": fork_state,
    "agent.getTree": get_tree,
}

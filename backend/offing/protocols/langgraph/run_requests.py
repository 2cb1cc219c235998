"""Requests for runs: from their bodies to stored runs, and to what their clients follow."""

from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from offing.bus.run_streams import find_position
from offing.bus.stream_messages import FIRST_ID
from offing.bus.subscriber import Subscriber
from offing.clock import new_id
from offing.core.errors import InvalidInput, NotFound
from offing.core.langgraph_run import Multitask, RunArguments
from offing.protocols.langgraph.access import allow, check_assistant, check_metadata
from offing.protocols.langgraph.bodies import RunIn
from offing.protocols.langgraph.context import Caller
from offing.protocols.langgraph.errors import Unsupported
from offing.protocols.langgraph.run_feeds import FeedResponse, RunFeed, wait_for_result
from offing.protocols.langgraph.state_updates import locate_checkpoint
from offing.services import langgraph_assistants, langgraph_runs, langgraph_threads
from offing.services.langgraph_assistants import add_assistant
from offing.services.langgraph_runs import NewLangGraphRun
from offing.services.runs import RunIds
from offing.services.webhooks import check_address
from offing.storage.assistants import AssistantRow
from offing.storage.assumptions import WrongAssumptionError
from offing.storage.langgraph_runs import LangGraphRunRow
from offing.web.guard import add_ports


async def create_run(
    caller: Caller, thread_id: UUID | None, body: RunIn, *, streams_thread: bool = False, ids: RunIds | None = None
) -> LangGraphRunRow:
    """Store a run of an assistant. `thread_id` `None` means a thread of its own, and `ids` `None` new ids.

    `streams_thread`: the run streams for the thread-centric protocol.
    """
    _check_combination(thread_id, body)
    named = (caller.database, caller.tenant_id, caller.context.graphs, body.assistant_id)
    # What a handler is asked, and the runs that a rollback deletes, must not depend on an assumption.
    may_assume = caller.principal.authorize is None and body.multitask_strategy != Multitask.ROLLBACK
    if may_assume and (assumed := langgraph_assistants.assume_assistant(*named)) is not None:
        try:
            return await _store_run(caller, thread_id, body, assumed, streams_thread, ids, assumes_not_stored=True)
        except (WrongAssumptionError, InvalidInput, NotFound):
            pass  # the assistant that is stored may do what its graph's own one does not
    assistant = await langgraph_assistants.get_assistant(*named)
    return await _store_run(caller, thread_id, body, assistant, streams_thread, ids)


async def _store_run(
    caller: Caller,
    thread_id: UUID | None,
    body: RunIn,
    assistant: AssistantRow,
    streams_thread: bool,
    ids: RunIds | None,
    *,
    assumes_not_stored: bool = False,
) -> LangGraphRunRow:
    metadata = await _authorize_run(caller, thread_id, assistant, body)
    new = NewLangGraphRun(
        assistant.graph,
        assistant.id,
        replace(
            add_headers(caller, add_assistant(assistant, build_arguments(body))),
            streams_thread=streams_thread,
            user=caller.principal.run_user,
        ),
        thread_id,
        metadata,
        Multitask(body.multitask_strategy),
        creates_thread=body.if_not_exists == "create",
        deletes_thread=thread_id is None and body.on_completion != "keep",
        thread_metadata={} if caller.principal.authorize is None else metadata,
        delay_seconds=body.after_seconds or 0.0,
        webhook=await check_webhook(caller, body.webhook),
        assumes_not_stored=assumes_not_stored,
        ids=ids,
    )
    return await langgraph_runs.create_run(caller.context.platform, caller.tenant_id, new)


async def _authorize_run(
    caller: Caller, thread_id: UUID | None, assistant: AssistantRow, body: RunIn
) -> dict[str, Any]:
    """Ask the handlers of a project for a run, and return its metadata. Raises NotFound and AccessDeniedError."""
    if caller.principal.authorize is None:
        return body.metadata
    await check_assistant(caller, assistant)
    value: dict[str, Any] = {
        "thread_id": thread_id,
        "assistant_id": assistant.id,
        "metadata": dict(body.metadata),
        "multitask_strategy": body.multitask_strategy,
        "if_not_exists": body.if_not_exists,
        "after_seconds": body.after_seconds or 0,
        "kwargs": {"input": body.input, "config": body.config.model_dump(exclude_none=True), "context": body.context},
    }
    conditions = await allow(caller, "threads", "create_run", value)
    if thread_id is not None and conditions:
        try:
            thread = await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
        except NotFound:
            if body.if_not_exists != "create":
                raise
        else:
            check_metadata(conditions, thread.metadata, "thread", thread_id)
    return value["metadata"]


async def check_webhook(caller: Caller, address: str | None) -> str | None:
    """Return the address that is told of the end of a run. `None` means that none is told.

    Raises InvalidInput for one that may not be reached, or that the project does not allow.
    """
    if address is None:
        return None
    rules = caller.context.read_webhook_rules()
    if rules.is_disabled:
        return None
    if problem := rules.find_problem(address.strip()):
        raise InvalidInput("webhook", problem, "Use an address that langgraph.json allows.")
    guard = add_ports(caller.context.address_guard, rules.allowed_ports)
    return await check_address(address, guard, "webhook")


def _check_combination(thread_id: UUID | None, body: RunIn) -> None:
    if body.input not in (None, {}) and body.command is not None:
        raise InvalidInput("command", "the run also has an input", "Send one of both.")
    if thread_id is not None and body.on_completion is not None:
        raise Unsupported("on_completion", "only a run without a thread has it")
    if thread_id is None and (body.command is not None and body.command.resume is not None):
        raise InvalidInput("command.resume", "a run without a thread has nothing to resume", "Name the thread.")
    if body.checkpoint_during is not None:
        raise Unsupported("checkpoint_during", "it is replaced by durability")


def build_arguments(body: RunIn) -> RunArguments:
    """Return how a run is invoked, without what its assistant adds.

    An empty input beside a command stands for no input: agent-chat-ui sends it with each response to an interrupt.
    """
    command = None if body.command is None else body.command.model_dump(exclude_unset=True)
    return RunArguments(
        input=body.input if command is None else None,
        command=command,
        config=body.config.model_dump(exclude_none=True),
        context=body.context,
        checkpoint=locate_checkpoint(body.checkpoint, body.checkpoint_id) or None,
        interrupt_before=_parse_breakpoints(body.interrupt_before),
        interrupt_after=_parse_breakpoints(body.interrupt_after),
        stream_modes=tuple(body.stream_mode),
        stream_subgraphs=body.stream_subgraphs,
        durability=body.durability,
    )


def add_headers(caller: Caller, arguments: RunArguments) -> RunArguments:
    """Return the arguments of a run with the headers of its request that a project chooses, before other values."""
    if not caller.run_headers:
        return arguments
    configurable: dict[str, Any] = {**(arguments.config.get("configurable") or {}), **caller.run_headers}
    return replace(arguments, config={**arguments.config, "configurable": configurable})


def _parse_breakpoints(nodes: Any) -> Any:
    return tuple(nodes) if isinstance(nodes, list) else nodes  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def describe_location(run: LangGraphRunRow, following: str = "") -> Mapping[str, str]:
    """Return the headers that name a run, and where a client continues to follow it: `stream`, `join` or nowhere."""
    path = f"/threads/{run.thread_id}/runs/{run.id}"
    location = {"Location": f"{path}/{following}"} if following else {}
    return {"Content-Location": path, **location}


async def stream_new_run(caller: Caller, thread_id: UUID | None, body: RunIn) -> FeedResponse:
    """Create a run and return a response that streams its events. Raises as `create_run`.

    It subscribes before the run is stored, so that nothing has to be read afterwards.
    """
    async with AsyncExitStack() as until_created:
        ids, bus = RunIds(new_id(), thread_id or new_id()), caller.context.bus
        subscription = bus.subscribe_stream(caller.tenant_id, ids.thread_id, ids.run_id, waits=False)
        notices = await until_created.enter_async_context(subscription)
        run = await create_run(caller, thread_id, body, ids=ids)
        feed = RunFeed(
            caller, run, find_position(run.created_at), is_new=True, notices=notices if notices.is_confirmed else None
        )
        return _respond_feed(feed, cancels=body.on_disconnect == "cancel", subscription=until_created.pop_all())


async def wait_for_new_run(caller: Caller, thread_id: UUID | None, body: RunIn) -> FeedResponse:
    """Create a run and return a response with its result. Raises as `create_run`. It subscribes as `stream_new_run`."""
    async with AsyncExitStack() as until_created:
        ids, bus = RunIds(new_id(), thread_id or new_id()), caller.context.bus
        notices = await until_created.enter_async_context(bus.subscribe(caller.tenant_id, [ids.run_id], waits=False))
        run = await create_run(caller, thread_id, body, ids=ids)
        return respond_result(
            caller,
            run,
            cancels=body.on_disconnect == "cancel",
            notices=notices if notices.is_confirmed else None,
            subscription=until_created.pop_all(),
        )


def respond_stream(
    caller: Caller,
    run: LangGraphRunRow,
    *,
    after_id: str = FIRST_ID,
    modes: frozenset[str] | None = None,
    cancels: bool = False,
) -> FeedResponse:
    """Return a response that streams the events of a run. `cancels`: the run ends if the client leaves."""
    feed = RunFeed(caller, run, find_position(run.created_at) if after_id == FIRST_ID else after_id, modes)
    return _respond_feed(feed, cancels=cancels)


def _respond_feed(feed: RunFeed, *, cancels: bool, subscription: AsyncExitStack | None = None) -> FeedResponse:
    return FeedResponse(
        feed.read_events(),
        on_disconnect=_canceller(feed.caller, feed.run) if cancels else None,
        headers=describe_location(feed.run, "stream"),
        subscription=subscription,
        media_type="text/event-stream",
    )


def respond_result(
    caller: Caller,
    run: LangGraphRunRow,
    *,
    cancels: bool = False,
    notices: Subscriber | None = None,
    subscription: AsyncExitStack | None = None,
) -> FeedResponse:
    """Return a response with the result of a run, once it has ended.

    `notices` have all events of the run, from a `subscription` that ends with the response. `None` means that it
    subscribes itself.
    """
    return FeedResponse(
        wait_for_result(caller, run, notices),
        on_disconnect=_canceller(caller, run) if cancels else None,
        headers=describe_location(run, "join"),
        subscription=subscription,
        media_type="application/json",
    )


def _canceller(caller: Caller, run: LangGraphRunRow) -> Any:
    async def cancel() -> None:
        with suppress(NotFound):  # it was deleted in the meantime
            await langgraph_runs.cancel_runs(
                caller.context.platform, caller.tenant_id, [run.id], waits=False, deletes=False
            )

    return cancel

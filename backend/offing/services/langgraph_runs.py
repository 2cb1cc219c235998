"""Runs of LangGraph's clients: made in a thread or without one, beside active runs as the client chose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from offing.bus.live import LiveBus
from offing.bus.notifier import RunNotifier
from offing.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from offing.core.langgraph_config import ThreadTtl
from offing.core.langgraph_run import LANGGRAPH, Multitask, RunArguments
from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode
from offing.core.step import shorten_line
from offing.kernel.langgraph_json import dump_json
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services import run_deletion, run_summaries
from offing.services.graphs import get_graph
from offing.services.langgraph_threads import CANCEL_SECONDS, TITLE
from offing.services.runs import RunIds, RunRequest, cancel_run, send_run
from offing.storage import assistants, langgraph_runs, langgraph_threads, runs, thread_expiry
from offing.storage.langgraph_runs import LangGraphRunRow, NewRequest, SentRead
from offing.storage.pool import Connection, Database

MAX_TURNS = 1000
"""Maximum number of model calls of a run, unless the process has another one."""

MAX_QUESTION_CHARS = 2000
"""Maximum length of the text that stands for a run's input in lists."""


@dataclass(frozen=True, slots=True)
class RunPlatform:
    """What making a run needs of the process."""

    database: Database
    notifier: RunNotifier
    bus: LiveBus
    graphs: Mapping[str, Graph]
    default_engine: EngineConfig
    role_engines: Mapping[str, EngineConfig]
    mcp_servers: McpServerRegistry
    thread_ttl: ThreadTtl | None = None
    """When threads expire that name no time. `None` means never."""
    max_turns: int = MAX_TURNS
    """Maximum number of model calls of a run, because LangGraph's clients name none."""


@dataclass(frozen=True, slots=True)
class NewLangGraphRun:
    """A request for a run."""

    graph: str
    assistant_id: UUID
    arguments: RunArguments
    thread_id: UUID | None
    """`None` means a new thread."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    multitask: Multitask = Multitask.ENQUEUE
    creates_thread: bool = False
    """Whether a thread that does not exist is created."""
    deletes_thread: bool = False
    """Whether the thread of a run without one is gone for LangGraph's clients when the run has ended."""
    thread_metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Metadata of the thread, if it is new."""
    delay_seconds: float = 0.0
    webhook: str | None = None
    """Address that is told of the end of the run. `None` means none."""
    assumes_not_stored: bool = False
    """Whether the assistant is the own one of its graph, which nobody has changed and stored. If that is wrong, storing
    the run raises WrongAssumptionError.
    """
    ids: RunIds | None = None
    """The ids of the run. `None` means new ones."""


@dataclass(frozen=True, slots=True)
class StoredLangGraphRun:
    """A run that was stored, and what its notification needs."""

    row: LangGraphRunRow
    active: Sequence[UUID]
    """The active runs of its thread, oldest first."""


@dataclass(frozen=True, slots=True)
class SentRun:
    """An insert of a run that may be waiting in a pipeline."""

    run: runs.SentRun
    request: NewRequest
    active: Sequence[UUID]
    waiting: SentRead[LangGraphRunRow] | None
    """The run, if it has to wait. `None` means that workers may begin it."""

    async def read(self) -> StoredLangGraphRun:
        """Return the run as it was stored. Waits for it if its transaction is still in progress."""
        if self.waiting is not None:
            return StoredLangGraphRun(await self.waiting.read(), self.active)
        return StoredLangGraphRun(langgraph_runs.build_new_run(await self.run.read_run(), self.request), self.active)


async def create_run(platform: RunPlatform, tenant_id: UUID, new: NewLangGraphRun) -> LangGraphRunRow:
    """Store a run and notify the workers.

    Raises NotFound for an unknown thread, Conflict for a busy one that rejects further runs, InvalidInput, and
    WrongAssumptionError.
    """
    check_arguments(get_graph(platform.graphs, new.graph), new.arguments)
    await make_room(platform, tenant_id, new)
    # a thread that may exist already is created within a savepoint, which a pipeline does not have
    pipelined = new.thread_id is None or not new.creates_thread
    assumptions = platform.database.assumptions
    with runs.insert_errors(new.thread_id), assumptions.check(tenant_id, new.assistant_id):
        async with platform.database.transaction(tenant_id, pipelined=pipelined) as connection:
            sent = await send_langgraph_run(connection, platform, tenant_id, new)
    stored = await sent.read()
    await announce_run(platform, tenant_id, new, stored)
    return stored.row


async def make_room(platform: RunPlatform, tenant_id: UUID, new: NewLangGraphRun) -> None:
    """Roll back the active runs of the thread of a run that asks for it."""
    if new.thread_id is not None and new.multitask is Multitask.ROLLBACK:
        await _roll_back_active(platform, tenant_id, new.thread_id)


async def store_langgraph_run(
    connection: Connection, platform: RunPlatform, tenant_id: UUID, new: NewLangGraphRun
) -> StoredLangGraphRun:
    """Store a run in the caller's transaction, after which the caller announces it. Raises as `create_run`."""
    with runs.insert_errors(new.thread_id):
        return await (await send_langgraph_run(connection, platform, tenant_id, new)).read()


async def send_langgraph_run(
    connection: Connection, platform: RunPlatform, tenant_id: UUID, new: NewLangGraphRun
) -> SentRun:
    """Do the same as `store_langgraph_run`. In a pipelined transaction, this does not wait for the run.

    The transaction then raises the errors of `runs.insert_errors`.
    """
    graph = get_graph(platform.graphs, new.graph)
    if new.assumes_not_stored:
        await assistants.send_absence_check(connection, new.assistant_id)
    active = await _prepare_thread(connection, tenant_id, new)
    if active and new.multitask is Multitask.REJECT:
        raise Conflict("The thread has an active run.", "Wait until it ends, or choose another multitask_strategy.")
    run = await send_run(
        connection,
        tenant_id,
        _build_request(platform, graph, new, enqueued=bool(active)),
        platform.graphs,
        platform.default_engine,
        platform.mcp_servers,
    )
    request = NewRequest(
        new.assistant_id, new.arguments, new.metadata, new.multitask, new.deletes_thread, webhook=new.webhook
    )
    await langgraph_runs.insert_request(connection, tenant_id, run.id, request)
    described = {"graph_id": graph.name, "assistant_id": str(new.assistant_id)}
    if new.thread_id is None:
        described = {**new.thread_metadata, **described}
    await langgraph_threads.merge_metadata(connection, tenant_id, run.thread_id, described)
    if platform.thread_ttl is not None:
        await thread_expiry.set_ttl(connection, run.thread_id, platform.thread_ttl, replaces=False)
    if active:
        await langgraph_runs.enqueue_run(connection, run.id, new.delay_seconds)
    elif new.delay_seconds:
        await langgraph_runs.delay_run(connection, run.id, new.delay_seconds)
    waits = bool(active or new.delay_seconds)
    waiting = await langgraph_runs.send_get_run(connection, run.id) if waits else None
    return SentRun(run, request, active, waiting)


async def announce_run(
    platform: RunPlatform, tenant_id: UUID, new: NewLangGraphRun, stored: StoredLangGraphRun
) -> None:
    """Notify the workers of a stored run, and cancel the active runs if it asks for it.

    An active run may have ended before the transaction that stored this one was visible.
    """
    if stored.active:
        async with platform.database.transaction(tenant_id) as connection:
            await langgraph_runs.queue_next_run(connection, stored.row.thread_id)
    # Nobody follows the run yet, because nobody has had its id, so that its first step is not published.
    await platform.notifier.dispatch_run(stored.row.id)
    if new.multitask is Multitask.INTERRUPT:
        for run_id in reversed(stored.active):
            await cancel_run(platform.database, platform.notifier, tenant_id, run_id, CancelMode.DISCARD)


def check_arguments(graph: Graph, arguments: RunArguments) -> None:
    """Raise InvalidInput for arguments that a graph of Offing's SDK cannot follow."""
    if graph.langgraph_adapter is not None:
        return
    for name in ("command", "context", "checkpoint", "interrupt_before", "interrupt_after"):
        if getattr(arguments, name) is not None:
            problem = f"{graph.name} is a graph of Offing's SDK, which takes only a question"
            raise InvalidInput(name, problem, "Leave it out.")
    if not read_question(arguments.input):
        raise InvalidInput(
            "input",
            "it has no question",
            'Send {"messages": [{"role": "user", "content": "…"}]}, or {"question": "…"}.',
        )


def read_question(graph_input: Any) -> str:
    """Return the text of an input: its question, or its last message of a person. Empty means that there is none."""
    if isinstance(graph_input, str):
        return graph_input.strip()
    if not isinstance(graph_input, Mapping):
        return ""
    values = cast(Mapping[str, Any], graph_input)
    if isinstance(values.get("question"), str):
        return values["question"].strip()
    messages: Any = values.get("messages")
    listed: list[Any] = messages if isinstance(messages, list) else [messages]  # pyright: ignore[reportUnknownVariableType]
    texts = [_read_message(one) for one in listed]
    return next((text for text in reversed(texts) if text), "")


def _read_message(message: Any) -> str:
    """Return the text of a person's message. Empty for any other."""
    if isinstance(message, str):
        return message.strip()
    if isinstance(message, list | tuple) and len(cast(list[Any], message)) == 2:
        role, content = cast(list[Any], message)
    elif isinstance(message, Mapping):
        one = cast(Mapping[str, Any], message)
        role, content = one.get("role") or one.get("type"), one.get("content")
    else:
        return ""
    if role not in ("user", "human"):
        return ""
    if isinstance(content, list):
        several = cast(list[Any], content)
        parts: list[Any] = [cast(Any, p).get("text", "") if isinstance(p, Mapping) else p for p in several]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content.strip() if isinstance(content, str) else ""


async def cancel_runs(
    platform: RunPlatform, tenant_id: UUID, run_ids: list[UUID], *, waits: bool, deletes: bool
) -> None:
    """Cancel runs, wait for their end if asked to, and delete them if asked to."""
    for run_id in run_ids:
        await cancel_run(platform.database, platform.notifier, tenant_id, run_id, CancelMode.DISCARD)
    for run_id in run_ids if waits or deletes else ():
        if not await run_summaries.wait_for_end(platform.database, platform.bus, tenant_id, run_id, CANCEL_SECONDS):
            raise Unavailable(f"Run {run_id} has not stopped within {CANCEL_SECONDS:.0f} seconds.")
    for run_id in reversed(run_ids) if deletes else ():
        await run_deletion.delete_run(platform.database, tenant_id, run_id, keeps_thread=True)


async def get_run(database: Database, tenant_id: UUID, thread_id: UUID | None, run_id: UUID) -> LangGraphRunRow:
    """Return a run. Raises NotFound, also if it is a run of another thread."""
    async with database.transaction(tenant_id, pipelined=True) as connection:
        sent = await langgraph_runs.send_get_run(connection, run_id)
    run = await sent.read()
    if thread_id not in (None, run.thread_id):
        raise NotFound("run", str(run_id))
    return run


async def list_runs(
    database: Database, tenant_id: UUID, thread_id: UUID, *, limit: int | None = None, offset: int = 0
) -> list[LangGraphRunRow]:
    """Return the runs of a thread, newest first. `limit` `None` means all after the first `offset`. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await langgraph_threads.get_thread(connection, thread_id)
        return await langgraph_runs.list_runs(connection, thread_id, limit=limit, offset=offset)


async def list_active_by_metadata(
    database: Database, tenant_id: UUID, metadata: Mapping[str, Any]
) -> list[LangGraphRunRow]:
    """Return the active runs of the tenant whose metadata contain these, oldest first."""
    async with database.transaction(tenant_id) as connection:
        return await langgraph_runs.list_active_by_metadata(connection, metadata)


async def list_followed(database: Database, tenant_id: UUID, thread_id: UUID) -> list[LangGraphRunRow]:
    """Return the runs of a thread that have not ended, and its last run, oldest first. Empty also without a thread."""
    async with database.transaction(tenant_id) as connection:
        return await langgraph_runs.list_followed(connection, thread_id)


async def _roll_back_active(platform: RunPlatform, tenant_id: UUID, thread_id: UUID) -> None:
    """Cancel and delete the active runs of a thread, the latest first."""
    async with platform.database.transaction(tenant_id) as connection:
        active = await langgraph_runs.list_active_ids(connection, thread_id)
    for run_id in reversed(active):
        await cancel_runs(platform, tenant_id, [run_id], waits=True, deletes=True)


async def _prepare_thread(connection: Connection, tenant_id: UUID, new: NewLangGraphRun) -> list[UUID]:
    """Lock the thread of a run, create it if asked to, and return its active runs."""
    if new.thread_id is None:
        return []
    if new.creates_thread:
        await langgraph_threads.insert_thread(connection, tenant_id, new.thread_id, TITLE, new.thread_metadata)
    await langgraph_runs.lock_thread(connection, new.thread_id)
    return await langgraph_runs.list_active_ids(connection, new.thread_id)


def _build_request(platform: RunPlatform, graph: Graph, new: NewLangGraphRun, *, enqueued: bool) -> RunRequest:
    question = read_question(new.arguments.input) or _describe_arguments(new.arguments)
    roles = {role.name for role in graph.list_askable_roles(())}
    return RunRequest(
        question=question,
        graph=graph.name,
        thread_id=new.thread_id,
        budget=Budget() if graph.langgraph_adapter is None else Budget(max_turns=platform.max_turns),
        default_engines={name: engine for name, engine in platform.role_engines.items() if name in roles},
        protocol=LANGGRAPH,
        enqueued=enqueued,
        ids=new.ids,
    )


def _describe_arguments(arguments: RunArguments) -> str:
    """Return what stands in lists for a run whose input is no question."""
    if arguments.command is not None:
        return shorten_line(f"Command: {dump_json(arguments.command).decode()}", MAX_QUESTION_CHARS)
    if arguments.input is None:
        return "Continue from the state of the thread"
    return shorten_line(dump_json(arguments.input).decode(), MAX_QUESTION_CHARS)

"""Execute the graph of a run until it ends, interrupts itself, or is stopped.

Workers, tests and replays execute graphs only with this function. The nodes find the run in LangGraph's runtime
context or through `offing.sdk.current_run`. Values that they stream become notes.
"""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from langgraph.cache.memory import InMemoryCache
from langgraph.types import Interrupt

from offing.core.run import StopReason
from offing.core.step import StepDraft, StepKind, shorten_line
from offing.kernel.checkpointer import Checkpointer
from offing.kernel.graph_streams import EVENTS, StreamedValue, stream_events, stream_protocol, stream_values
from offing.kernel.invocation_values import build_run_channels
from offing.kernel.langgraph_invocation import GraphInvocation
from offing.kernel.recorded_calls import NOTE_KINDS
from offing.kernel.run_setup import ActiveRun
from offing.kernel.run_store import JournalEntry
from offing.kernel.uncheckpointed_graphs import allow_uncheckpointed_graphs
from offing.kernel.wait_conditions import find_interrupts
from offing.langchain.errors import ModelCallError, RunStopped
from offing.sdk import Graph
from offing.sdk.current_run import use_run
from offing.sdk.langgraph_adapter import GraphOpening

MAX_CONCURRENCY = 16
"""Maximum number of nodes of one superstep that run at the same time.

Each node may occupy a thread while it waits for a model.
"""

MAX_SUPERSTEPS = 1_000_000
"""Maximum number of supersteps of a graph that uses the SDK. The budget of the run limits its turns."""

MAX_NOTES = 200
"""Maximum number of streamed values of a claim that are stored as notes.

Later values are only shown live.
"""

MAX_NOTE_BYTES = 8_000
"""Maximum size of a streamed value as JSON, in bytes. Of a larger value only the title is stored."""


STREAM_WRITER_PATTERN = re.compile(rb"stream_writer|StreamWriter")


@dataclass(frozen=True, slots=True)
class GraphProgress:
    """How far the execution of a graph got."""

    interrupts: tuple[Interrupt, ...] = ()
    """The interrupts that the graph raised. Empty means that it ended or was stopped."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The final state. Empty means that it was not requested."""
    stop_reason: StopReason | None = None
    """Why the graph was stopped before it ended. `None` means that it was not stopped."""
    detail: str = ""
    next_nodes: tuple[str, ...] = ()
    """The nodes that come next if the graph stopped before its end. Empty also if the state was not requested."""


@cache
def compile_graph(build: Callable[[], Any]) -> Any:
    """Return a compiled graph, compiled once per process.

    The checkpointer and the store are set for each execution.
    """
    allow_uncheckpointed_graphs()
    return build().compile()


@cache
def can_stream_or_nest(build: Callable[[], Any]) -> bool:
    """Return whether a graph has subgraphs, or its package mentions LangGraph's stream writer.

    For all other graphs, observing the stream and the start of each node would slow down every
    superstep without any benefit.
    """
    if any(True for _ in compile_graph(build).get_subgraphs()):
        return True
    package = build.__module__.rpartition(".")[0] or build.__module__
    files = {
        getattr(module, "__file__", None)
        for name, module in tuple(sys.modules.items())
        if _is_in_package(name, package)
    }
    return any(STREAM_WRITER_PATTERN.search(Path(file).read_bytes()) for file in files if file and Path(file).is_file())


def _is_in_package(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _is_watched(graph: Graph) -> bool:
    return graph.langgraph_adapter is not None or can_stream_or_nest(graph.build)


async def execute_graph(
    graph: Graph,
    run: ActiveRun,
    checkpointer: Any,
    graph_input: Any,
    *,
    thread_id: str,
    read_state: bool = False,
    invocation: GraphInvocation | None = None,
    **stream_options: Any,
) -> GraphProgress:
    """Execute a graph until it ends, interrupts itself, or a limit of the run stops it.

    Raises the exceptions of the graph's code. `graph_input` is the input, a `Command` that resumes the
    graph, or `None` to continue from its position. With `read_state`, the state of a graph that uses
    the SDK is returned, too. `invocation` is how a client of LangGraph's API invokes the graph.
    `stream_options` are further arguments of LangGraph's `astream`.
    """
    async with _open_compiled(graph, run, thread_id, invocation) as built:
        return await _execute_compiled(
            built,
            graph,
            run,
            checkpointer,
            graph_input,
            thread_id=thread_id,
            read_state=read_state,
            invocation=invocation,
            **stream_options,
        )


@asynccontextmanager
async def _open_compiled(
    graph: Graph, run: ActiveRun, thread_id: str, invocation: GraphInvocation | None
) -> AsyncGenerator[Any]:
    """Open the compiled graph: the one of all runs, or one that is made for this run."""
    open_graph = graph.langgraph_adapter.open_graph if graph.langgraph_adapter else None
    if open_graph is None:
        yield compile_graph(graph.build)
        return
    allow_uncheckpointed_graphs()
    configurable = {**(invocation.configurable if invocation else {}), "thread_id": thread_id}
    opening = GraphOpening({"configurable": configurable}, run.items, _build_runtime_context(graph, run, invocation))
    async with open_graph(opening) as built:
        yield built


async def _execute_compiled(
    built: Any,
    graph: Graph,
    run: ActiveRun,
    checkpointer: Any,
    graph_input: Any,
    *,
    thread_id: str,
    read_state: bool,
    invocation: GraphInvocation | None,
    **stream_options: Any,
) -> GraphProgress:
    # the graph's own cache would be shared by all tenants
    cache = None if built.cache is None else InMemoryCache[Any]()
    if isinstance(checkpointer, Checkpointer):
        checkpointer.set_triggers(built.trigger_to_nodes)
        checkpointer.set_loop(asyncio.get_running_loop())
    channels = build_run_channels(built.channels, str(run.context.run.id))
    runnable = built.copy({"checkpointer": checkpointer, "store": run.items, "cache": cache, "channels": channels})
    config, raised, notes = _build_config(graph, run, thread_id, invocation), list[Interrupt](), _StreamNotes(run)
    stop, detail = None, ""
    context = _build_runtime_context(graph, run, invocation)
    around = graph.langgraph_adapter.execution_context() if graph.langgraph_adapter else nullcontext()
    try:
        with use_run(run.context) as stopped_by, around:
            stream = _open_stream(
                graph, runnable, invocation, graph_input=graph_input, config=config, context=context, **stream_options
            )
            async with aclosing(stream):
                async for namespace, mode, chunk in stream:
                    if invocation is not None:
                        await _show_chunk(invocation, namespace, mode, chunk)
                    if mode == "custom":
                        await notes.add(chunk)
                    elif mode == "updates" and not namespace:
                        raised += find_interrupts([chunk])
        stop = stopped_by()  # a graph that catches every error may continue to its end although it was stopped
    except RunStopped as stopped:
        stop = stopped.reason
    except ModelCallError as failed:
        if graph.langgraph_adapter is None:
            raise
        stop, detail = failed.stop_reason, str(failed)
    position = {"configurable": {"thread_id": thread_id}}  # not the checkpoint that the run may have started from
    state = await runnable.aget_state(position) if graph.langgraph_adapter or read_state else None
    return GraphProgress(tuple(raised), state.values if state else {}, stop, detail, tuple(state.next) if state else ())


def _open_stream(
    graph: Graph, runnable: Any, invocation: GraphInvocation | None, **options: Any
) -> AsyncGenerator[StreamedValue]:
    """Return what the graph streams: for the journal, and for the client that invoked it."""
    watched = _is_watched(graph)
    modes = ["updates", "custom"] if watched else ["updates"]
    if invocation is None:
        return stream_values(runnable, **options, stream_mode=modes, subgraphs=watched)
    options |= invocation.list_stream_options()
    if invocation.streams_thread:

        async def observe_task(streamed: StreamedValue) -> None:
            await invocation.observe(*streamed)

        return stream_protocol(runnable, observe_task=observe_task, **options)
    streams = stream_events if EVENTS in invocation.modes else stream_values
    known = [mode if mode != EVENTS else "checkpoints" for mode in invocation.modes]  # they tell the superstep
    modes = list(dict.fromkeys([*modes, *known]))
    return streams(runnable, **options, stream_mode=modes, subgraphs=watched or invocation.with_subgraphs)


async def _show_chunk(invocation: GraphInvocation, namespace: tuple[str, ...], mode: str, chunk: Any) -> None:
    """Pass a streamed value on to the client, if it asked for it."""
    if invocation.shows(namespace, mode):
        await invocation.observe(namespace, mode, chunk)
    if mode == "checkpoints" and not namespace and invocation.pass_checkpoint is not None:
        invocation.pass_checkpoint(chunk["metadata"]["step"])


def _build_runtime_context(graph: Graph, run: ActiveRun, invocation: GraphInvocation | None) -> Any:
    """Return LangGraph's runtime context: the run, or the context that a client or an adapted graph declares."""
    if graph.langgraph_adapter is None:
        return run.context
    if invocation is not None and invocation.context is not None:
        return dict(invocation.context)
    return graph.langgraph_adapter.context(run.context.run) if graph.langgraph_adapter.context else None


def _build_config(graph: Graph, run: ActiveRun, thread_id: str, invocation: GraphInvocation | None) -> dict[str, Any]:
    spans = run.components.spans.node_spans
    config: dict[str, Any] = {
        "configurable": {**(invocation.configurable if invocation else {}), "thread_id": thread_id},
        "callbacks": [*([run.paths] if invocation or _is_watched(graph) else []), *([spans] if spans else [])],
    }
    if graph.langgraph_adapter is None:
        return {**config, "recursion_limit": MAX_SUPERSTEPS}
    if invocation is not None:
        config |= {"tags": list(invocation.tags), "metadata": dict(invocation.metadata)}
        if invocation.recursion_limit is not None:
            config["recursion_limit"] = invocation.recursion_limit
    return {**config, "max_concurrency": MAX_CONCURRENCY}


@dataclass(slots=True)
class _StreamNotes:
    """The values that a graph streams with LangGraph's stream writer."""

    run: ActiveRun
    count: int = 0

    async def add(self, chunk: Any) -> None:
        """Store a value as a note, once even if its node runs again. Above the limit, only show it live."""
        self.count += 1
        if self.count > MAX_NOTES:
            return await self.run.context.show_action(_render_chunk(chunk))
        body = orjson.dumps(chunk, default=str)
        payload: dict[str, Any] = (
            {"streamed": orjson.loads(body)} if len(body) <= MAX_NOTE_BYTES else {"bytes": len(body)}
        )
        call, journal = self.run.components.call_keys.next_side_call(payload), self.run.components.journal
        if journal.take_recorded(call, NOTE_KINDS) is None:
            journal.check_new(call)
            note = StepDraft(StepKind.NOTE, _render_chunk(chunk), payload, label="streams", call_key=call.key)
            await journal.append(JournalEntry(note))


def _render_chunk(chunk: Any) -> str:
    """Return a streamed value as text: its only string, or its JSON."""
    if isinstance(chunk, Mapping) and len(chunk) == 1:  # pyright: ignore[reportUnknownArgumentType]
        chunk = next(iter(chunk.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return shorten_line(chunk if isinstance(chunk, str) else orjson.dumps(chunk, default=str).decode())

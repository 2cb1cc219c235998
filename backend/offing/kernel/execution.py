"""Execute the graph of a run until it ends, interrupts itself, or is stopped.

A worker, a test and a replay execute graphs by this function alone. Its nodes find the run in LangGraph's runtime
context or by `offing.sdk.running`. What they stream becomes notes.
"""

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from langgraph.cache.memory import InMemoryCache
from langgraph.types import Interrupt

from offing.core.run import StopReason
from offing.core.step import StepDraft, StepKind, shortened
from offing.kernel.invocation_values import channels_for
from offing.kernel.opening import OpenRun
from offing.kernel.recorded_calls import NOTES
from offing.kernel.store import Entry
from offing.kernel.unsaved_graphs import let_graphs_keep_none
from offing.kernel.wait_conditions import raised_in
from offing.langchain.endings import ModelFailed, RunStopped
from offing.sdk import Graph
from offing.sdk.running import carrying

MAX_CONCURRENCY = 16
"""Nodes of one superstep that run at the same time: each may hold a thread while it waits for a model."""

MAX_SUPERSTEPS = 1_000_000
"""Of a graph that knows the SDK: the run's budget limits its turns."""

MAX_NOTES = 200
"""Things that a claim's graph streams and that are kept as notes; what comes after is shown live alone."""

MAX_NOTE_BYTES = 8_000
"""Bytes of one of them as JSON; of a longer one only the title is kept."""


STREAM_WRITER = re.compile(rb"stream_writer|StreamWriter")


@dataclass(frozen=True, slots=True)
class Execution:
    """How far a graph came."""

    raised: tuple[Interrupt, ...] = ()
    """What it interrupted itself for. Empty: it has ended, or was stopped."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its state at the end. Empty: it was not asked for."""
    stop: StopReason | None = None
    """Why it was stopped before its own end. `None` means that it was not."""
    detail: str = ""


@cache
def compiled(build: Callable[[], Any]) -> Any:
    """Return a graph, compiled once per process. A checkpointer and a store are put in for each execution."""
    let_graphs_keep_none()
    return build().compile()


@cache
def streams_or_nests(build: Callable[[], Any]) -> bool:
    """Return whether a graph has graphs within it, or code of its package mentions LangGraph's stream writer.

    Watching what it streams, and where each node begins, costs every superstep of every other graph for nothing.
    """
    if any(True for _ in compiled(build).get_subgraphs()):
        return True
    package = build.__module__.rpartition(".")[0] or build.__module__
    files = {getattr(module, "__file__", None) for name, module in tuple(sys.modules.items()) if _is_in(name, package)}
    return any(STREAM_WRITER.search(Path(file).read_bytes()) for file in files if file and Path(file).is_file())


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _is_watched(graph: Graph) -> bool:
    return graph.plain is not None or streams_or_nests(graph.build)


async def execute(
    graph: Graph, run: OpenRun, checkpointer: Any, given: Any, *, thread: str, read_values: bool = False, **how: Any
) -> Execution:
    """Execute until the graph ends, interrupts itself, or a limit of the run stops it. Raises what its code raises.

    `given`: its input, a `Command` to resume it with, or `None` to continue where it stands. `read_values`: return the
    state of a graph that knows the SDK, too. `how`: further arguments of LangGraph's `astream`.
    """
    built = compiled(graph.build)
    cache = None if built.cache is None else InMemoryCache[Any]()  # a graph's own one would be shared by every tenant
    channels = channels_for(built.channels, str(run.context.run.id))
    runnable = built.copy({"checkpointer": checkpointer, "store": run.items, "cache": cache, "channels": channels})
    config, raised, notes = _config(graph, run, thread), list[Interrupt](), _Notes(run)
    stop, detail = None, ""
    watched = _is_watched(graph)
    modes = ["updates", "custom"] if watched else ["updates"]
    streams = {"stream_mode": modes, "subgraphs": watched}
    around = graph.plain.around() if graph.plain else nullcontext()
    try:
        with carrying(run.context) as stopped_by, around:
            async for *namespaces, mode, chunk in runnable.astream(
                given, config, context=_context(graph, run), **streams, **how
            ):
                if mode == "custom":
                    await notes.take(chunk)
                elif not any(namespaces):
                    raised += raised_in([chunk])
        stop = stopped_by()  # a graph that catches every error has gone on to its end all the same
    except RunStopped as stopped:
        stop = stopped.reason
    except ModelFailed as failed:
        if graph.plain is None:
            raise
        stop, detail = failed.reason, str(failed)
    state = await runnable.aget_state(config) if graph.plain or read_values else None
    return Execution(tuple(raised), state.values if state else {}, stop, detail)


def _context(graph: Graph, run: OpenRun) -> Any:
    """LangGraph's runtime context: the run, or what a graph that is written for LangGraph alone wants there."""
    if graph.plain is None:
        return run.context
    return graph.plain.context(run.context.run) if graph.plain.context else None


def _config(graph: Graph, run: OpenRun, thread: str) -> dict[str, Any]:
    spans = run.parts.spans.nodes
    config = {
        "configurable": {"thread_id": thread},
        "callbacks": [*([run.paths] if _is_watched(graph) else []), *([spans] if spans else [])],
    }
    if graph.plain is None:
        return {**config, "recursion_limit": MAX_SUPERSTEPS}
    return {**config, "max_concurrency": MAX_CONCURRENCY}


@dataclass(slots=True)
class _Notes:
    """What a graph's own stream writer gives out."""

    run: OpenRun
    taken: int = 0

    async def take(self, chunk: Any) -> None:
        """Keep it as a note, once also when its node runs again; or show it live, where there are many."""
        self.taken += 1
        if self.taken > MAX_NOTES:
            return await self.run.context.show(_words(chunk))
        body = orjson.dumps(chunk, default=str)
        payload: dict[str, Any] = (
            {"streamed": orjson.loads(body)} if len(body) <= MAX_NOTE_BYTES else {"bytes": len(body)}
        )
        call, journal = self.run.parts.keys.next_beside(payload), self.run.parts.journal
        if journal.take(call, NOTES) is None:
            journal.check_new(call)
            note = StepDraft(StepKind.NOTE, _words(chunk), payload, label="streams", key=call.key)
            await journal.append(Entry(note))


def _words(chunk: Any) -> str:
    """What is streamed, for people: its one text, or its JSON."""
    if isinstance(chunk, Mapping) and len(chunk) == 1:  # pyright: ignore[reportUnknownArgumentType]
        chunk = next(iter(chunk.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return shortened(chunk if isinstance(chunk, str) else orjson.dumps(chunk, default=str).decode())

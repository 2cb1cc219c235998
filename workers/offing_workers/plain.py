"""A graph that is written for LangGraph alone, on a worker: how it is advanced, and what it gives out on the way.

The only home of that. Its nodes find the run by themselves (`offing.sdk.running`); what they stream becomes notes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from langgraph.types import Interrupt

from offing.core.run import StopReason
from offing.core.step import StepDraft, StepKind, shortened
from offing.langchain.endings import ModelFailed, RunStopped
from offing.sdk import Graph
from offing.sdk.running import carrying
from offing_workers import waiting
from offing_workers.context import SliceContext
from offing_workers.recorder import Recorder

AT_ONCE = 16
"""Nodes of one superstep that run at the same time: each may hold a thread while it waits for a model."""

MOST_NOTES = 200
"""Things that a claim's graph streams and that are kept as notes; what comes after is shown live alone."""

LONGEST_NOTE = 8_000
"""Bytes of one of them as JSON; of a longer one only the title is kept."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """How far a graph came."""

    raised: tuple[Interrupt, ...] = ()
    """What it interrupted itself for. Empty: it has ended, or was stopped."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its state at the end."""
    stop: StopReason | None = None
    """Why it was stopped before its own end. None: it was not."""
    detail: str = ""


async def advanced(
    graph: Graph,
    runnable: Any,
    given: Any,
    config: dict[str, Any],
    context: SliceContext,
    recorder: Recorder,
    **how: Any,
) -> Advanced:
    """Advance until the graph ends, interrupts itself, or a limit of the run stops it. Raises what its code raises."""
    assert graph.plain is not None
    own = graph.plain.context(context.run) if graph.plain.context else None
    settings = {**config, "max_concurrency": AT_ONCE}
    raised: list[Interrupt] = []
    stop, detail, notes = None, "", _Notes(context, recorder)
    try:
        with carrying(context), graph.plain.around():
            how = {**how, "stream_mode": ["updates", "custom"], "subgraphs": True}
            async for namespace, mode, chunk in runnable.astream(given, settings, context=own, **how):
                if mode == "custom":
                    await notes.take(chunk)
                elif not namespace:
                    raised += waiting.raised_in([chunk])
    except RunStopped as stopped:
        stop = stopped.reason
    except ModelFailed as failed:
        stop, detail = failed.reason, str(failed)
    state = await runnable.aget_state(config)
    return Advanced(tuple(raised), state.values, stop, detail)


@dataclass(slots=True)
class _Notes:
    """What a graph's own stream writer gives out."""

    context: SliceContext
    recorder: Recorder
    taken: int = 0

    async def take(self, chunk: Any) -> None:
        """Keep it as a note, once also when its node runs again; or show it live, where there are many."""
        self.taken += 1
        if self.taken > MOST_NOTES:
            return await self.context.show(_words(chunk))
        body = orjson.dumps(chunk, default=str)
        payload: dict[str, Any] = (
            {"streamed": orjson.loads(body)} if len(body) <= LONGEST_NOTE else {"bytes": len(body)}
        )
        key = self.recorder.key_beside(payload)
        if self.recorder.recorded(key, frozenset({StepKind.NOTE})) is None:
            await self.recorder.append(StepDraft(StepKind.NOTE, _words(chunk), payload, label="streams", key=key))


def _words(chunk: Any) -> str:
    """What is streamed, for people: its one text, or its JSON."""
    if isinstance(chunk, Mapping) and len(chunk) == 1:  # pyright: ignore[reportUnknownArgumentType]
        chunk = next(iter(chunk.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return shortened(chunk if isinstance(chunk, str) else orjson.dumps(chunk, default=str).decode())

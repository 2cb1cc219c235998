"""What clients of the thread-centric protocol follow: the events of a thread, over all of its runs."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langgraph.types import Interrupt

from offing.bus.run_streams import END_EVENT, StreamReader, find_position
from offing.bus.stream_messages import FIRST_ID, KeptEvent, StreamEvent
from offing.core.run import TERMINAL_STATUSES
from offing.kernel.langgraph_json import dump_json
from offing.kernel.thread_events import CANCELLED_MESSAGE, describe_end
from offing.protocols.langgraph.context import Caller
from offing.protocols.langgraph.run_feeds import encode_event
from offing.protocols.langgraph.state_updates import list_interrupts
from offing.protocols.langgraph.thread_events import COURSE, EventFilter, find_id, is_end, render_entry
from offing.services import langgraph_runs
from offing.services.langgraph_run_json import find_run_status
from offing.storage.langgraph_runs import LangGraphRunRow

CHECK_SECONDS = 5.0
"""Interval between two checks of the caller's key and of the thread's last run, each with a sign of life."""

COURSE_DELAY_SECONDS = 0.1
"""Time by which a client that follows only the course of the runs is told later that a run stopped.

Clients then end their other streams of the thread, over which the last events of the run must have come before.
"""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a client begins in the stream of a thread."""

    after_id: str
    """The last event before."""
    run_id: UUID | None = None
    """The run whose first event comes first. `None` means what comes next."""


@dataclass(frozen=True, slots=True)
class ThreadFeed:
    """One client's view of a thread."""

    caller: Caller
    thread_id: UUID
    filter: EventFilter
    since: int | None = None
    """The number of the last event that the client has. `None` means to begin with the run that is active, or else
    with the last one."""

    async def read_sse(self) -> AsyncGenerator[bytes]:
        """Return the events as server-sent events. They never end."""
        async with aclosing(self.read_events()) as events:
            async for event in events:
                if event is None:
                    yield b": heartbeat\n\n"
                else:
                    yield encode_event(event["method"], dump_json(event), event["event_id"])

    async def read_events(self) -> AsyncGenerator[Event | None]:
        """Return the events that the client wants. `None` is a sign of life."""
        async with aclosing(follow_thread(self.caller, self.thread_id, await self._find_start())) as entries:
            async for entry in entries:
                if entry is None:
                    yield None
                    continue
                for event in render_entry(entry):
                    if self.filter.accepts(event):
                        if self._follows_course and (is_end(event) or event["method"] == "input.requested"):
                            await asyncio.sleep(COURSE_DELAY_SECONDS)
                        yield event
                        await self._note_end(entry, event)

    async def _find_start(self) -> StreamStart:
        if self.since is not None:
            return StreamStart(find_id(self.since))
        runs = await langgraph_runs.list_followed(self.caller.database, self.caller.tenant_id, self.thread_id)
        if not runs:
            return StreamStart(FIRST_ID)
        first = runs[0]
        streams, tenant = self.caller.context.run_streams, self.caller.tenant_id
        if self._follows_course and first.status in TERMINAL_STATUSES and await streams.was_told(tenant, first.id):
            return StreamStart(await streams.find_last_id(tenant, self.thread_id))
        return StreamStart(find_position(first.created_at), first.id)

    @property
    def _follows_course(self) -> bool:
        return self.filter.channels <= COURSE

    async def _note_end(self, entry: KeptEvent, event: Event) -> None:
        """Remember that the client knows of an end, so that it is not taken for the end of its next run."""
        if self._follows_course and is_end(event) and event["params"]["data"]["event"] != "interrupted":
            await self.caller.context.run_streams.mark_told(self.caller.tenant_id, entry.run_id)


async def follow_thread(caller: Caller, thread_id: UUID, start: StreamStart) -> AsyncGenerator[KeptEvent | None]:
    """Return the events of a thread as they come. They never end. `None` is a sign of life."""
    context, tenant, awaited = caller.context, caller.tenant_id, start.run_id
    reader, notice = StreamReader(context.run_streams, tenant, thread_id, start.after_id), None
    ends, clock = _MissingEnds(caller, thread_id), asyncio.get_running_loop().time
    checked_at = clock()
    async with context.bus.subscribe_stream(tenant, thread_id) as notices:
        while not context.bus.is_closing:
            batch = await reader.read(notice)
            for entry in batch:
                ends.note(entry)
                if awaited is None or entry.run_id == awaited:
                    awaited = None
                    yield entry
            if reader.is_behind:
                notice = None
                continue
            awaited = None
            if not batch and clock() - checked_at >= CHECK_SECONDS:
                checked_at = clock()
                yield None
                await caller.principal.reauthenticate()
                await ends.announce()
            notice = await notices.next(CHECK_SECONDS)


@dataclass(slots=True)
class _MissingEnds:
    """Appends the end of a run that is not in the stream: the run was cancelled while it waited, or its worker died
    after it had stored the end.
    """

    caller: Caller
    thread_id: UUID
    _known: set[UUID] = field(default_factory=set[UUID])
    _suspect: UUID | None = None
    """The run whose end was missing before. Its worker may have been about to append it."""

    def note(self, entry: KeptEvent) -> None:
        if entry.event.event == END_EVENT:
            self._known.add(entry.run_id)

    async def announce(self) -> None:
        """Append the end of the thread's last run if it is missing at two checks."""
        streams, tenant = self.caller.context.run_streams, self.caller.tenant_id
        runs = await langgraph_runs.list_followed(self.caller.database, tenant, self.thread_id)
        if not runs or runs[0].status not in TERMINAL_STATUSES or runs[0].id in self._known:
            return
        if self._suspect != runs[0].id:
            self._suspect = runs[0].id
            return
        for entry in await streams.read_last(tenant, self.thread_id):
            self.note(entry)
        if runs[0].id not in self._known:
            interrupts = await list_interrupts(self.caller, self.thread_id)
            await streams.append_end(tenant, self.thread_id, runs[0].id, _describe_missing_end(runs[0], interrupts))
            self._known.add(runs[0].id)


def _describe_missing_end(run: LangGraphRunRow, interrupts: Sequence[Interrupt[Any]]) -> list[StreamEvent]:
    has_succeeded = find_run_status(run) == "success"
    state = ("interrupted" if interrupts else "completed") if has_succeeded else "failed"
    error = "" if has_succeeded else run.error or CANCELLED_MESSAGE
    described = [*describe_end(run.graph, state, interrupts if has_succeeded else (), error), (END_EVENT, None)]
    return [StreamEvent(name, dump_json(data)) for name, data in described]

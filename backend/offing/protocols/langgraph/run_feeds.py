"""What LangGraph's clients follow: the events of a run as server-sent events, and its result."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from uuid import UUID

from fastapi.responses import StreamingResponse

from offing.bus.run_streams import END_EVENT, FIRST_ID, KeptEvent
from offing.core.errors import InvalidInput, NotFound, OffingError, Unauthorized
from offing.core.run import TERMINAL_STATUSES
from offing.kernel.langgraph_json import dump_json
from offing.kernel.thread_events import THREAD_EVENT
from offing.protocols.langgraph.context import Caller
from offing.services import langgraph_runs, langgraph_states, run_summaries
from offing.services.langgraph_run_json import describe_failure
from offing.services.langgraph_states import ThreadGraph
from offing.storage.langgraph_runs import LangGraphRunRow

HEARTBEAT_SECONDS = 15.0
"""Time of silence after which a sign of life is sent, and after which the caller's key is checked again."""

END_MARK_SECONDS = 2.0
"""Time for which a reader waits for the last events of a run that has ended."""

END_MARK_READS = 10
"""Number of times that it looks for them."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

OnDisconnect = Callable[[], Awaitable[object]]

background: set[asyncio.Task[Any]] = set()
"""Cancellations for clients that have left."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunFeed:
    """One client's view of a run."""

    caller: Caller
    run: LangGraphRunRow
    after_id: str
    """The last event that the client has."""
    modes: frozenset[str] | None = None
    """The stream modes that it wants. `None` means all that the run streams."""

    async def read_events(self) -> AsyncGenerator[bytes]:
        """Return the events of the run until it ends, as server-sent events."""
        yield encode_event("metadata", dump_json({"run_id": str(self.run.id), "attempt": max(self.run.claims, 1)}))
        async with aclosing(self._follow()) as events:
            async for entry in events:
                if entry is None:
                    yield b": heartbeat\n\n"
                elif self._is_wanted(entry):
                    yield encode_event(entry.event.event, entry.event.data, entry.id)

    async def _follow(self) -> AsyncGenerator[KeptEvent | None]:
        """Return the events after `after_id`. `None` is a sign of life."""
        context, tenant, last = self.caller.context, self.caller.tenant_id, self.after_id
        async with context.bus.subscribe_stream(tenant, self.run.thread_id, self.run.id) as notices:
            while True:
                batch = await context.run_streams.read_after(tenant, self.run.thread_id, last)
                own, has_ended = self._select_own(batch)
                for entry in own:
                    yield entry
                if has_ended:
                    return
                last = batch[-1].id if batch else last
                if not batch and (context.bus.is_closing or await self._has_ended()):
                    async for entry in self._read_rest(last):
                        yield entry
                    return
                if not batch:
                    await self.caller.principal.reauthenticate()
                    yield None
                await notices.next(HEARTBEAT_SECONDS)

    async def _read_rest(self, last: str) -> AsyncGenerator[KeptEvent]:
        """Return the events that came between the last read and the end, which its worker announces afterwards."""
        streams, tenant = self.caller.context.run_streams, self.caller.tenant_id
        for _ in range(END_MARK_READS):
            batch = await streams.read_after(tenant, self.run.thread_id, last)
            own, has_ended = self._select_own(batch)
            for entry in own:
                yield entry
            if has_ended or (not batch and await streams.find_last_id(tenant, self.run.thread_id) == FIRST_ID):
                return
            last = batch[-1].id if batch else last
            await asyncio.sleep(END_MARK_SECONDS / END_MARK_READS)

    def _select_own(self, batch: Sequence[KeptEvent]) -> tuple[list[KeptEvent], bool]:
        """Return the events of this run in a batch of its thread, and whether its end is among them."""
        own = [entry for entry in batch if entry.run_id == self.run.id]
        before = list(takewhile(lambda entry: entry.event.event != END_EVENT, own))
        return before, len(before) < len(own)

    async def _has_ended(self) -> bool:
        try:
            run = await langgraph_runs.get_run(self.caller.database, self.caller.tenant_id, None, self.run.id)
        except NotFound:
            return True
        return run.status in TERMINAL_STATUSES

    def _is_wanted(self, entry: KeptEvent) -> bool:
        if entry.event.event.startswith(THREAD_EVENT):
            return False
        if self.modes is None:
            return True
        mode = entry.event.event.partition("|")[0]
        kinds = {mode, "messages-tuple"} if mode == "messages" else {mode.partition("/")[0]}
        return mode in ("error", "metadata") or bool(kinds & self.modes)


class FeedResponse(StreamingResponse):
    """A response that acts if its client leaves before its end."""

    def __init__(
        self,
        chunks: AsyncGenerator[bytes],
        *,
        on_disconnect: OnDisconnect | None,
        headers: Mapping[str, str],
        **more: Any,
    ) -> None:
        super().__init__(_watch(chunks, on_disconnect), headers={**HEADERS, **headers}, **more)


async def _watch(chunks: AsyncGenerator[bytes], on_disconnect: OnDisconnect | None) -> AsyncGenerator[bytes]:
    has_ended = False
    try:
        async with aclosing(chunks):
            try:
                async for chunk in chunks:
                    yield chunk
            except Unauthorized:
                pass  # the key has ended in the meantime; the next request gets the error
            except OffingError as error:
                log.warning("a stream ended early; its client can join again: %s", error)
        has_ended = True
    finally:
        if not has_ended and on_disconnect is not None:
            task = asyncio.ensure_future(on_disconnect())
            background.add(task)
            task.add_done_callback(background.discard)


def encode_event(name: str, data: bytes, id: str = "") -> bytes:
    """Return a server-sent event."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {name}\ndata: ".encode() + data + b"\n\n"


async def wait_for_result(caller: Caller, run: LangGraphRunRow) -> AsyncGenerator[bytes]:
    """Return signs of life while a run is active, then its result as JSON."""
    context = caller.context
    while not await run_summaries.wait_for_end(
        caller.database, context.bus, caller.tenant_id, run.id, HEARTBEAT_SECONDS
    ):
        if context.bus.is_closing:
            return
        await caller.principal.reauthenticate()
        yield b"\n"
    yield dump_json(await load_result(caller, run.id))


async def load_result(caller: Caller, run_id: UUID) -> Any:
    """Return the output of an ended run, or its error."""
    run = await langgraph_runs.get_run(caller.database, caller.tenant_id, None, run_id)
    if (failure := describe_failure(run)) is not None:
        return {"__error__": failure}
    thread = ThreadGraph(caller.tenant_id, run.thread_id, caller.context.graphs[run.graph])
    return await langgraph_states.load_output(caller.database, thread)


def parse_last_event_id(last_event_id: str | None) -> str | None:
    """Return the id of the event after which a stream continues. `None` means to begin with what comes now.

    Raises InvalidInput.
    """
    if last_event_id is None or not last_event_id.strip():
        return None
    if last_event_id.strip() in ("-1", "-"):
        return FIRST_ID
    parts = last_event_id.strip().split("-")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise InvalidInput(
            "Last-Event-ID", "it is not the id of an event", "Send the id of the last event unchanged, or -1 for all."
        )
    return last_event_id.strip()

"""What LangGraph's clients follow: the events of a run as server-sent events, and its result."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from offing.bus.live_events import BusEvent, ResyncEvent, StepsEvent
from offing.bus.run_streams import END_EVENT, StreamReader
from offing.bus.stream_messages import FIRST_ID, KeptEvent
from offing.bus.subscriber import Subscriber
from offing.core.errors import InvalidInput, NotFound, OffingError, Unauthorized
from offing.core.run import TERMINAL_STATUSES
from offing.kernel.langgraph_json import dump_json
from offing.kernel.thread_events import THREAD_EVENT
from offing.protocols.langgraph.context import Caller
from offing.services import langgraph_runs, langgraph_states, run_summaries
from offing.services.langgraph_run_json import describe_failure, find_run_status
from offing.services.langgraph_states import ThreadGraph
from offing.storage.langgraph_runs import LangGraphRunRow

HEARTBEAT_SECONDS = 15.0
"""Time of silence after which a sign of life is sent, and after which the caller's key is checked again."""

CHECK_SECONDS = 1.0
"""Time without news of a run after which Postgres is asked whether it has ended."""

END_SECONDS = 2.0
"""Time for which a reader waits for the last events of a run that has ended."""

MIN_END_READS = 10
"""Number of times that it looks for them, if it hears of none."""

LAST_MESSAGE_SECONDS = 0.05
"""Time for which the message with the last events is awaited after the end was announced."""

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
    is_new: bool = False
    """Whether this request made the run. If it has ended already, its events are in the stream."""
    notices: Subscriber | None = None
    """A subscription to its stream that began before the run. `None` means that the feed subscribes itself."""

    async def read_events(self) -> AsyncGenerator[bytes]:
        """Return the events of the run until it ends, as server-sent events.

        The last one tells of the end. A client that does not get it asks for the run, because a stream may also end
        with a connection.
        """
        yield encode_event("metadata", dump_json({"run_id": str(self.run.id), "attempt": max(self.run.claims, 1)}))
        async with aclosing(self.follow()) as events:
            async for entry in events:
                if entry is None:
                    yield b": heartbeat\n\n"
                elif self._is_wanted(entry):
                    yield encode_event(entry.event.event, entry.event.data, entry.id)
        if (status := await self._find_end()) is not None:
            yield encode_event("end", dump_json({"run_id": str(self.run.id), "status": status}))

    async def follow(self) -> AsyncGenerator[KeptEvent | None]:
        """Return the events after `after_id`. `None` is a sign of life."""
        context, tenant = self.caller.context, self.caller.tenant_id
        reader = StreamReader(context.run_streams, tenant, self.run.thread_id, self.after_id)
        checked_at = time.monotonic() if self.is_new else -math.inf
        subscription = nullcontext(self.notices) if self.notices else None
        async with subscription or context.bus.subscribe_stream(tenant, self.run.thread_id, self.run.id) as notices:
            notice = await notices.next(HEARTBEAT_SECONDS) if self.notices else ResyncEvent()
            while True:
                batch = await reader.read(notice)
                own, has_ended = self._select_own(batch)
                for entry in own:
                    yield entry
                if has_ended:
                    return
                if reader.is_behind:
                    notice = None
                    continue
                is_quiet = not batch and time.monotonic() >= checked_at + CHECK_SECONDS
                if context.bus.is_closing or _is_end(notice) or (is_quiet and await self._has_ended()):
                    async for entry in self._read_rest(reader, notices):
                        yield entry
                    return
                if is_quiet:
                    checked_at = time.monotonic()
                    await self.caller.principal.reauthenticate()
                    yield None
                notice = await notices.next(HEARTBEAT_SECONDS)

    async def _read_rest(self, reader: StreamReader, notices: Subscriber) -> AsyncGenerator[KeptEvent]:
        """Return the events that came between the last read and the end.

        The worker sends them as it announces the end, so that their message is awaited before the stream is read.
        """
        streams, tenant, until = self.caller.context.run_streams, self.caller.tenant_id, time.monotonic() + END_SECONDS
        notice = await notices.next(LAST_MESSAGE_SECONDS)
        while True:
            batch = await reader.read(notice)
            own, has_ended = self._select_own(batch)
            for entry in own:
                yield entry
            if has_ended or (not batch and await streams.find_last_id(tenant, self.run.thread_id) == FIRST_ID):
                return
            if (remaining_seconds := until - time.monotonic()) <= 0:
                return
            notice = (
                None if reader.is_behind else await notices.next(min(remaining_seconds, END_SECONDS / MIN_END_READS))
            )

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

    async def _find_end(self) -> str | None:
        """Return how the run ended. `None` means that it has not ended, or that it was deleted."""
        try:
            run = await langgraph_runs.get_run(self.caller.database, self.caller.tenant_id, None, self.run.id)
        except NotFound:
            return None
        return find_run_status(run) if run.status in TERMINAL_STATUSES else None

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
        subscription: AbstractAsyncContextManager[object] | None = None,
        **more: Any,
    ) -> None:
        """`subscription` ends with the response."""
        super().__init__(_watch(chunks, on_disconnect), headers={**HEADERS, **headers}, **more)
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._subscription or nullcontext():
            await super().__call__(scope, receive, send)


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


@dataclass(frozen=True, slots=True)
class RunResult:
    """What an ended run gave."""

    run: LangGraphRunRow
    output: Any
    """Its output, or its error under `__error__`."""


async def wait_for_result(
    caller: Caller, run: LangGraphRunRow, notices: Subscriber | None = None
) -> AsyncGenerator[bytes]:
    """Return signs of life while a run is active, then its result as JSON."""
    async with aclosing(follow_result(caller, run, notices)) as results:
        async for result in results:
            yield b"\n" if result is None else dump_json(result.output)


async def follow_result(
    caller: Caller, run: LangGraphRunRow, early: Subscriber | None = None
) -> AsyncGenerator[RunResult | None]:
    """Return signs of life, which are `None`, while a run is active, then its result. It is missing at a shutdown.

    `early` is a subscription that began before the run. `None` means that this subscribes itself.
    """
    context, heartbeat_at = caller.context, time.monotonic() + HEARTBEAT_SECONDS
    subscription = nullcontext(early) if early else context.bus.subscribe(caller.tenant_id, [run.id])
    async with subscription as notices:
        notice = await notices.next(HEARTBEAT_SECONDS) if early else ResyncEvent()
        while True:
            if run_summaries.is_possible_end(notice):
                run = await langgraph_runs.get_run(caller.database, caller.tenant_id, None, run.id)
            if run.status in TERMINAL_STATUSES:
                break
            if context.bus.is_closing:
                return
            if time.monotonic() >= heartbeat_at:
                heartbeat_at = time.monotonic() + HEARTBEAT_SECONDS
                await caller.principal.reauthenticate()
                yield None
            notice = await notices.next(heartbeat_at - time.monotonic())
    yield RunResult(run, await load_result(caller, run))


async def load_result(caller: Caller, run: LangGraphRunRow) -> Any:
    """Return the output of an ended run, or its error."""
    if (failure := describe_failure(run)) is not None:
        return {"__error__": failure}
    thread = ThreadGraph(caller.tenant_id, run.thread_id, caller.context.graphs[run.graph])
    return await langgraph_states.load_output(caller.database, thread)


def _is_end(notice: BusEvent | None) -> bool:
    """Return whether a notice tells of the end of the run, which was stored before."""
    return isinstance(notice, StepsEvent) and run_summaries.is_possible_end(notice)


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

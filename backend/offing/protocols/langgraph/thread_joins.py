"""The stream of all runs of a thread in the older protocol: their events, or only when they begin and end."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

from offing.bus.run_streams import END_EVENT
from offing.bus.stream_messages import KeptEvent
from offing.kernel.langgraph_json import dump_json
from offing.kernel.thread_events import THREAD_EVENT
from offing.protocols.langgraph.context import Caller
from offing.protocols.langgraph.run_feeds import encode_event
from offing.protocols.langgraph.thread_feeds import StreamStart, follow_thread

JOIN_MODES = ("run_modes", "lifecycle", "state_update")


@dataclass(frozen=True, slots=True)
class ThreadJoin:
    """One client's view of a thread."""

    caller: Caller
    thread_id: UUID
    after_id: str
    """The last event that the client has."""
    modes: frozenset[str]
    """`run_modes`: what the runs stream. `lifecycle`: when they begin and end. `state_update`: their states."""

    async def read_sse(self) -> AsyncGenerator[bytes]:
        """Return the events as server-sent events. They never end."""
        current: UUID | None = None
        start = StreamStart(self.after_id)
        async with aclosing(follow_thread(self.caller, self.thread_id, start)) as entries:
            async for entry in entries:
                if entry is None:
                    yield b": heartbeat\n\n"
                    continue
                for name, data in self._convert(entry, is_first=entry.run_id != current):
                    yield encode_event(name, data, entry.id)
                current = entry.run_id

    def _convert(self, entry: KeptEvent, *, is_first: bool) -> Iterator[tuple[str, bytes]]:
        name, data, run = entry.event.event, entry.event.data, str(entry.run_id)
        shows_course = bool(self.modes & {"run_modes", "lifecycle"})
        if is_first and shows_course:
            yield "metadata", dump_json({"run_id": run, "attempt": max(entry.claim, 1)})
        if name == END_EVENT:
            if shows_course:
                yield "run_done", dump_json({"run_id": run})
        elif name.startswith(THREAD_EVENT):
            return
        elif "run_modes" in self.modes:
            yield name, data
        if name == "values" and "state_update" in self.modes:
            yield "state_update", data

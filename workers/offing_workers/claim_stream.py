"""What one claim of a run sends to its clients: each recorded event once, also after an earlier claim was lost."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from offing.bus.run_streams import RunStreams, StreamEvent, StreamSender
from offing.core.run import FencingToken
from offing.kernel.call_path import CallPathTracker
from offing.kernel.langgraph_json import dump_json
from offing_workers.earlier_events import EarlierEvents, collect_earlier_events

FIRST_POSITION = -2
"""The position of a claim that begins with the input."""

MAX_STEP = 2**31


class EventSink(Protocol):
    """Takes the events of one claim of a run."""

    async def open(self, paths: CallPathTracker | None, position: int, *, was_lost: bool) -> None: ...

    def pass_checkpoint(self, step: int) -> None: ...

    def send(self, name: str, data: Any) -> None: ...

    async def settle(self) -> None:
        """Return when all events that were sent are stored."""
        ...

    async def end(self) -> None: ...


@dataclass(slots=True)
class ClaimStream:
    """The stream of one claim."""

    sender: StreamSender
    fence: FencingToken
    _paths: CallPathTracker | None = None
    """Knows the superstep of the graph. `None` means that its checkpoints tell it."""
    _step: int = 0
    """The superstep after the last checkpoint that was streamed."""
    _earlier: EarlierEvents = field(default_factory=lambda: EarlierEvents(FIRST_POSITION))
    _deletions: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def open(self, paths: CallPathTracker | None, position: int, *, was_lost: bool) -> None:
        """Begin after a checkpoint, and withdraw what models wrote after it.

        `paths` knows the superstep of a graph whose events come while it executes them. `None` means that they come
        later, and that `pass_checkpoint` is called. `position` is the superstep of the checkpoint, `was_lost` whether
        the last claim ended without a release.
        """
        self._paths, self._earlier = paths, EarlierEvents(position)
        if (self.fence.number, self.fence.epoch) <= (1, 0) or not await self.sender.begin():
            return
        self._earlier = await collect_earlier_events(self.sender.read_backwards(), position, was_lost=was_lost)
        await self.sender.delete(self._earlier.list_withdrawn_ids())
        if was_lost:
            self.send("metadata", {"run_id": str(self.fence.run_id), "attempt": self.fence.number})
        for name, data in self._earlier.describe_withdrawals():
            self.send(name, data)

    def pass_checkpoint(self, step: int) -> None:
        """Note that all later events are those of the superstep after this one."""
        self._step = step + 1

    def send(self, name: str, data: Any) -> None:
        """Send an event, unless clients have it from an earlier claim."""
        step = self._paths.latest_superstep if self._paths is not None else self._step
        step, encoded = max(step, self._earlier.position, 0), dump_json(data)
        if self._earlier.unmatched and (stale := self._earlier.end_supersteps(step)):
            self._delete(stale)
        if not self._earlier.take(name, encoded):
            self.sender.send(StreamEvent(name, encoded, step))

    async def settle(self) -> None:
        await self.sender.settle()

    async def end(self) -> None:
        """Wait until everything was sent. Events of earlier claims that did not come again are deleted."""
        await self.sender.delete(self._earlier.end_supersteps(MAX_STEP))
        await self.sender.flush()

    def _delete(self, ids: list[str]) -> None:
        task = asyncio.create_task(self.sender.delete(ids))
        self._deletions.add(task)
        task.add_done_callback(self._deletions.discard)


def open_claim_stream(streams: RunStreams, thread_id: UUID, fence: FencingToken) -> ClaimStream:
    return ClaimStream(StreamSender(streams, thread_id, fence), fence)

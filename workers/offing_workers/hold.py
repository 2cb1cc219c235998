"""One run in a worker's hands: its claim, and what has been asked of it since.

The heartbeat, the bus and the process write wishes here; the slice acts on them at superstep boundaries.
"""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

from langgraph.runtime import RunControl

from offing.core.run import CancelMode, Fence, StopReason
from offing.storage.runs import Wish


class Drain(StrEnum):
    """Why a slice stops at its next boundary."""

    SLICE_OVER = "slice_over"
    SHUTDOWN = "shutdown"
    PAUSE = "pause"
    CANCEL = "cancel"
    LOST = "lost"
    """Another worker may own the run; nothing more may be written."""


@dataclass(slots=True)
class Hold:
    """Lives as long as the slice. Touched from the worker's event loop only."""

    fence: Fence
    control: RunControl = field(default_factory=RunControl)
    write_now: bool = False
    """A person asked to stop and write."""
    overdue: bool = False
    """The run's deadline has passed."""
    task: "asyncio.Task[None] | None" = None
    in_graph: bool = False
    """The graph runs. Only then may the slice be interrupted, but for a loss: what ends a run is not cut off."""
    interrupt_due: bool = False
    """To be interrupted as soon as the graph runs."""
    handing_back: bool = False
    """The run is being handed back. That proves the claim itself, so a heartbeat that no longer finds it says nothing:
    it may have been handed back just now."""
    released: bool = False
    """The run was handed back. What the slice still does is telling others of it, and anyone may claim the run."""

    def drain(self, why: Drain) -> None:
        """Stop at the next boundary; the first reason stands, but for a cancellation, and a loss overrules all."""
        overrules = why is Drain.LOST or (why is Drain.CANCEL and self.draining is not Drain.LOST)
        if overrules or self.draining is None:
            self.control.request_drain(why)

    @property
    def draining(self) -> Drain | None:
        reason = self.control.drain_reason
        return Drain(reason) if reason else None

    @property
    def must_write(self) -> StopReason | None:
        """Why the run should write what it has and wait for nobody any more. None: it may go on."""
        if self.write_now:
            return StopReason.ASKED_TO_WRITE
        return StopReason.TIME_LIMIT if self.overdue else None

    def lose(self) -> None:
        """The lease is gone: stop now, in the middle of whatever it is but the hand-back."""
        if not (self.handing_back or self.released):
            self.drain(Drain.LOST)
            self.abandon()

    def interrupt(self) -> None:
        """Do not wait for the graph's boundary."""
        self.interrupt_due = not self.in_graph
        if self.in_graph:
            self.abandon()

    def enter_graph(self) -> None:
        """The graph begins; to be called in the slice's task."""
        self.in_graph = True
        if self.interrupt_due:
            self.interrupt()

    def abandon(self) -> None:
        """Stop the slice at once, wherever it is."""
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def apply(self, wish: Wish) -> None:
        """Take over what people want of the run."""
        self.overdue = self.overdue or wish.overdue
        self.write_now = self.write_now or wish.cancel is CancelMode.WRITE
        if wish.cancel is CancelMode.DISCARD:
            self.drain(Drain.CANCEL)
        elif wish.pause:
            self.drain(Drain.PAUSE)

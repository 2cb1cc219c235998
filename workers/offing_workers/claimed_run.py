"""A claimed run in a worker: its claim, and the control requests since then.

The heartbeat, the bus and the process set requests here. The slice handles them at superstep
boundaries.
"""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

from langgraph.runtime import RunControl

from offing.core.run import CancelMode, FencingToken, StopReason
from offing.storage.runs import ControlRequest


class DrainReason(StrEnum):
    """Why a slice stops at its next superstep boundary."""

    SLICE_OVER = "slice_over"
    SHUTDOWN = "shutdown"
    PAUSE = "pause"
    CANCEL = "cancel"
    LEASE_LOST = "lost"
    """Another worker may own the run. Nothing more may be written."""


@dataclass(slots=True)
class ClaimedRun:
    """A run that this process has claimed, for the duration of one slice.

    It is used on the worker's event loop only.
    """

    fencing_token: FencingToken
    control: RunControl = field(default_factory=RunControl)
    finish_requested: bool = False
    """A person requested to finish early."""
    is_overdue: bool = False
    """The run's deadline has passed."""
    task: "asyncio.Task[None] | None" = None
    is_in_graph: bool = False
    """Whether the graph is running.

    Only then may the slice be interrupted, so that the end of a run is not cut off. A lost lease
    interrupts always.
    """
    interrupts_at_graph: bool = False
    """Whether the slice is interrupted as soon as the graph runs."""
    is_releasing: bool = False
    """Whether the run is being released.

    The release checks the claim itself. A heartbeat that does not find the claim proves nothing,
    because the run may have been released at that moment.
    """
    is_released: bool = False
    """Whether the run was released. The slice may still publish events, and any worker may claim the run."""

    def request_drain(self, reason: DrainReason) -> None:
        """Request a drain at the next superstep boundary.

        The first reason stays, but a cancellation replaces it, and a lost lease replaces every other
        reason.
        """
        overrules = reason is DrainReason.LEASE_LOST or (
            reason is DrainReason.CANCEL and self.drain_reason is not DrainReason.LEASE_LOST
        )
        if overrules or self.drain_reason is None:
            self.control.request_drain(reason)

    @property
    def drain_reason(self) -> DrainReason | None:
        reason = self.control.drain_reason
        return DrainReason(reason) if reason else None

    @property
    def forced_stop_reason(self) -> StopReason | None:
        """Why the run must write its report now without waiting. `None` means that it may continue."""
        if self.finish_requested:
            return StopReason.FINISH_REQUESTED
        return StopReason.TIME_LIMIT if self.is_overdue else None

    def mark_lease_lost(self) -> None:
        """Stop immediately because the lease is lost, except during a release."""
        if not (self.is_releasing or self.is_released):
            self.request_drain(DrainReason.LEASE_LOST)
            self.cancel_slice()

    def interrupt_graph(self) -> None:
        """Interrupt the graph without waiting for a superstep boundary."""
        self.interrupts_at_graph = not self.is_in_graph
        if self.is_in_graph:
            self.cancel_slice()

    def enter_graph(self) -> None:
        """Mark the graph as running. Call it in the task of the slice."""
        self.is_in_graph = True
        if self.interrupts_at_graph:
            self.interrupt_graph()

    def cancel_slice(self) -> None:
        """Cancel the task of the slice immediately."""
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def apply_control_request(self, request: ControlRequest) -> None:
        """Apply a control request."""
        self.is_overdue = self.is_overdue or request.deadline_passed
        self.finish_requested = self.finish_requested or request.cancel_mode is CancelMode.FINISH
        if request.cancel_mode is CancelMode.DISCARD:
            self.request_drain(DrainReason.CANCEL)
        elif request.pause_requested:
            self.request_drain(DrainReason.PAUSE)
